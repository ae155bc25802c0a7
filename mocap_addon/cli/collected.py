# SPDX-License-Identifier: GPL-3.0-or-later
"""What is written once for all takes of a run: a bone transform map, and a page for the browser."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ..motion.errors import FileError
from .naming import COLLECTED, file_stem

if TYPE_CHECKING:
    from ..blender.preview_page import PageClip
    from ..formats.gltf_nodes import NodeTree
    from ..motion.take import Take
    from .exports import Finished


@dataclass
class Collector:
    """The clips of a run, kept until its end.

    Parameters
    ----------
    formats : tuple of str
        Keys of :data:`.naming.COLLECTED`.
    name : str
        The character's file without its ending.
    half, ktx2 : bool
        The map's numbers in half precision; in a KTX2 file.
    """

    formats: tuple[str, ...]
    name: str
    half: bool = False
    ktx2: bool = False
    clips: list[PageClip] = field(default_factory=list, init=False)
    _folder: tempfile.TemporaryDirectory[str] | None = field(default=None, init=False)
    _gltf: Path | None = field(default=None, init=False)
    _tree: NodeTree | None = field(default=None, init=False)
    _roles: dict[str, str] = field(default_factory=dict, init=False)

    def add(self, done: Finished, source: Take) -> None:
        """Keep a finished take."""
        if not self.formats:
            return
        from .. import rig
        from ..blender import export, export_character, node_clips
        from ..blender.export import ExportOptions
        from ..blender.preview_page import PageClip

        if self._gltf is None:
            self._gltf = done.gltf or export_character.export(done.obj, Path(self._own().name) / "character.glb")
        on = node_clips.stage(done.obj, self._gltf, target=done.result.target)
        made = node_clips.of_motion(on, done.result.on_bones, name=done.result.action.name)
        made = export.shaped(made, ExportOptions(loop=done.export.loop))
        if self._tree is None:
            self._tree = on.tree
            found = rig.match(on.target.skeleton).joints
            self._roles = {
                role: on.tree.loader_names[int(on.nodes[joints[0]])]
                for role, joints in found.items()
                if joints and on.nodes[joints[0]] >= 0
            }
        self.clips.append(PageClip(made.clip, source, tuple(made.notes)))

    def write(self, folder: Path, stem: str) -> dict[str, object]:
        """Write the files; a record of them. All of them or none.

        Raises
        ------
        MocapError
            One of them cannot be written; none is there then.
        """
        from dataclasses import replace

        from ..blender import export_map, preview_page
        from ..blender.export import unique
        from ..formats import transform_map

        assert self._tree is not None and self._gltf is not None
        names = unique([one.clip.name for one in self.clips])
        clips = [replace(one, clip=replace(one.clip, name=name)) for one, name in zip(self.clips, names, strict=True)]
        record: dict[str, object] = {"clips": names}
        with tempfile.TemporaryDirectory(prefix=".mocap-", dir=folder) as hidden:
            made: list[Path] = []
            files: dict[str, str] = {}
            if "map" in self.formats:
                precision = "float16" if self.half else "float32"
                baked = export_map.bake(self._tree, [one.clip for one in clips], self._gltf, precision=precision)
                path = Path(hidden) / (stem + COLLECTED["map"])
                made += transform_map.write(path, baked, container="ktx2" if self.ktx2 else "bin")
                files["map"], files["map_data"] = (str(folder / one.name) for one in made)
                record["map_error_mm"] = round(1000.0 * baked.error, 6)
            if "viewer" in self.formats:
                path = Path(hidden) / (stem + COLLECTED["viewer"])
                preview_page.page(path, self._gltf, clips, character=self.name, roles=self._roles)
                made.append(path)
                files["viewer"] = str(folder / path.name)
            _place(made, folder)
        return {**record, "files": files}

    def close(self) -> None:
        """Let go of the character that was exported for the clips."""
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def _own(self) -> tempfile.TemporaryDirectory[str]:
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="mocap-")
        return self._folder

    @property
    def stem(self) -> str:
        """The files' name without an ending, before it is made unique."""
        return file_stem(self.name)


def _place(made: Sequence[Path], folder: Path) -> None:
    taken = next((folder / path.name for path in made if (folder / path.name).is_dir()), None)
    if taken is not None:
        raise FileError("There is a folder of this name; move it away.", taken)
    try:
        for path in made:
            os.replace(path, folder / path.name)
    except OSError as error:
        raise FileError(f"The files cannot be written there ({error.strerror or error}).", folder) from None
