# SPDX-License-Identifier: GPL-3.0-or-later
"""three.js ``AnimationClip`` JSON (r187).

three checks little: a clip without ``uuid`` plays another clip's action, ``userData`` as an object throws, a top-level ``fps`` divides the
times, a quaternion that is not a unit one shrinks the bone, names with reserved characters bind to something else. :func:`clip` builds only
what is right, and raises on what cannot be. A file is an array of clips, which ``AnimationLoader`` reads; each is a clip for
``AnimationClip.parse``.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ..motion import quat
from ..motion.errors import FileError, MocapError
from .gltf_nodes import NodeTree, sanitize
from .node_pose import NodeMotion

Array = NDArray[np.float64]
Property = Literal["quaternion", "position", "scale"]

_NAMESPACE = uuid.UUID("5c9f2f4e-4f6e-5a0b-9f0c-3a1d0e6b7c21")  # ours, so that nobody else's content gets our ids
_STRIDE: dict[Property, int] = {"quaternion": 4, "position": 3, "scale": 3}
_TIME_DECIMALS = 7
_QUATERNION_DECIMALS = 7  # single precision, which three keeps, ends there: 1 micrometre at 10 m
_NORMAL_BLENDING = 2500


@dataclass(frozen=True, eq=False)
class Track:
    """Keys of one property of one node.

    Parameters
    ----------
    node : str
        The node's name as three's loader has it.
    property : "quaternion", "position" or "scale"
    values : (F, 4) xyzw, (F, 3), or one row for a constant
    decimals : int
        Decimals worth writing.
    """

    node: str
    property: Property
    values: Array
    decimals: int = _QUATERNION_DECIMALS


@dataclass(frozen=True, eq=False)
class Clip:
    """A clip that is ready to be written; made by :func:`clip`.

    Parameters
    ----------
    name : str
    duration : float
        Seconds.
    times : (F,) array
        Seconds, the first 0, strictly rising, also in single precision.
    tracks : tuple of Track
        Rounded; quaternions of unit length and continuous sign. One row: constant over the clip.
    user_data : mapping
        What JSON can hold.
    """

    name: str
    duration: float
    times: Array
    tracks: tuple[Track, ...]
    user_data: Mapping[str, object] = field(default_factory=dict[str, object])

    @cached_property
    def uuid(self) -> str:
        """The same for the same content, another for any other."""
        digest = hashlib.sha256(repr((self.name, self.duration)).encode("utf-8", "surrogatepass"))
        digest.update(self.times.tobytes())
        for track in self.tracks:
            digest.update(f"|{track.node}|{track.property}|".encode("utf-8", "surrogatepass"))
            digest.update(track.values.tobytes())
        return str(uuid.uuid5(_NAMESPACE, digest.hexdigest()))


def clip(
    name: str,
    times: Array,
    tracks: Sequence[Track],
    *,
    rate: Fraction | None = None,
    user_data: Mapping[str, object] | None = None,
) -> Clip:
    """A right clip from keys.

    Parameters
    ----------
    name : str
    times : (F,) array
        Seconds, strictly rising; shifted so that the first is 0. A single one makes a pose that lasts one frame.
    tracks : sequence of Track
        Quaternions need neither unit length nor continuous signs.
    rate : Fraction, optional
        Nominal frame rate; goes into the user data.
    user_data : mapping, optional

    Raises
    ------
    MocapError
        For no tracks, times that do not rise, values that are not finite or of the wrong count, a node name three cannot find, a track
        given twice.
    """
    times = np.asarray(times, dtype=np.float64)
    if times.ndim != 1 or len(times) == 0 or not np.all(np.isfinite(times)):
        raise MocapError(f'The clip "{name}" has no frames, or times that are not numbers; there is nothing to write.')
    if not tracks:
        raise MocapError(f'The clip "{name}" moves nothing; there is nothing to write.')
    start: Array = times - times[0]
    times = np.round(start, _TIME_DECIMALS) + 0.0
    single: NDArray[np.float32] = times.astype(np.float32)
    if bool(np.any(np.diff(single) <= 0.0)):
        raise MocapError(f'The times of the clip "{name}" do not rise, or lie too close together; resample it to a frame rate.')
    duration = float(times[-1])
    if len(times) == 1:  # three's mixer divides by the duration
        duration = round(float(1 / rate) if rate else 1.0 / 30.0, _TIME_DECIMALS)
    seen: set[tuple[str, str]] = set()
    for track in tracks:
        if (track.node, track.property) in seen:
            raise MocapError(f'The clip "{name}" has two {track.property} tracks for the node "{track.node}".')
        seen.add((track.node, track.property))
    data: dict[str, object] = {}
    if rate is not None:
        data = {"fps": round(float(rate), 6), "rate": f"{rate.numerator}/{rate.denominator}"}
    data.update(user_data or {})
    return Clip(name, duration, times, tuple(_checked(track, len(times), name) for track in tracks), data)


def node_tracks(tree: NodeTree, motions: Sequence[NodeMotion]) -> list[Track]:
    """The tracks of nodes that move, under the names three's loader gives them.

    Raises
    ------
    FileError
        If a node cannot be reached by name: it has none, or three finds another one first.
    """
    out: list[Track] = []
    for motion in motions:
        name = tree.loader_names[motion.node]
        if not tree.found[motion.node]:
            shown = tree.names[motion.node]
            why = f'three.js would move another node than "{shown}" by that name' if name else f"three.js cannot name node {motion.node}"
            raise FileError(f"In this character file {why}; rename the bone in Blender and export the character again.")
        if motion.rotations is not None:
            out.append(Track(name, "quaternion", motion.rotations[:, [1, 2, 3, 0]]))
        if motion.translations is not None:
            # one micrometre, in the parent's unit
            decimals = max(0, 6 + int(np.ceil(np.log10(motion.metres) - 1e-6)))
            out.append(Track(name, "position", motion.translations, decimals))
        if motion.scale is not None:
            out.append(Track(name, "scale", motion.scale[None], 6))
    return out


def dumps(clips: Sequence[Clip]) -> str:
    """The file's text: an array with one clip a line. Times are written once as text and repeated."""
    if len({one.uuid for one in clips}) != len(clips):
        raise MocapError("Two of the clips are the same, name and keys; three.js would take one for the other, so leave one out.")
    return "[\n" + ",\n".join(_clip_text(one) for one in clips) + "\n]\n"


def write(path: str | Path, clips: Sequence[Clip]) -> int:
    """Write the clips to a file, all or nothing; returns its size in bytes. :class:`FileError` if it cannot be written."""
    path = Path(path)
    content = dumps(clips).encode("ascii")
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name[:40]}.", suffix=".part", dir=path.parent)
    except OSError as error:
        raise FileError(f"The clip cannot be written there ({error.strerror}).", path) from None
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.chmod(temporary, 0o666 & ~_umask())  # mkstemp makes files that only their owner can read
        os.replace(temporary, path)
    except OSError as error:
        raise FileError(f"The clip cannot be written there ({error.strerror}).", path) from None
    finally:
        Path(temporary).unlink(missing_ok=True)
    return len(content)


def _checked(track: Track, frames: int, clip_name: str) -> Track:
    stride = _STRIDE[track.property]
    values = np.asarray(track.values, dtype=np.float64)
    place = f'the {track.property} track of "{track.node}" in the clip "{clip_name}"'
    if not track.node or sanitize(track.node) != track.node:
        raise MocapError(f'"{track.node}" is not a node name of three.js; use the name its loader gives the node.')
    if values.shape not in ((frames, stride), (1, stride)):
        raise MocapError(f"The values of {place} have shape {values.shape}; {(frames, stride)} was expected.")
    if not np.all(np.isfinite(values)):
        raise MocapError(f"In {place} are values that are not numbers; clean the take first.")
    values = _rounded_quaternions(values, place) if track.property == "quaternion" else np.round(values, track.decimals) + 0.0
    if np.all(values == values[:1]):
        values = values[:1]
    return Track(track.node, track.property, values, track.decimals)


def _rounded_quaternions(q: Array, place: str) -> Array:
    norm = np.sqrt(np.einsum("fi,fi->f", q, q))
    if np.any(norm < 1e-6):
        raise MocapError(f"In {place} is a rotation of zero length; clean the take first.")
    q = np.round(quat.continuous(q / norm[:, None]), _QUATERNION_DECIMALS) + 0.0
    # The largest component is computed again from the rounded others: unit length to half a last digit.
    rows, largest = np.arange(len(q)), np.argmax(np.abs(q), axis=1)
    others = np.einsum("fi,fi->f", q, q) - q[rows, largest] ** 2
    q[rows, largest] = np.round(np.copysign(np.sqrt(1.0 - others), q[rows, largest]), _QUATERNION_DECIMALS)
    return q


def _clip_text(one: Clip) -> str:
    ends = _numbers(np.array([0.0, one.duration]))
    moving = _numbers(one.times)
    lines: list[str] = []
    for track in one.tracks:
        constant = len(track.values) == 1
        values = np.repeat(track.values, 2, axis=0) if constant else track.values
        name = json.dumps(f"{track.node}.{track.property}")
        kind = "quaternion" if track.property == "quaternion" else "vector"
        lines.append(f'{{"name":{name},"type":"{kind}","times":{ends if constant else moving},"values":{_numbers(values)}}}')
    user_data = json.dumps(json.dumps(dict(one.user_data), separators=(",", ":"), allow_nan=False))
    return (
        f'{{"name":{json.dumps(one.name)},"duration":{one.duration!r},"uuid":"{one.uuid}","blendMode":{_NORMAL_BLENDING},'
        f'"userData":{user_data},"tracks":[{",".join(lines)}]}}'
    )


def _numbers(values: Array) -> str:
    """A JSON array; doubles that were rounded print as short as they were rounded."""
    return json.dumps(values.ravel().tolist(), separators=(",", ":"), allow_nan=False)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
