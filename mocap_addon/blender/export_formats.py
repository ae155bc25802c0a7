# SPDX-License-Identifier: GPL-3.0-or-later
"""The formats that actions are exported in. One more is one more row of :data:`FORMATS`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np

from .. import formats, rig
from ..formats import clip_read, clip_reduce, gltf_clips, gltf_write, node_clip, threejs, threejs_clip, vrma
from ..formats.clip_reduce import Compact
from ..formats.gltf_clips import GlbWriting
from ..formats.node_clip import Channel
from ..formats.node_metric import Measured
from ..formats.threejs_clip import JsonWriting
from ..motion.errors import FileError
from . import clip_extras, vrm_expressions
from .export import ExportedFile, ExportOptions, Job

Written = tuple[list[ExportedFile], list[str]]


def _never(options: ExportOptions) -> bool:
    return False


def _always(options: ExportOptions) -> bool:
    return True


def _with_mesh(options: ExportOptions) -> bool:
    return options.mesh


@dataclass(frozen=True)
class ExportFormat:
    """A format.

    Parameters
    ----------
    label : str
        For a person.
    suffix : str
        How its files' names end.
    write : callable
        Writes the files of a job into the job's folder; returns them, and notes.
    needs_character : callable
        Whether it needs the character's glTF file, with these options.
    """

    label: str
    suffix: str
    write: Callable[[Job], Written]
    needs_character: Callable[[ExportOptions], bool] = _never


def _threejs(job: Job) -> Written:
    options = job.options
    compacts: list[Compact] = []
    for made in job.made:
        clip = node_clip.additive(made.clip) if options.additive else made.clip
        compacts.append(clip_reduce.compact(clip, job.stage.body, options.bound_of(made), JsonWriting(), thin=options.thin))
    decimals = 7 if options.bound is None else 6
    converted = [threejs_clip.to_clip(job.stage.tree, one, morph_names=options.morph_names, time_decimals=decimals) for one in compacts]
    groups = [list(range(len(compacts)))] if options.together and len(compacts) > 1 else [[k] for k in range(len(compacts))]
    files: list[ExportedFile] = []
    entries: list[dict[str, object]] = []
    for members in groups:
        stem = job.stem if len(members) > 1 else job.stem_of(members[0])
        path = job.folder / f"{stem}{FORMATS['threejs'].suffix if len(members) == 1 else '.clips.json'}"
        size = threejs.write(path, [clip for k in members for clip in converted[k]])
        found = clip_read.threejs(path, job.stage.tree)
        errors = [_check(job, k, compacts[k], found[compacts[k].clip.name]) for k in members]
        files.append(_file(path, "threejs", [compacts[k] for k in members], job, members, errors, size))
        entries += [_entry(path, converted[k], compacts[k], error) for k, error in zip(members, errors, strict=True)]
    if options.manifest:
        name = f"{job.stem}.glb" if "glb" in options.formats else "" if job.stage.path is None else job.stage.path.name
        name = "" if name.startswith(".") else name
        text = threejs_clip.manifest(name, entries, job.stage.renamed).encode("utf-8")
        path = job.folder / f"{job.stem}.manifest.json"
        files.append(ExportedFile(path, "manifest", tuple(one.clip.name for one in compacts), gltf_write.save(path, text)))
    return files, []


def _entry(path: Path, clips: Sequence[threejs.Clip], one: Compact, error: Measured) -> dict[str, object]:
    clip = one.clip
    return {
        "name": clip.name,
        "file": path.name,
        "uuid": clips[0].uuid,
        "duration": clips[0].duration,
        "rate": None if clip.rate is None else f"{clip.rate.numerator}/{clip.rate.denominator}",
        "loop": clip.loop,
        "additive": clip.additive,
        "root": clips[1].name if len(clips) > 1 else None,
        "tracks": len(clips[0].tracks),
        "keys": sum(len(c.times) for c in clip.channels),
        "error_mm": round(1000.0 * error.worst, 4),
    }


def _glb(job: Job) -> Written:
    options, stage = job.options, job.stage
    notes: list[str] = []
    compacts = [clip_reduce.compact(m.clip, stage.body, options.bound_of(m), GlbWriting(), thin=options.thin) for m in job.made]
    groups = [list(range(len(compacts)))] if options.together and len(compacts) > 1 else [[k] for k in range(len(compacts))]
    files: list[ExportedFile] = []
    for members in groups:
        some = [compacts[k] for k in members]
        stem = job.stem if len(members) > 1 or (options.mesh and len(compacts) == 1) else job.stem_of(members[0])
        if options.mesh and stage.path is not None:
            file = gltf_clips.character(stage.path, some)
        else:
            file = gltf_clips.skeleton(stage.tree, some)
            if any(m.clip.morphs for m in job.made):
                notes.append("Morph targets need a mesh, so they are not in a GLB of bones alone; write the mesh too, or three.js clips.")
        path = job.folder / f"{stem}.glb"
        size = gltf_write.save(path, file.glb())
        found = clip_read.gltf(path, stage.tree)
        errors = [_check(job, k, compacts[k], found[compacts[k].clip.name]) for k in members]
        files.append(_file(path, "glb", some, job, members, errors, size))
    return files, notes


def _shapes(job: Job, clip: int) -> clip_extras.Shapes:
    """What a clip does to shape keys."""
    return cast("clip_extras.Shapes", job.made[clip].facts.get("shapes", {}))


def _without_scale(job: Job, label: str) -> list[str]:
    """A note on scaled bones, for formats that have no scale."""
    names = list(dict.fromkeys(name for one in job.made for name in cast("tuple[str, ...]", one.facts.get("scaled", ()))))
    if not names:
        return []
    shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    return [f"{label} has no scale, so these scaled bones only stand and turn as they should: {shown}."]


def _fbx(job: Job) -> Written:
    from . import export_fbx

    files: list[ExportedFile] = []
    notes = _without_scale(job, "This FBX")
    for k, take in enumerate(job.takes):
        path = job.folder / f"{job.stem_of(k)}.fbx"
        more = export_fbx.write(path, job.stage.obj, take, preset=job.options.fbx, mesh=job.options.mesh, shapes=_shapes(job, k))
        notes += more
        files.append(ExportedFile(path, "fbx", (take.name,), path.stat().st_size, seconds=take.duration))
    return files, notes


def _vrma(job: Job) -> Written:
    roles = rig.match(job.stage.target.skeleton)
    files: list[ExportedFile] = []
    notes = _without_scale(job, "A VRM animation")
    for k, take in enumerate(job.takes):
        path = job.folder / f"{job.stem_of(k)}.vrma"
        expressions, more = vrm_expressions.of_shapes(_shapes(job, k), job.stage.path)
        notes += more
        one = vrma.write(path, take, roles.joints, bound=job.options.bound, expressions=expressions)
        keys = sum(len(c.times) for c in one.clip.channels)
        samples = take.frames * len(one.clip.channels)
        error = one.measured
        files.append(
            ExportedFile(path, "vrma", (take.name,), path.stat().st_size, error.worst, error.p99, keys, samples, seconds=take.duration)
        )
    return files, notes


def _bvh(job: Job) -> Written:
    files: list[ExportedFile] = []
    for k, take in enumerate(job.takes):
        path = job.folder / f"{job.stem_of(k)}.bvh"
        formats.write(take, path)
        files.append(ExportedFile(path, "bvh", (take.name,), path.stat().st_size, seconds=take.duration))
    return files, _without_scale(job, "BVH")


def _map(job: Job) -> Written:
    from . import export_map

    return export_map.write(job)


def _viewer(job: Job) -> Written:
    from . import preview_page

    return preview_page.write(job)


def _check(job: Job, k: int, one: Compact, found: Sequence[Channel]) -> Measured:
    """The error of what is in the file: read back, and measured anew where that is not number by number what was measured before."""
    clip = job.made[k].clip
    meant = {(c.node, c.path): c for c in one.clip.channels}
    if len(found) != len(meant) or any((c.node, c.path) not in meant for c in found):
        raise FileError("What was written is not what was meant; this is a fault of the add-on, please report it.")
    if all(_same(meant[c.node, c.path], c) for c in found):
        return one.measured
    between = any(len(meant[c.node, c.path].times) != len(c.times) for c in clip.channels)
    return clip_reduce.measure(one.clip, job.stage.body, clip.channels, found, between=between)


def _same(meant: Channel, found: Channel) -> bool:
    """Equal in single precision, which is what players keep; a constant is written as two keys."""
    values = np.repeat(meant.values, 2, axis=0) if meant.constant else meant.values
    times = found.times if meant.constant else meant.times.astype(np.float32)
    return (
        values.shape == found.values.shape
        and float(np.abs(values - found.values).max()) <= 1.2e-7 * max(1.0, float(np.abs(values).max()))
        and float(np.abs(times - found.times).max()) <= 1e-6
    )


def _file(
    path: Path, name: str, some: Sequence[Compact], job: Job, members: Sequence[int], errors: Sequence[Measured], size: int
) -> ExportedFile:
    return ExportedFile(
        path,
        name,
        tuple(one.clip.name for one in some),
        size,
        max(e.worst for e in errors),
        max(e.p99 for e in errors),
        sum(len(c.times) for one in some for c in one.clip.channels),
        sum(len(c.times) for k in members for c in job.made[k].clip.channels),
        max(one.clip.duration for one in some),
    )


FORMATS: dict[str, ExportFormat] = {
    "threejs": ExportFormat("three.js Clips", ".clip.json", _threejs),
    "glb": ExportFormat("GLB", ".glb", _glb, _with_mesh),
    "fbx": ExportFormat("FBX", ".fbx", _fbx),
    "vrma": ExportFormat("VRM Animation", ".vrma", _vrma),
    "bvh": ExportFormat("BVH", ".bvh", _bvh),
    "viewer": ExportFormat("Browser Page", ".html", _viewer, _always),
    "map": ExportFormat("Bone Map", ".map.json", _map, _always),
}
"""The formats by name, in the order in which they are shown."""
