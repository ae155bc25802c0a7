# SPDX-License-Identifier: GPL-3.0-or-later
"""The character in a scene of its own, as new for every take."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from ..blender import characters, job, recorded, scenes

if TYPE_CHECKING:
    import bpy

    from ..blender.job import JobResult
    from ..motion.take import Take
    from ..rig.table import CorrectionTable


class Stage:
    """Brings a character in once, and reopens it for every take: a failed take cannot leave anything to the next.

    Parameters
    ----------
    character : Path
        A ``.blend`` is opened as it is, with its scene and rate; anything else comes into an empty scene at 24 fps.

    armature : str, optional
        Name of the armature in the file; without it the one with the most bones.

    Raises
    ------
    MocapError
        The file cannot be brought in, or holds no armature.
    """

    def __init__(self, character: Path, armature: str | None = None) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="mocap-")
        self._armature = armature
        self._notes: tuple[str, ...] = ()
        self.gltf = character if character.suffix.lower() in (".glb", ".gltf", ".vrm") else None
        try:
            if character.suffix.lower() == ".blend":
                self._file = character
                bones = self.set(None).data.bones
            else:
                scenes.fresh()
                found = characters.bring_in(character, armature)
                self._armature, self._notes = found.armature.name, found.notes
                bones = found.armature.data.bones
                self._file = scenes.save_blend(Path(self._folder.name) / "character.blend")
            self._bones = tuple(bones.keys())
        except BaseException:
            self._folder.cleanup()
            raise

    def __enter__(self) -> Stage:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._folder.cleanup()

    def set(self, rate: Fraction | None) -> bpy.types.Object:
        """Open the character anew, at ``rate`` (None: the file's own), and return its armature."""
        obj = characters.reopen(self._file, self._armature)
        if rate is not None:
            scenes.set_rate(scenes.current(), rate)
        return obj

    @property
    def rate(self) -> Fraction:
        """Frames a second of the scene that is set."""
        return scenes.scene_rate(scenes.current())

    def table_of(self, take: Take) -> CorrectionTable | None:
        """The correction table that is kept with a take, where it is of this character."""
        return recorded.table_of(take, self._bones)

    def retarget(
        self,
        obj: bpy.types.Object,
        take: Take,
        table: CorrectionTable | None,
        *,
        options: job.JobOptions | None = None,
    ) -> JobResult:
        """The take onto the armature, with the scene's frame range round it."""
        result = job.retarget_onto(obj, take, table=table, options=options)
        start, end = result.action.frame_range
        scenes.set_frame_range(scenes.current(), start, end)
        return replace(result, notes=tuple(dict.fromkeys((*self._notes, *result.notes))))
