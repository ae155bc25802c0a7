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
import re
import tempfile
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..motion import quat
from ..motion.errors import FileError, MocapError
from .gltf_nodes import NodeTree, sanitize
from .node_pose import NodeMotion
from .number_text import listed_all

Array = NDArray[np.float64]

_NAMESPACE = uuid.UUID("5c9f2f4e-4f6e-5a0b-9f0c-3a1d0e6b7c21")  # ours, so that nobody else's content gets our ids
_STRIDE: dict[str, int] = {"quaternion": 4, "position": 3, "scale": 3}  # whatever else is one number
_TIME_DECIMALS = 7
_QUATERNION_DECIMALS = 7  # single precision, which three keeps, ends there: 1 micrometre at 10 m
_NORMAL_BLENDING, _ADDITIVE_BLENDING = 2500, 2501
_DISCRETE = 2300
_NUMBER = re.compile(r"(morphTargetInfluences|userData)\[[^\]]+\]")


@dataclass(frozen=True, eq=False)
class Track:
    """Keys of one property of one node.

    Parameters
    ----------
    node : str
        The node's name as three's loader has it.
    property : str
        ``quaternion``, ``position``, ``scale``, or a number: ``morphTargetInfluences[name]``, ``userData[name]``.
    values : (F, 4) xyzw, (F, 3), (F, 1), or one row for a constant
    decimals : int
        Decimals worth writing.
    times : (F,) array, optional
        Seconds of its own keys; the clip's by default.
    discrete : bool
        Values hold until the next key.
    of_root : bool
        The track is for what the mixer is made for; ``node`` is empty.
    """

    node: str
    property: str
    values: Array
    decimals: int = _QUATERNION_DECIMALS
    times: Array | None = None
    discrete: bool = False
    of_root: bool = False


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
    additive : bool
        The values are differences, to be added to the pose of other clips.
    """

    name: str
    duration: float
    times: Array
    tracks: tuple[Track, ...]
    user_data: Mapping[str, object] = field(default_factory=dict[str, object])
    additive: bool = False

    @cached_property
    def uuid(self) -> str:
        """The same for the same content, another for any other."""
        digest = hashlib.sha256(repr((self.name, self.duration, self.additive)).encode("utf-8", "surrogatepass"))
        digest.update(self.times.tobytes())
        for track in self.tracks:
            digest.update(f"|{track.node}|{track.property}|{track.discrete}|".encode("utf-8", "surrogatepass"))
            digest.update(track.values.tobytes())
            if track.times is not None:
                digest.update(track.times.tobytes())
        return str(uuid.uuid5(_NAMESPACE, digest.hexdigest()))


def clip(
    name: str,
    times: Array,
    tracks: Sequence[Track],
    *,
    rate: Fraction | None = None,
    user_data: Mapping[str, object] | None = None,
    additive: bool = False,
    time_decimals: int = _TIME_DECIMALS,
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
    additive : bool
        The values are differences from a pose.
    time_decimals : int
        Decimals of the times.

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
    times = _rounded_times(start, time_decimals, name)
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
    return Clip(name, duration, times, tuple(_checked(track, times, name, time_decimals) for track in tracks), data, additive)


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


def _checked(track: Track, times: Array, clip_name: str, time_decimals: int) -> Track:
    stride = _STRIDE.get(track.property, 1)
    values = np.asarray(track.values, dtype=np.float64)
    place = f'the {track.property} track of "{track.node}" in the clip "{clip_name}"'
    if sanitize(track.node) != track.node or track.of_root == bool(track.node):
        raise MocapError(f'"{track.node}" is not a node name of three.js; use the name its loader gives the node.')
    if track.property not in _STRIDE and not _NUMBER.fullmatch(track.property):
        raise MocapError(f'"{track.property}" is not a property that a track can move; a name in brackets may not hold brackets.')
    own = None
    if track.times is not None and len(track.times) > 1:
        own = _rounded_times(np.asarray(track.times, dtype=np.float64), time_decimals, clip_name)
        if own[0] < 0.0 or own[-1] > times[-1]:
            raise MocapError(f"The keys of {place} lie outside the clip; give times from 0 to its end.")
    frames = len(times) if own is None else len(own)
    if values.ndim == 1:
        values = values[:, None]
    if values.shape not in ((frames, stride), (1, stride)):
        raise MocapError(f"The values of {place} have shape {values.shape}; {(frames, stride)} was expected.")
    if not np.all(np.isfinite(values)):
        raise MocapError(f"In {place} are values that are not numbers; clean the take first.")
    if track.property == "quaternion":
        values = rounded_quaternions(values, track.decimals, place)
    else:
        values = np.round(values, track.decimals) + 0.0
    if np.all(values == values[:1]):
        values, own = values[:1], None
    return Track(track.node, track.property, values, track.decimals, own, track.discrete, track.of_root)


def _rounded_times(times: Array, decimals: int, clip_name: str) -> Array:
    times = np.round(times, decimals) + 0.0
    single: NDArray[np.float32] = times.astype(np.float32)
    if bool(np.any(np.diff(single) <= 0.0)):
        raise MocapError(f'The times of the clip "{clip_name}" do not rise, or lie too close together; resample it to a frame rate.')
    return times


def rounded_quaternions(q: Array, decimals: int = _QUATERNION_DECIMALS, place: str = "the clip") -> Array:
    """(F, 4) in any order of components -> of unit length, continuous in sign, rounded to ``decimals``."""
    norm = np.sqrt(np.einsum("fi,fi->f", q, q))
    if np.any(norm < 1e-6):
        raise MocapError(f"In {place} is a rotation of zero length; clean the take first.")
    q = np.round(quat.continuous(q / norm[:, None]), decimals) + 0.0
    # The largest component is computed again from the rounded others: unit length to half a last digit.
    rows, largest = np.arange(len(q)), np.argmax(np.abs(q), axis=1)
    others = np.einsum("fi,fi->f", q, q) - q[rows, largest] ** 2
    q[rows, largest] = np.round(np.copysign(np.sqrt(1.0 - others), q[rows, largest]), decimals)
    return q


def _clip_text(one: Clip) -> str:
    own = {k: track.times for k, track in enumerate(one.tracks) if track.times is not None}
    ends, moving, *others = listed_all([np.array([0.0, one.duration]), one.times, *own.values()], _TIME_DECIMALS)
    own_times = dict(zip(own, others, strict=True))
    all_values = _values_text(one.tracks)
    lines: list[str] = []
    for k, track in enumerate(one.tracks):
        times = ends if len(track.values) == 1 else own_times.get(k, moving)
        name = json.dumps(f"{track.node}.{track.property}")
        kind = {4: "quaternion", 3: "vector"}.get(_STRIDE.get(track.property, 1), "number")
        held = f',"interpolation":{_DISCRETE}' if track.discrete else ""
        lines.append(f'{{"name":{name},"type":"{kind}","times":{times},"values":{all_values[k]}{held}}}')
    user_data = json.dumps(json.dumps(dict(one.user_data), separators=(",", ":"), allow_nan=False))
    blending = _ADDITIVE_BLENDING if one.additive else _NORMAL_BLENDING
    return (
        f'{{"name":{json.dumps(one.name)},"duration":{one.duration!r},"uuid":"{one.uuid}","blendMode":{blending},'
        f'"userData":{user_data},"tracks":[{",".join(lines)}]}}'
    )


def _values_text(tracks: Sequence[Track]) -> dict[int, str]:
    """The values of each track as text; constants twice, for the clip's two ends."""
    by_decimals: dict[int, list[int]] = {}
    for k, track in enumerate(tracks):
        by_decimals.setdefault(track.decimals, []).append(k)
    out: dict[int, str] = {}
    for decimals, members in by_decimals.items():
        values = [np.repeat(tracks[k].values, 2, axis=0) if len(tracks[k].values) == 1 else tracks[k].values for k in members]
        out.update(zip(members, listed_all(values, decimals), strict=True))
    return out


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
