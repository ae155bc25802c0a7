# SPDX-License-Identifier: GPL-3.0-or-later
"""Actions of a character out of Blender: three.js clips, GLB, FBX, VRM animations, BVH.

All files of one call appear together or not at all. What can be read back is read back and measured against the samples it was made of, so
that the error in the report is that of the file, not of an intention.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import bpy

from ..formats import node_clip, threejs_clip
from ..motion.errors import FileError, MocapError
from ..motion.take import Take
from . import node_clips, playing
from .node_clips import Made, Progress, Stage
from .playing import Playing


@dataclass(frozen=True)
class ExportOptions:
    """What is exported and how.

    Parameters
    ----------
    formats : tuple of str
        Keys of :data:`.export_formats.FORMATS`.
    bound : float or None
        Metres: how far anything on the character may be moved by leaving keys out and writing numbers shorter. None: every sample, every
        digit.
    thin : bool
        Whether keys may be left out.
    match : bool
        Add keys where Blender's own way between two keys differs from a slerp by more than the bound (0.1 mm without one).
    bones : tuple of str or None
        Only these bones.
    loop : bool or None
        Close each clip: its end is its beginning. None: those whose action says it is cyclic.
    additive : bool
        Three.js clips as differences from their first pose.
    in_place : bool
        Take the way over the ground off and write it apart.
    same_bones : bool
        Clips written together all have the bones that any of them moves, so that they fade into each other evenly.
    morph_names : bool
        Three.js morph targets by name; by their number otherwise.
    mesh : bool
        GLB and FBX with the character; otherwise its bones and their motion alone.
    fbx : "unreal" or "unity"
        Who the FBX is for.
    together : bool
        One GLB, and one three.js file, with all clips; otherwise one file for each.
    manifest : bool
        Beside three.js clips a list of them.
    map_precision : "float32" or "float16"
        Of bone transform maps.
    map_layout : "tqs" or "matrices"
        Local transforms, which the player of this add-on blends; or skinning matrices.
    map_container : "bin" or "ktx2"
    """

    formats: tuple[str, ...] = ("threejs",)
    bound: float | None = 1e-4
    thin: bool = True
    match: bool = False
    bones: tuple[str, ...] | None = None
    loop: bool | None = None
    additive: bool = False
    in_place: bool = False
    same_bones: bool = True
    morph_names: bool = True
    mesh: bool = True
    fbx: str = "unreal"
    together: bool = True
    manifest: bool = True
    map_precision: Literal["float32", "float16"] = "float32"
    map_layout: Literal["tqs", "matrices"] = "tqs"
    map_container: Literal["bin", "ktx2"] = "bin"

    @property
    def matched(self) -> float | None:
        """Metres: how far Blender's own way between keys may be from a clip; what is left of the bound is for making it smaller."""
        if not self.match:
            return None
        return (0.5 if self.bound is not None or "map" in self.formats else 1.0) * (1e-4 if self.bound is None else self.bound)

    def bound_of(self, made: Made) -> float | None:
        """Metres: how far reduction may move anything of a clip."""
        return self.bound if self.bound is None or made.gap is None else max(self.bound - 1.1 * made.gap, 0.3 * self.bound)


PRESETS: Mapping[str, ExportOptions] = {
    "web": ExportOptions(("threejs", "glb"), bound=1e-4),
    "film": ExportOptions(("threejs", "glb"), bound=None, match=True),
    "crowd": ExportOptions(("glb", "map"), bound=5e-4, mesh=True, in_place=True),
    "unreal": ExportOptions(("fbx",), fbx="unreal", bound=None, together=False),
    "unity": ExportOptions(("fbx",), fbx="unity", bound=None, together=False),
    "vrm": ExportOptions(("vrma",), bound=1e-4, together=False),
}
"""Settings that go together, by what they are for."""


@dataclass(frozen=True)
class ExportedFile:
    """A file that was written.

    Parameters
    ----------
    path : Path
    format : str
    clips : tuple of str
        Names of the clips in it.
    size : int
        Bytes.
    error, p99 : float or None
        Metres: the largest error anywhere on the character of what is in the file, and the 99th percentile; None where it is not measured.
    keys, samples : int
        Keys that were written and that there were before any were left out, over all channels.
    seconds : float
        The longest clip.
    """

    path: Path
    format: str
    clips: tuple[str, ...]
    size: int
    error: float | None = None
    p99: float | None = None
    keys: int = 0
    samples: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class ExportReport:
    """What an export wrote. ``gap``: metres, how far Blender's own way between keys is from the clips; ``took``: seconds by step."""

    files: tuple[ExportedFile, ...]
    notes: tuple[str, ...] = ()
    gap: float | None = None
    took: Mapping[str, float] = field(default_factory=dict[str, float])


@dataclass(frozen=True, eq=False)
class Job:
    """What a format's writer is given. ``folder`` is a hidden one: the files are moved out of it when all are written."""

    stage: Stage
    made: Sequence[Made]
    takes: Sequence[Take]
    options: ExportOptions
    folder: Path
    scene: bpy.types.Scene
    stem: str

    def stem_of(self, clip: int) -> str:
        """The name, without its ending, of a file for one clip alone: never another clip's."""
        return unique([safe_name(one.clip.name) for one in self.made])[clip]


def export_actions(
    obj: bpy.types.Object,
    actions: Sequence[str | bpy.types.Action | tuple[str, str]],
    folder: str | Path,
    options: ExportOptions | None = None,
    *,
    character: str | Path | None = None,
    names: Sequence[str] | None = None,
    scene: bpy.types.Scene | None = None,
    progress: Progress | None = None,
) -> ExportReport:
    """Export actions of a character, whether assigned or not.

    Parameters
    ----------
    obj : armature object
    actions : sequence
        Actions or their names, or (action, slot) names where the slot matters. An empty name is what the rig plays now, with its NLA.
    folder : path
        Must exist.
    options : ExportOptions, optional
    character : path, optional
        The glTF file the character came from, for clips that are to play on it. Without it Blender exports one where the formats need it.
    names : sequence of str, optional
        Names of the clips; the actions' by default. Made unique.
    scene : scene, optional
        Whose rate counts.
    progress : callable, optional
        Called with the share done; returning False cancels.

    Returns
    -------
    ExportReport

    Raises
    ------
    MocapError
        One plain sentence; nothing has been written then.
    """
    options = options or ExportOptions()
    scene = scene or bpy.context.scene
    chosen = [_chosen(obj, one) for one in actions]
    if not chosen:
        raise MocapError("No action is chosen; choose what to export.")
    wanted = unique([one.name for one in chosen] if names is None else list(names))
    started = time.perf_counter()
    with _Hidden(folder) as hidden:
        on, exported = _stage(obj, options, character, hidden, scene)
        made: list[Made] = []
        for k, (one, name) in enumerate(zip(chosen, wanted, strict=True)):
            step = None if progress is None else (lambda share, k=k: progress((k + 0.9 * share) / len(chosen)))
            made.append(_made(on, one, name, options, scene, step))
        hidden.keep(character, bpy.data.filepath)
        return write(on, made, hidden, options, scene=scene, took={"character": exported, "read": time.perf_counter() - started - exported})


def write(
    on: Stage,
    made: Sequence[Made],
    hidden: _Hidden,
    options: ExportOptions,
    *,
    scene: bpy.types.Scene,
    took: dict[str, float] | None = None,
) -> ExportReport:
    """Write clips in the formats that are asked for; the files are moved to their place at the end."""
    from .export_formats import FORMATS

    took = took or {}
    if options.same_bones and len(made) > 1 and options.together:
        clips = node_clip.same_nodes([one.clip for one in made], threejs_clip.standing(on.tree))
        made = [replace(one, clip=clip) for one, clip in zip(made, clips, strict=True)]
    job = Job(on, made, [one.take for one in made], options, hidden.path, scene, safe_name(on.obj.name))
    files: list[ExportedFile] = []
    notes: list[str] = [note for one in made for note in one.notes]
    for name in dict.fromkeys(options.formats):
        if name not in FORMATS:
            raise MocapError(f'"{name}" is not an export format; choose from {", ".join(FORMATS)}.')
        started = time.perf_counter()
        more, said = FORMATS[name].write(job)
        files += more
        notes += said
        took[name] = time.perf_counter() - started
    placed = hidden.release(files)
    gaps = [one.gap for one in made if one.gap is not None]
    return ExportReport(tuple(placed), tuple(dict.fromkeys(notes)), max(gaps) if gaps else None, took)


def unique(names: Sequence[str]) -> list[str]:
    """Names that differ from each other also where case does not count; the first keeps its own."""
    taken: set[str] = set()
    out: list[str] = []
    for name in names:
        found, number = name or "clip", 1
        while found.casefold() in taken:
            number += 1
            found = f"{name or 'clip'} {number}"
        taken.add(found.casefold())
        out.append(found)
    return out


def safe_name(name: str) -> str:
    """A name that every file system takes."""
    kept = "".join("_" if c in '<>:"/\\|?*' or ord(c) < 32 else c for c in name).strip().rstrip(". ")
    return kept.lstrip(".")[:100] or "clip"


def _chosen(obj: bpy.types.Object, one: str | bpy.types.Action | tuple[str, str]) -> Playing:
    if isinstance(one, tuple):
        return playing.choose(obj, one[0], one[1] or None)
    return playing.choose(obj, one or None)


def _stage(
    obj: bpy.types.Object, options: ExportOptions, character: str | Path | None, hidden: _Hidden, scene: bpy.types.Scene
) -> tuple[Stage, float]:
    """The character, with its file where a format needs one; seconds that took."""
    from .export_formats import FORMATS

    playing.check(obj)
    needs = any(name in FORMATS and FORMATS[name].needs_character(options) for name in options.formats)
    started = time.perf_counter()
    if character is None and needs:
        from . import export_character

        character = export_character.export(obj, hidden.path / ".character.glb")
    return node_clips.stage(obj, character, scene), time.perf_counter() - started


def _made(on: Stage, chosen: Playing, name: str, options: ExportOptions, scene: bpy.types.Scene, progress: Progress | None) -> Made:
    made = node_clips.of_action(
        on,
        chosen,
        name=name,
        scene=scene,
        bones=options.bones,
        bound=options.matched,
        in_place=options.in_place,
        progress=progress,
    )
    return shaped(made, options, cyclic=bool(chosen.action is not None and chosen.action.use_frame_range and chosen.action.use_cyclic))


def shaped(made: Made, options: ExportOptions, *, cyclic: bool = False) -> Made:
    """A clip closed, where it is a loop."""
    if options.loop or (options.loop is None and cyclic):
        return replace(made, clip=node_clip.closed(made.clip))
    return made


class _Hidden:
    """A hidden folder beside where the files will be, gone at the end whatever happens."""

    def __init__(self, folder: str | Path) -> None:
        self.target = Path(folder)
        self._kept: list[Path] = []
        if not self.target.is_dir():
            raise FileError("There is no such folder; create it, or choose another.", self.target)

    def __enter__(self) -> _Hidden:
        try:
            self._made = tempfile.TemporaryDirectory(prefix=".mocap-", dir=self.target)
        except OSError as error:
            raise FileError(f"Nothing can be written there ({error.strerror or error}).", self.target) from None
        self.path = Path(self._made.name)
        return self

    def __exit__(self, *_: object) -> None:
        self._made.cleanup()

    def keep(self, *inputs: str | Path | None) -> None:
        """Files that must not be replaced."""
        self._kept += [Path(one) for one in inputs if one and Path(one).exists()]

    def release(self, files: Sequence[ExportedFile]) -> list[ExportedFile]:
        """Move the files to where they belong."""
        out = [replace(one, path=self.target / one.path.name) for one in files]
        kept = next((one.path for one in out if one.path.exists() and any(one.path.samefile(p) for p in self._kept)), None)
        if kept is not None:
            raise FileError("This is the file the character came from, and would be replaced; choose another folder.", kept)
        folder = next((one.path for one in out if one.path.is_dir()), None)
        if folder is not None:
            raise FileError("There is a folder of this name; move it away.", folder)
        try:
            for one, placed in zip(files, out, strict=True):
                os.replace(one.path, placed.path)
        except OSError as error:
            raise FileError(f"The files cannot be written there ({error.strerror or error}).", self.target) from None
        return out
