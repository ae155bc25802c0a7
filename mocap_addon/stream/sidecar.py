# SPDX-License-Identifier: GPL-3.0-or-later
"""What a person says about a recording, and what cannot be told from its packets: a JSON file beside the capture.

It is written when the recording begins and again when it ends, so a crash leaves at worst one that says "recording": see
:func:`unfinished`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from ..motion.errors import FileError

Array = NDArray[np.float64]
State = Literal["recording", "finished", "recovered"]


@dataclass
class Sidecar:
    """Times are seconds since 1970. ``ports`` maps a port (as text) to the protocol that was set for it and the decoder's options."""

    take: str = ""
    number: int = 1
    slate: str = ""
    rating: int = 0
    comment: str = ""
    state: State = "recording"
    start: float | None = None
    end: float | None = None
    gaps: list[list[float]] = field(default_factory=list[list[float]])
    ports: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    performers: dict[str, str] = field(default_factory=dict[str, str])
    """What a person calls who the capture knows by another name."""
    tables: dict[str, str] = field(default_factory=dict[str, str])
    """By which correction table a performer was shown, as TOML. Performers of this and of :attr:`references` by ``protocol host port kind
    id``, as a capture tells them apart, or by the id alone."""
    references: dict[str, str] = field(default_factory=dict[str, str])
    """The performer's pose that stands as the character does at rest (:func:`reference_text`)."""
    more: dict[str, Any] = field(default_factory=dict[str, Any])


def of_performer(kept: Mapping[str, object], key: tuple[str, str, str]) -> str:
    """What is kept of one performer in ``tables`` or ``references``; empty where there is nothing."""
    found = kept.get(" ".join(key), kept.get(key[2], ""))
    return found if isinstance(found, str) else ""


def reference_text(joints: Sequence[str], rotations: Array, translations: Array) -> str:
    """A calibration pose as text: local rotations ``(J, 4)`` and translations ``(J, 3)``."""
    pose = {"rotations": np.round(rotations, 7).tolist(), "translations": np.round(translations, 5).tolist()}
    return json.dumps({"joints": list(joints), **pose})


def reference_pose(text: str, joints: Sequence[str]) -> tuple[Array, Array] | None:
    """The reverse of :func:`reference_text`; None where it is of other joints, or damaged."""
    try:
        stored = json.loads(text or "{}")
        if stored.get("joints") != list(joints):
            return None
        rotations, translations = (np.array(stored[name], dtype=np.float64) for name in ("rotations", "translations"))
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    count = len(joints)
    fits = (
        rotations.shape == (count, 4)
        and translations.shape == (count, 3)
        and np.isfinite(rotations).all()
        and np.isfinite(translations).all()
    )
    return (rotations, translations) if fits and (np.abs(rotations).max(axis=-1) > 0.1).all() else None


def beside(capture: str | Path) -> Path:
    """The sidecar's path: ``take.pcap`` has ``take.pcap.json``."""
    capture = Path(capture)
    return capture.with_name(capture.name + ".json")


def load(capture: str | Path) -> Sidecar | None:
    """The sidecar of a capture; None where there is none.

    Raises
    ------
    FileError
        It is damaged.
    """
    path = beside(capture)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f"The notes beside the capture cannot be read ({error}); move the file away to go on without it.", path) from None
    try:
        raw = json.loads(text)
    except ValueError:
        raw = None
    if not isinstance(raw, dict):
        raise FileError("The notes beside the capture are damaged; move the file away to go on without it.", path)
    said, out = cast("dict[str, Any]", raw), Sidecar()
    for f in fields(Sidecar):
        value = said.get(f.name)
        own = getattr(out, f.name)
        number = own is None or isinstance(own, float)
        if isinstance(value, (int, float)) if number else isinstance(value, type(own)):
            setattr(out, f.name, value)
    out.more.update({k: v for k, v in said.items() if k not in {f.name for f in fields(Sidecar)}})
    return out


def save(capture: str | Path, sidecar: Sidecar) -> Path:
    """Write the sidecar, whole or not at all.

    Raises
    ------
    FileError
        The folder cannot be written.
    """
    path = beside(capture)
    part = path.with_name(path.name + ".part")
    said: Mapping[str, Any] = asdict(sidecar)
    try:
        part.write_text(json.dumps(said, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        os.replace(part, path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise FileError(f"The notes beside the capture cannot be written ({error.strerror or error}).", path) from None
    return path


def unfinished(folder: str | Path) -> list[Path]:
    """Captures in ``folder`` whose recording was never ended: Blender or the computer stopped. Their takes are whole up to the last
    moment."""
    out: list[Path] = []
    for path in sorted(Path(folder).glob("*.pcap.json")):
        capture = path.with_name(path.name[: -len(".json")])
        try:
            found = load(capture)
        except FileError:
            continue
        if found is not None and found.state == "recording" and capture.is_file():
            out.append(capture)
    return out
