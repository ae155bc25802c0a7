# SPDX-License-Identifier: GPL-3.0-or-later
"""One finished retarget in one export format."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Protocol

import bpy

from ..motion.errors import MocapError
from . import clip_frames, export, export_character, node_clips, playing
from .export import ExportOptions, Job
from .job import JobResult


class Choices(Protocol):
    """How clips are written; see :class:`.export.ExportOptions`."""

    bound: float | None
    match: bool
    loop: bool
    mesh: bool
    fbx: str


def write(
    obj: bpy.types.Object, result: JobResult, name: str, path: Path, choices: Choices, *, character: Path | None = None
) -> tuple[str, ...]:
    """Write a retarget's motion to ``path``; returns notes.

    Parameters
    ----------
    obj : armature object
    result : JobResult
    name : str
        A key of :data:`.export_formats.FORMATS`.
    path : Path
    choices : Choices
    character : Path, optional
        The glTF file the character came from.

    Raises
    ------
    MocapError
        One plain sentence; no file is left then.
    """
    from .export_formats import FORMATS

    scene = bpy.context.scene
    options = ExportOptions(
        (name,),
        bound=choices.bound,
        match=choices.match,
        loop=choices.loop,
        mesh=choices.mesh,
        fbx=choices.fbx,
        together=False,
        manifest=False,
    )
    if name not in FORMATS:
        raise MocapError(f'"{name}" is not an export format; choose from {", ".join(FORMATS)}.')
    with tempfile.TemporaryDirectory(prefix=".mocap-", dir=path.parent) as folder:
        known = character
        if known is None and FORMATS[name].needs_character(options):
            known = export_character.export(obj, Path(folder) / ".character.glb")
        on = node_clips.stage(obj, known, scene, result.target)
        chosen = playing.choose(obj, result.action)
        if choices.match or result.on_bones.scales:  # scales are told by the action as Blender plays it
            made = node_clips.of_action(on, chosen, scene=scene, bound=options.matched)
        else:
            made = node_clips.of_motion(on, result.on_bones, name=result.action.name)
            made = node_clips.with_extras(on, made, chosen, clip_frames.sample_frames(chosen, scene))
        made = export.shaped(made, options)
        files, said = FORMATS[name].write(Job(on, (made,), (made.take,), options, Path(folder), scene, "character"))
        os.replace(files[0].path, path)
    more = []
    if name == "threejs" and character is None:
        more.append(f'The three.js clip plays on the GLB that Blender exports of "{obj.name}".')
    return (*made.notes, *said, *more)
