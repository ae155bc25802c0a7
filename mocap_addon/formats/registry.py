# SPDX-License-Identifier: GPL-3.0-or-later
"""The file formats, and which one a file is in: by its content first, by its name second.

The modules of the formats are imported when one of their files is opened.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from pathlib import Path
from typing import cast

from ..motion.errors import FileError
from ..motion.steps import Progress, Steps
from ..motion.take import Take
from .options import ReadOptions

_HEAD = 4096
Reader = Callable[..., list[Take]]
Writer = Callable[[Take, Path], None]


@dataclass(frozen=True)
class Format:
    """A kind of file.

    Parameters
    ----------
    name : str
        Short and lower case: what the command line calls it.
    label : str
        What a person calls it.
    extensions : tuple of str
        With the dot, lower case.
    sniff : callable
        Whether the first 4 kB of a file can be of this format.
    reader, writer : str or None
        ``"module:function"`` in this package; None where the format is only written or only read.
    tells_progress : bool
        Whether the reader takes a ``progress`` function (formats whose files grow to gigabytes).
    steps : str or None
        The same as ``reader``, as a generator (:mod:`..motion.steps`), where there is one.
    """

    name: str
    label: str
    extensions: tuple[str, ...]
    sniff: Callable[[bytes], bool]
    reader: str | None
    writer: str | None
    tells_progress: bool = False
    steps: str | None = None

    def read(self, path: str | Path, options: ReadOptions | None = None, progress: Progress | None = None) -> list[Take]:
        """The takes of a file of this format."""
        if self.reader is None:
            raise FileError(f"{self.label} files are only written, not read.", path)
        more = (progress,) if self.tells_progress else ()
        return cast(Reader, _load(self.reader))(Path(path), options, *more)

    def write(self, take: Take, path: str | Path) -> None:
        """Write one take."""
        if self.writer is None:
            raise FileError(f"{self.label} files are only read, not written; choose {_extensions(writing=True)}.", path)
        cast(Writer, _load(self.writer))(take, Path(path))


def _is_bvh(head: bytes) -> bool:
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        head = head.replace(b"\0", b"")[2:]
    return re.match(rb"(?:\xef\xbb\xbf)?\s*(?:#[^\r\n]*\s+)*HIERARCHY(?:\s|\Z)", head, re.IGNORECASE) is not None


def _is_mvnx(head: bytes) -> bool:
    return re.search(rb"<(?:\w+:)?mvnx[\s>]", head.replace(b"\0", b"")) is not None


def _is_unity(head: bytes) -> bool:
    return re.match(rb"(?:\xef\xbb\xbf)?\s*%YAML 1\.1\s+%TAG !u! tag:unity3d", head) is not None


_GLTF_KEYS = (
    rb"accessors|animations|asset|bufferViews|buffers|cameras|extensions|extensionsUsed|images|materials|meshes|nodes|scene|scenes|skins"
)


def _is_gltf(head: bytes) -> bool:
    return head.startswith(b"glTF") or re.match(rb'(?:\xef\xbb\xbf)?\s*\{\s*"(?:' + _GLTF_KEYS + rb')"\s*:', head) is not None


_CAPTURES = (b"\xd4\xc3\xb2\xa1", b"\xa1\xb2\xc3\xd4", b"\x4d\x3c\xb2\xa1", b"\xa1\xb2\x3c\x4d")


def _is_capture(head: bytes) -> bool:
    return head[:4] in _CAPTURES or (head[:4] == b"\x0a\x0d\x0d\x0a" and head[8:12] in (b"\x4d\x3c\x2b\x1a", b"\x1a\x2b\x3c\x4d"))


FORMATS: tuple[Format, ...] = (
    Format("bvh", "BVH", (".bvh",), _is_bvh, "bvh_read:read", "bvh_write:write"),
    Format("mvnx", "Xsens MVNX", (".mvnx",), _is_mvnx, "mvnx:read", None, tells_progress=True, steps="mvnx:steps"),
    Format("gltf", "glTF", (".glb", ".gltf", ".vrma"), _is_gltf, "gltf_take:read", None),
    # Of the room behind this one: named here alone, and imported when a capture is opened.
    Format("capture", "capture", (".pcap", ".pcapng", ".cap"), _is_capture, ".stream.capture:read", None, tells_progress=True),
    Format("unity", "Unity clip", (".anim",), _is_unity, "unity_anim:read", None),
)

# What other files begin with, and what to do with them; only for the sentence of an error.
_OTHERS: tuple[tuple[bytes, str], ...] = (
    (b"Kaydara FBX Binary", "an FBX file, which only Blender can read; use it as a take there, or with mocap convert"),
    (b"; FBX", "an FBX text file, which only Blender 4.5 or later can read; use it as a take there"),
    (b"BLENDER", "a Blender file, which only Blender can read; use it as a take there, or with mocap convert"),
    (b"\x28\xb5\x2f\xfd", "a compressed Blender file, which only Blender can read; use it as a take there, or with mocap convert"),
    (b"%YAML", "a YAML file, but not one of Unity"),
    (b"PK\x03\x04", "a ZIP archive; unpack it first"),
    (b"\x1f\x8b", "a gzip archive; unpack it first"),
    (b"7z\xbc\xaf", "a 7z archive; unpack it first"),
    (b"Rar!", "a RAR archive; unpack it first"),
    (b"\x89PNG", "a PNG picture"),
    (b"\xff\xd8\xff", "a JPEG picture"),
    (b"%PDF", "a PDF document"),
    (b":ACCLAIM", "an Acclaim skeleton (ASF); convert skeleton and motion to BVH"),
    (b":FULLY-SPECIFIED", "an Acclaim motion (AMC); convert it with its skeleton to BVH"),
    (b"<?xml", "an XML file, but not an MVNX one"),
    (b"{", "a JSON file"),
    (b"version https://git-lfs", "a placeholder of a file kept elsewhere (Git LFS); fetch the file itself"),
)


def recognise(path: str | Path) -> Format:
    """The format of a file that exists: by content, else by its name.

    Raises
    ------
    FileError
        Saying what the file seems to be.
    """
    path = Path(path)
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except OSError as error:
        raise FileError(f"The file cannot be opened ({error.strerror or error}).", path) from None
    found = next((f for f in FORMATS if f.sniff(head)), None)
    if found is not None:
        return found
    if not head.strip(b"\0 \t\r\n"):
        raise FileError("The file is empty.", path)
    other = _other(head)
    if other is None and (named := by_name(path)) is not None:
        return named  # a damaged file: its reader says on which line
    seems = other or ("text of no known kind" if b"\0" not in head else "binary data of no known kind")
    raise FileError(f"This seems to be {seems}; takes are read from {_extensions(writing=False)} files.", path)


def by_name(path: str | Path) -> Format | None:
    """The format that a file's extension stands for."""
    suffix = Path(path).suffix.lower()
    return next((f for f in FORMATS if suffix in f.extensions), None)


def read(path: str | Path, options: ReadOptions | None = None, progress: Progress | None = None) -> list[Take]:
    """The takes of a file, in the project's axes and metres; ``notes`` and ``facts`` say what was found and guessed.

    ``progress``, for formats that tell it, is called with the share done (0..1); returning False cancels with a :class:`MocapError`.

    What it takes to read the file again, and to know whether it has changed, is in ``facts`` too: ``path`` (absolute), ``hash`` (BLAKE2b of
    its bytes) and ``read`` (the options that were set).

    Raises
    ------
    FileError
        Where it is no motion file, or a damaged one.
    """
    found = recognise(path)
    source = origin(path, options)
    return [replace(take, facts={**take.facts, **source}) for take in found.read(path, options, progress)]


def read_steps(path: str | Path, options: ReadOptions | None = None) -> Steps[list[Take]]:
    """:func:`read` step by step, for formats that are read so; the others in one step."""
    found = recognise(path)
    if found.steps is None:
        return read(path, options)
    source = origin(path, options)
    takes = yield from cast(Callable[..., Steps[list[Take]]], _load(found.steps))(Path(path), options)
    return [replace(take, facts={**take.facts, **source}) for take in takes]


def origin(path: str | Path, options: ReadOptions | None = None) -> dict[str, object]:
    """What it takes to read a file again, and to know whether it has changed: the facts ``path``, ``hash`` and ``read``."""
    return {"path": os.path.abspath(path), "hash": content_hash(path), "read": _set_options(options)}


def content_hash(path: str | Path) -> str:
    """BLAKE2b of a file's bytes, 32 hexadecimal digits: about a second a gigabyte."""
    try:
        with Path(path).open("rb") as file:
            return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
    except OSError as error:
        raise FileError(f"The file cannot be read ({error.strerror or error}).", path) from None


def _set_options(options: ReadOptions | None) -> dict[str, object]:
    given = {} if options is None else {f.name: getattr(options, f.name) for f in fields(options)}
    return {name: str(value) if isinstance(value, Fraction) else value for name, value in given.items() if value is not None}


def write(take: Take, path: str | Path) -> None:
    """Write a take in the format that the name of ``path`` stands for.

    Raises
    ------
    FileError
        Where the name stands for no format that is written, or the disk does not take it. Nothing half-written stays.
    """
    named = by_name(path)
    if named is None:
        raise FileError(f"The name does not say which format to write; end it in {_extensions(writing=True)}.", path)
    named.write(take, path)


def _other(head: bytes) -> str | None:
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if len(head) > 1 and head[1] == 0x50 and head[0] < 20:
        return "a C3D file; export it to BVH or MVNX from the capture software"
    return next((what for begin, what in _OTHERS if start.startswith(begin)), None)


def _extensions(writing: bool) -> str:
    names = [e for f in FORMATS for e in f.extensions if (f.writer if writing else f.reader)]
    return " or ".join(names)


def _load(target: str) -> Callable[..., object]:
    module, name = target.split(":")
    return getattr(importlib.import_module(f".{module}", __package__), name)
