# SPDX-License-Identifier: GPL-3.0-or-later
"""All clips of an export as one bone transform map."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..formats import clip_reduce, gltf_buffers, gltf_nodes, transform_map
from ..formats.gltf_nodes import NodeTree
from ..formats.node_clip import NodeClip
from ..motion.errors import FileError
from .export import ExportedFile, Job

SUFFIX = ".map.json"
_FINER = (1, 2, 4, 8, 16)
"""So many rows a frame are tried where a map is to match Blender between frames."""


def write(job: Job) -> tuple[list[ExportedFile], list[str]]:
    """The map of a job's clips: its JSON, and the file with the texels."""
    options, stage = job.options, job.stage
    clips = [one.clip for one in job.made]
    notes = ["Morph targets are not in bone maps."] if any(clip.morphs for clip in clips) else []
    if options.match:
        limit = 1e-4 if options.bound is None else options.bound
        clips, more = zip(*(_finer(job, clip, 0.4 * limit) for clip in clips), strict=True)
        notes += [note for note in more if note]
    made = bake(stage.tree, clips, stage.path, precision=options.map_precision, layout=options.map_layout)
    path, data = transform_map.write(job.folder / f"{job.stem}{SUFFIX}", made, container=options.map_container)
    frames = len(made.texels)
    keys = frames * len(made.names)
    seconds = max(clip.duration for clip in clips)
    names = tuple(clip.name for clip in clips)
    return [
        ExportedFile(path, "map", names, path.stat().st_size, seconds=seconds),
        ExportedFile(data, "map", names, data.stat().st_size, made.error, None, keys, keys, seconds),
    ], notes


def _finer(job: Job, clip: NodeClip, limit: float) -> tuple[NodeClip, str]:
    """The clip with so many rows a second that straight ways between them are within ``limit`` (metres) of all its samples; a note."""
    rate = clip.rate or Fraction(30)
    span = float(clip.times[-1])
    off = 0.0
    for times in _FINER:
        finer = replace(clip, rate=rate * times)
        at = np.linspace(0.0, span, max(2, round(span * float(rate) * times) + 1))
        rows = tuple(c if c.constant else replace(c, times=at, values=c.at(at)) for c in clip.channels)
        off = clip_reduce.measure(clip, job.stage.body, clip.channels, rows).worst
        if off <= limit:
            return finer, ""
    return finer, f'Between its rows the map of "{clip.name}" is up to {1000.0 * off:.2g} mm from Blender, with {_FINER[-1]} rows a frame.'


def bake(
    tree: NodeTree,
    clips: Sequence[NodeClip],
    path: Path | None,
    *,
    precision: transform_map.Precision = "float32",
    layout: transform_map.Layout = "tqs",
) -> transform_map.TransformMap:
    """The map of clips on a character; ``path`` is its glTF file, where there is one."""
    joints = set(tree.joints)
    data = {} if path is None else gltf_nodes.read_json(path)
    for number, node in enumerate(data.get("nodes") or ()):
        if node.get("mesh") is not None and node.get("skin") is None and tree.parents[number] >= 0:
            joints.add(int(tree.parents[number]))  # a mesh that hangs on a bone
    binds = None
    if layout == transform_map.MATRICES:
        if path is None:
            raise FileError("Skinning matrices need the character's glTF file; export the character with the map, or give its file.")
        binds = inverse_binds(data, path)
    return transform_map.bake(tree, clips, sorted(joints), precision=precision, layout=layout, inverse_binds=binds)


def inverse_binds(data: gltf_nodes.Json, path: Path) -> dict[int, NDArray[np.float64]]:
    """Node -> inverse bind matrix ``(4, 4)`` of the file's first skin, in the order of its joints."""
    skins = list(data.get("skins") or ())
    if not skins:
        raise FileError("The character has no skin, so there are no skinning matrices.", path)
    joints = [int(n) for n in skins[0]["joints"]]
    if skins[0].get("inverseBindMatrices") is None:
        return {n: np.eye(4) for n in joints}
    table = gltf_buffers.Buffers(data, path).array(int(skins[0]["inverseBindMatrices"]))
    return {n: row.reshape(4, 4).T for n, row in zip(joints, table, strict=True)}
