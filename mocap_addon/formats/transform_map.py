# SPDX-License-Identifier: GPL-3.0-or-later
"""Bone transform maps: every frame of every clip of a character as numbers that a graphics card reads as they are.

A *row* is one frame. Of each bone it holds two or three RGBA texels: the rotation (x, y, z, w); the translation with the scale as fourth
number; and, only where a scale is uneven anywhere, the scale. All are in the parent bone's frame, so that a player blends what an animation
mixer blends and composes the chain after it: limbs keep their lengths. The rows of all clips follow each other; where they are more than a
texture's height, they go on in the next layer: row ``r`` is row ``r % height`` of layer ``r // height``. A clip's last frame is its end:
where it is a loop, that is its first pose again, so nothing ever reads past a clip.

By choice the texels are skinning matrices instead (:data:`MATRICES`): four columns a joint, bone in the scene times inverse bind matrix, as
three.js keeps them in its own bone textures. They blend badly, but need no player.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ..motion import timeline
from ..motion.errors import FileError, MocapError
from . import gltf_write, ktx2
from .gltf_nodes import NodeTree
from .map_poses import Poses, measured, skin_texels, texels
from .node_clip import NodeClip
from .node_clip import Path as Property

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Precision = Literal["float32", "float16"]
Layout = Literal["tqs", "matrices"]

TRANSFORMS: Layout = "tqs"
MATRICES: Layout = "matrices"
VERSION = 1
KIND = "mocap-transform-map"
LIMIT = 2048
"""Texels a side and, as rows, a layer: what every WebGL 2 device has. Layers: 256."""
_LAYERS = 256
_HALF_MAX = 65504.0


@dataclass(frozen=True)
class MapClip:
    """One clip in a map: ``frames`` rows from ``row`` on, ``rate`` a second.

    ``way`` is where an in-place clip would have got to, in the scene; None where nothing was taken off.
    """

    name: str
    row: int
    frames: int
    rate: Fraction
    loop: bool
    way: tuple[float, float, float] | None = None

    @property
    def duration(self) -> float:
        """Seconds from the first to the last frame."""
        return float((self.frames - 1) / self.rate)


@dataclass(frozen=True, eq=False)
class TransformMap:
    """A map, ready to be written.

    Parameters
    ----------
    names : tuple of str
        The bones as three's loader calls their nodes, parents first.
    nodes : tuple of int
        Their nodes in the glTF file.
    parents : tuple of int
        Index of the bone above, -1 for a topmost one.
    texels : (R, B * n, 4) float32 or float16 array
    clips : tuple of MapClip
    layout : "tqs" or "matrices"
    error : float
        Metres: how far rounding moves anything on the character, 3 cm around every bone, on any frame.
    bounds : (2, 3) array
        Where the bones are in any frame of any clip, smallest and largest, in the scene.
    """

    names: tuple[str, ...]
    nodes: tuple[int, ...]
    parents: tuple[int, ...]
    texels: NDArray[np.float32] | NDArray[np.float16]
    clips: tuple[MapClip, ...]
    layout: Layout
    error: float
    bounds: Array

    @property
    def per_bone(self) -> int:
        """Texels of one bone."""
        return self.texels.shape[1] // len(self.names)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Width, height, layers of the texture."""
        rows, width = self.texels.shape[:2]
        height = min(rows, LIMIT)
        return width, height, -(-rows // height)


def bake(
    tree: NodeTree,
    clips: Sequence[NodeClip],
    joints: Iterable[int],
    *,
    precision: Precision = "float32",
    layout: Layout = TRANSFORMS,
    inverse_binds: Mapping[int, Array] | None = None,
    rate: Fraction | None = None,
) -> TransformMap:
    """A map of clips on a character.

    Parameters
    ----------
    tree : NodeTree
        The character's nodes.
    clips : sequence of NodeClip
        In this order; names differ.
    joints : iterable of int
        The nodes that move something; what stands above them goes along.
    precision : "float32" or "float16"
    layout : "tqs" or "matrices"
    inverse_binds : mapping of node to (4, 4) array
        For "matrices": the skin's inverse bind matrices; the bones are its joints alone, in its order.
    rate : Fraction, optional
        Frames a second; each clip's own by default.

    Raises
    ------
    MocapError
        No clips, no joints, more bones or frames than a texture holds, a node that three.js cannot find, or an additive clip.
    """
    if not clips:
        raise MocapError("There is no clip to put into the map; choose one.")
    names = [clip.name for clip in clips]
    if len(set(names)) != len(names):
        raise MocapError(f'Two clips are called "{next(n for n in names if names.count(n) > 1)}"; give them different names.')
    bones = _closed(tree, joints)
    if not bones:
        raise MocapError("The character has no bones that move a mesh, so there is nothing to put into a map.")
    _check_names(tree, bones)
    sampled = [_sampled(tree, clip, bones, rate) for clip in clips]
    poses = Poses(*(np.concatenate(parts) for parts in zip(*(one.parts for one, _ in sampled), strict=True)))
    parents = _places(tree, bones)
    if precision == "float16" and float(np.abs(poses.translations).max()) > _HALF_MAX:
        raise MocapError("The character's lengths are too large for half precision; write the map with float32.")
    own, binds = bones, None
    if layout == MATRICES:
        own = list(inverse_binds or {})
        binds = np.stack([(inverse_binds or {})[n] for n in own]) if own else np.zeros((0, 4, 4))
    exact = texels(poses) if binds is None else skin_texels(poses, parents, [bones.index(n) for n in own], binds)
    stored = exact.astype(np.float16) if precision == "float16" else exact.astype(np.float32)
    error, bounds = measured(poses, parents, stored, exact if binds is not None else None)
    if binds is not None:
        bones, parents = own, np.full(len(own), -1, dtype=np.int64)
    _check_size(stored)
    entries: list[MapClip] = []
    row = 0
    for clip, (one, exact_rate) in zip(clips, sampled, strict=True):
        way = None
        if clip.path is not None:
            x, y, z = (clip.path[0][-1] - clip.path[0][0]).tolist()
            way = (float(x), float(y), float(z))
        entries.append(MapClip(clip.name, row, len(one.rotations), exact_rate, clip.loop, way))
        row += len(one.rotations)
    loader = tuple(tree.loader_names[n] for n in bones)
    return TransformMap(loader, tuple(bones), tuple(int(p) for p in parents), stored, tuple(entries), layout, error, bounds)


def sidecar(made: TransformMap, data: str) -> dict[str, object]:
    """What a player has to know, as JSON holds it; ``data`` is the name of the file with the texels."""
    width, height, layers = made.shape
    return {
        "kind": KIND,
        "version": VERSION,
        "data": data,
        "layout": made.layout,
        "component": "f16" if made.texels.dtype == np.float16 else "f32",
        "texels": made.per_bone,
        "width": width,
        "height": height,
        "layers": layers,
        "bones": [{"name": name, "parent": parent} for name, parent in zip(made.names, made.parents, strict=True)],
        "clips": [_entry(clip) for clip in made.clips],
        "bounds": {side: [round(float(v), 6) for v in row] for side, row in zip(("min", "max"), made.bounds, strict=True)},
        "error_mm": round(1000.0 * made.error, 6),
    }


def _entry(clip: MapClip) -> dict[str, object]:
    out: dict[str, object] = {"name": clip.name, "row": clip.row, "frames": clip.frames, "fps": float(clip.rate)}
    out |= {"rate": f"{clip.rate.numerator}/{clip.rate.denominator}", "duration": clip.duration, "loop": clip.loop}
    if clip.way is not None:
        length = sum(v * v for v in clip.way) ** 0.5
        out["way"] = [round(v, 6) for v in clip.way]
        out["speed"] = round(length / clip.duration, 6) if clip.duration > 0.0 else 0.0
    return out


def write(path: str | Path, made: TransformMap, *, container: Literal["bin", "ktx2"] = "bin") -> tuple[Path, Path]:
    """Write ``NAME.map.json`` and, beside it, ``NAME.map.bin`` or ``NAME.map.ktx2``; both paths.

    Parameters
    ----------
    path : path
        Of the JSON file.
    made : TransformMap
    container : "bin" or "ktx2"
        The texels as they are (little-endian), or in a KTX2 file.

    Raises
    ------
    FileError
        It cannot be written there.
    """
    path = Path(path)
    stem = path.name.removesuffix(".json")
    data = path.with_name(f"{stem}.{container}")
    content = padded(made)
    if container == "ktx2":
        width, height, layers = made.shape
        content = ktx2.pack(content, width, height, layers, half=made.texels.dtype == np.float16)
    gltf_write.save(data, content)
    try:
        text = json.dumps(sidecar(made, data.name), separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        gltf_write.save(path, text.encode("utf-8", "replace"))
    except FileError:
        data.unlink(missing_ok=True)
        raise
    return path, data


def padded(made: TransformMap) -> bytes:
    """The texels as whole layers, little-endian."""
    width, height, layers = made.shape
    out = np.zeros((layers * height, width, 4), dtype=made.texels.dtype.newbyteorder("<"))
    out[: len(made.texels)] = made.texels
    return out.tobytes()


def _closed(tree: NodeTree, joints: Iterable[int]) -> list[int]:
    """Joints and all above them, parents first."""
    wanted = {a for j in joints for a in (j, *tree.ancestors(j))}
    return [n for n in tree.order if n in wanted]


def _places(tree: NodeTree, bones: list[int]) -> Indices:
    index = {n: i for i, n in enumerate(bones)}
    return np.array([index.get(int(tree.parents[n]), -1) for n in bones], dtype=np.int64)


def _check_names(tree: NodeTree, bones: list[int]) -> None:
    lost = next((n for n in bones if not tree.found[n]), None)
    if lost is not None:
        shown = tree.names[lost] or f"node {lost}"
        raise MocapError(
            f'three.js cannot find "{shown}" by its name in this character; rename it in Blender and export the character again.'
        )


def _check_size(texels: NDArray[np.float32] | NDArray[np.float16]) -> None:
    rows, width = texels.shape[:2]
    if width > LIMIT:
        raise MocapError(f"The map would be {width} texels wide, and devices take {LIMIT}; export fewer bones.")
    if rows > LIMIT * _LAYERS:
        raise MocapError(f"The clips have {rows} frames, and a map holds {LIMIT * _LAYERS}; export fewer clips, or at a lower rate.")


def _sampled(tree: NodeTree, clip: NodeClip, bones: list[int], rate: Fraction | None) -> tuple[Poses, Fraction]:
    """The bones on even frames, and how many there are a second; the last frame is the clip's end."""
    if clip.additive:
        raise MocapError(f'"{clip.name}" holds differences from a pose, which a map cannot play; export it as a plain clip.')
    rate = rate or clip.rate or Fraction(30)
    span = float(clip.times[-1] - clip.times[0])
    frames = max(2, round(span * float(rate)) + 1) if len(clip.times) > 1 else 1
    if frames > 1 and abs((frames - 1) / span / float(rate) - 1.0) > 1e-6:
        # a length that is no whole number of frames changes the rate, not the motion
        rate = Fraction((frames - 1) / span).limit_denominator(1_000_000)
    at = np.minimum(timeline.uniform_times(frames, rate, float(clip.times[0])), clip.times[-1])
    found = {(c.node, c.path): c for c in clip.channels}

    def values(path: Property, width: int, standing: Array) -> Array:
        out = np.empty((frames, len(bones), width))
        for b, n in enumerate(bones):
            one = found.get((n, path))
            out[:, b] = standing[n] if one is None else one.at(at)
        return out

    q = values("rotation", 4, tree.rotations)[..., [1, 2, 3, 0]]
    q = q / np.sqrt(np.sum(q * q, axis=-1, keepdims=True))
    return Poses(q, values("translation", 3, tree.translations), values("scale", 3, tree.scales)), rate
