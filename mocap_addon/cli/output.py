# SPDX-License-Identifier: GPL-3.0-or-later
"""Where results and complaints go: lines for a person, or one JSON object a line.

Blender's importers print on standard output. While it works, file descriptor 1 leads elsewhere, and results go to a copy of the real one.
"""

from __future__ import annotations

import contextlib
import json
import math
import numbers
import os
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping
from typing import BinaryIO, TextIO


class Output:
    """Results on standard output, complaints on standard error; with ``as_json`` both as objects on standard output."""

    def __init__(self, *, as_json: bool, ends_process: bool = False) -> None:
        self.as_json = as_json
        self._ends_process = ends_process
        self._text: TextIO | None = sys.stdout
        self._own: BinaryIO | None = None

    def result(self, record: Mapping[str, object], lines: Iterable[str]) -> None:
        """One finished thing: ``record`` in JSON mode, ``lines`` otherwise. Flushed at once, so that a reader sees progress."""
        self._write(_dumps(record) if self.as_json else "\n".join(lines))

    def progress(self, record: Mapping[str, object], sentence: str) -> None:
        """Something that goes on for a while says how it stands: an object in JSON mode, a sentence on standard error otherwise."""
        if self.as_json:
            self._write(_dumps(record))
        else:
            _complain(sentence)

    def failure(self, sentence: str, **known: object) -> None:
        """One complaint; ``known`` says what it is about. A person is told the take where the sentence does not begin with the file."""
        if self.as_json:
            self._write(_dumps({**known, "error": sentence}))
        elif "take" in known and not sentence.startswith(os.path.basename(str(known.get("source", "")))):
            _complain(f"{known['take']}: {sentence}")
        else:
            _complain(sentence)

    def unexpected(self, error: Exception, *, verbose: bool, **known: object) -> None:
        """A fault of the program itself: still one sentence, the details on request."""
        if verbose:
            _complain("".join(traceback.format_exception(error)).rstrip())
        what = ": ".join(filter(None, (type(error).__name__, " ".join(str(error).split()))))
        self.failure(f"The program failed ({what}); run it with --verbose and report what it says.", **known)

    def abandon(self) -> None:
        """Nobody reads any more: let nothing be written at exit either."""
        with contextlib.suppress(OSError):
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1)
            if self._own is not None:
                os.dup2(null, self._own.fileno())
            os.close(null)

    @contextlib.contextmanager
    def while_blender_works(self, *, verbose: bool = False) -> Iterator[None]:
        """Send what Blender prints on standard output to standard error (``verbose``) or nowhere."""
        _flush_python()
        try:
            saved = os.dup(1)
        except OSError:  # No standard output at all, as in a window without a console.
            yield
            return
        aside = os.dup(2) if verbose else os.open(os.devnull, os.O_WRONLY)
        os.dup2(aside, 1)
        # A replaced sys.stdout (a test's) does not lead to descriptor 1: results still go there, and Python's own prints aside.
        replaced = not _is_descriptor_1(self._text)
        if not replaced:
            self._own = os.fdopen(os.dup(saved), "wb")
        else:
            sys.stdout = os.fdopen(os.dup(aside), "w", encoding="utf-8", errors="replace")
        os.close(aside)
        try:
            yield
        finally:
            if replaced:
                sys.stdout.close()
                sys.stdout = self._text
            if replaced or not self._ends_process:
                _flush_all()
                os.dup2(saved, 1)
                if self._own is not None:
                    self._own.close()
                    self._own = None
            os.close(saved)

    def _write(self, text: str) -> None:
        encoding = "utf-8" if self.as_json else getattr(self._text, "encoding", None) or "utf-8"
        # A file name that is not text decodes to lone surrogates; "backslashreplace" writes them as \udc80, which is an escape in JSON too.
        data = (text + "\n").encode(encoding, "backslashreplace")
        stream = self._own or getattr(self._text, "buffer", None)
        if stream is not None:
            stream.write(data)
            stream.flush()
        elif self._text is not None:
            self._text.write(text + "\n")
            self._text.flush()


def _complain(sentence: str) -> None:
    if sys.stderr is not None:
        with contextlib.suppress(OSError):
            print(sentence, file=sys.stderr, flush=True)


def _dumps(record: Mapping[str, object]) -> str:
    return json.dumps(_plain(record), ensure_ascii=False, allow_nan=False)


def _plain(value: object) -> object:
    """NaN and infinity as null: JSON has neither."""
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(v) for v in value]
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real) and not isinstance(value, numbers.Rational):
        return float(value) if math.isfinite(value) else None
    return str(value)


def _is_descriptor_1(stream: object) -> bool:
    try:
        return stream.fileno() == 1  # type: ignore[attr-defined]
    except (AttributeError, OSError, ValueError):
        return False


def _flush_python() -> None:
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stdout.flush()


def _flush_all() -> None:
    """Flush Python's and the C library's output, so that what Blender has printed is gone before descriptor 1 is itself again."""
    _flush_python()
    with contextlib.suppress(OSError, AttributeError, ImportError, TypeError):
        import ctypes

        (ctypes.CDLL("ucrtbase") if os.name == "nt" else ctypes.CDLL(None)).fflush(None)
