# SPDX-License-Identifier: GPL-3.0-or-later
"""Characters from files, through Blender's own importers. All of a character comes in, or nothing does.

A character arrives as an animator wants to find it: at rest, nothing playing. Animations of its file are kept as actions with a fake user.
"""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import addon_utils
import bpy
from mathutils import Matrix

from ..motion.errors import FileError
from . import blend_files, compat

_NUMBERED = re.compile(r"\.\d{3,}$")


@dataclass(frozen=True, eq=False)
class Character:
    """What a file brought in.

    Parameters
    ----------
    armature : armature object
    objects : tuple of objects
        Everything that came with it, the armature included.
    actions : tuple of actions
        Animations of the file, kept but not assigned.
    notes : tuple of str
        What a person should know, one plain sentence each.
    """

    armature: bpy.types.Object
    objects: tuple[bpy.types.Object, ...]
    actions: tuple[bpy.types.Action, ...]
    notes: tuple[str, ...] = ()


def bring_in(path: str | Path, armature: str | None = None) -> Character:
    """Bring a character file into the current scene.

    The scene's rate, range, units, selection, active object and mode stay as they are.

    Parameters
    ----------
    path : path
        ``.blend`` (objects appended with their collections), ``.glb``, ``.gltf``, ``.vrm`` or ``.fbx``.
    armature : str, optional
        The armature's name in the file, where there are several; by default the one with the most bones.

    Raises
    ------
    FileError
        The file is missing, of another kind, cannot be read, or holds no armature (of that name). Nothing has been brought in then.
    """
    path = Path(path).absolute()
    importer = _IMPORTERS.get(path.suffix.lower())
    if importer is None:
        raise FileError(f"this is not a character file; choose one of {', '.join(_IMPORTERS)}.", path)
    if not path.is_file():
        raise FileError("there is no such file; check the path.", path)
    before = _idents()
    scene = bpy.context.scene
    with _as_it_was(scene):
        try:
            with _quiet():
                importer(path)
            return _settle(path, before, armature)
        except FileError:
            _remove(before)
            raise
        except Exception as error:  # an importer may raise anything on a damaged file
            _remove(before)
            raise FileError(
                f"Blender cannot read this file ({_reason(error, path)}); export it again from where it was made.", path
            ) from error


def reopen(path: str | Path, armature: str | None = None) -> bpy.types.Object:
    """Open a ``.blend`` in place of what is open and return its armature. For the command line only. Scripts in the file do not run.

    Raises
    ------
    FileError
        As :func:`bring_in`; the file that was open may be gone.
    """
    path = Path(path).absolute()
    try:
        with _quiet():
            bpy.ops.wm.open_mainfile(filepath=str(path), load_ui=False, use_scripts=False)
    except RuntimeError as error:
        raise FileError(f"Blender cannot open this file ({_reason(error, path)}).", path) from error
    return _choose(path, list(bpy.context.scene.objects), armature)[0]


# --- importers -----------------------------------------------------------------------------------------------------------------------


def _import_gltf(path: Path) -> None:
    _enable("io_scene_gltf2")
    wanted: dict[str, object] = {
        "disable_bone_shape": True,  # else an icosphere object is made for the bones to show
        "guess_original_bind_pose": True,
        "import_scene_as_collection": False,
        "import_scene_extras": False,  # they would become properties of the person's scene
    }
    known = bpy.ops.import_scene.gltf.get_rna_type().properties
    compat.settle_context()
    bpy.ops.import_scene.gltf(filepath=str(path), **{k: v for k, v in wanted.items() if k in known})


def _import_fbx(path: Path) -> None:
    if "fbx_import" in dir(bpy.ops.wm):  # Blender 4.5 on, unless it was built without
        bpy.ops.wm.fbx_import(filepath=str(path))
        return
    _enable("io_scene_fbx")
    bpy.ops.import_scene.fbx(filepath=str(path))


def _enable(module: str) -> None:
    """Importers are add-ons; a Blender may run without them."""
    if not addon_utils.check(module)[1] and addon_utils.enable(module, default_set=False) is None:
        raise RuntimeError(f"the add-on {module} is missing")


_IMPORTERS: dict[str, Callable[[Path], None]] = {
    ".blend": blend_files.append_all,
    ".glb": _import_gltf,
    ".gltf": _import_gltf,
    ".vrm": _import_gltf,  # a .glb by another name; the importer goes by content
    ".fbx": _import_fbx,
}


# --- after the import ----------------------------------------------------------------------------------------------------------------


def _settle(path: Path, before: set[int], wanted: str | None) -> Character:
    objects = tuple(o for o in bpy.data.objects if o.session_uid not in before)
    chosen, notes = _choose(path, list(objects), wanted)
    posed = False
    for obj in objects:
        for owner in (obj, getattr(obj.data, "shape_keys", None)):
            _stop(owner)
        if obj.type == "ARMATURE":
            posed = _clear_pose(obj) or posed
    actions = tuple(a for a in bpy.data.actions if a.session_uid not in before)
    for action in actions:
        action.use_fake_user = True
    if actions:
        names = ", ".join(f'"{a.name}"' for a in actions[:4]) + (f" and {len(actions) - 4} more" if len(actions) > 4 else "")
        notes.append(f"The file's animations were kept as actions and are not playing: {names}.")
    elif posed:
        notes.append("The character was posed in its file; it now stands in its rest pose.")
    return Character(chosen, objects, actions, tuple(notes))


def _choose(path: Path, objects: list[bpy.types.Object], wanted: str | None) -> tuple[bpy.types.Object, list[str]]:
    armatures = [o for o in objects if o.type == "ARMATURE" and len(o.data.bones)]
    if not armatures:
        raise FileError("there is no armature in this file; a character needs one.", path)
    names = ", ".join(f'"{o.name}"' for o in armatures)
    if wanted is not None:
        # A name that was taken in the open file got a number on the way in.
        found = [o for o in armatures if o.name == wanted] or [o for o in armatures if _NUMBERED.sub("", o.name) == wanted]
        if not found:
            raise FileError(f'there is no armature called "{wanted}"; there is {names}.', path)
        return found[0], []
    best = max(armatures, key=lambda o: len(o.data.bones))
    several = f'The file holds {len(armatures)} armatures ({names}); the one with the most bones, "{best.name}", was taken.'
    return best, [several] if len(armatures) > 1 else []


def _stop(owner: bpy.types.ID | None) -> None:
    """Take action and NLA tracks off; drivers stay."""
    animation = owner.animation_data if owner is not None else None
    if animation is None:
        return
    animation.use_tweak_mode = False
    compat.assign(animation, None)
    for track in list(animation.nla_tracks):
        animation.nla_tracks.remove(track)


def _clear_pose(obj: bpy.types.Object) -> bool:
    """Put every bone to rest; whether one stood visibly away from it."""
    identity = Matrix()
    moved = False
    for pose in obj.pose.bones:
        basis = pose.matrix_basis
        turned = max(abs(basis[i][k] - identity[i][k]) for i in range(3) for k in range(3))
        moved = moved or turned > 1e-3 or basis.translation.length > 1e-3 * pose.bone.length
        pose.matrix_basis = identity
    return moved


def _reason(error: Exception, path: Path) -> str:
    """The telling line of what an importer said, without the folders."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    line = lines[-1] if lines and lines[0].startswith("Error: Python") else lines[0] if lines else type(error).__name__
    return line.removeprefix("Error: ").replace(str(path), path.name).rstrip(". ")[:200]


# --- nothing stays behind ------------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Importers chat on both streams; what goes wrong reaches us as an exception anyway."""
    with io.StringIO() as chat, contextlib.redirect_stdout(chat), contextlib.redirect_stderr(chat):
        yield


def _collections() -> Iterator[bpy.types.bpy_prop_collection]:
    for prop in bpy.data.bl_rna.properties:
        if prop.type == "COLLECTION" and prop.identifier not in ("window_managers", "workspaces", "screens"):
            yield getattr(bpy.data, prop.identifier)


def _idents() -> set[int]:
    """Session identifiers of every data-block there is."""
    return {block.session_uid for blocks in _collections() for block in blocks}


def _remove(before: set[int]) -> None:
    """Remove every data-block that was not there ``before``."""
    new = [block for blocks in _collections() for block in blocks if block.session_uid not in before]
    if new:
        bpy.data.batch_remove(new)


@contextlib.contextmanager
def _as_it_was(scene: bpy.types.Scene) -> Iterator[None]:
    """Importers change rate and range, select what they made and leave the mode; undo that."""
    render, layer = scene.render, bpy.context.view_layer
    kept = render.fps, render.fps_base, scene.frame_start, scene.frame_end, scene.frame_current, scene.frame_subframe
    units = scene.unit_settings.system, scene.unit_settings.scale_length
    active, collection = layer.objects.active, layer.active_layer_collection
    selected = [o for o in layer.objects if o.select_get()]
    mode = active.mode if active else "OBJECT"
    if mode != "OBJECT":
        bpy.ops.object.mode_set(mode="OBJECT")
    try:
        yield
    finally:
        render.fps, render.fps_base, scene.frame_start, scene.frame_end = kept[:4]
        if (scene.frame_current, scene.frame_subframe) != kept[4:]:
            scene.frame_set(kept[4], subframe=kept[5])
        scene.unit_settings.system, scene.unit_settings.scale_length = units
        if bpy.context.object is not None and bpy.context.object.mode != "OBJECT":
            bpy.ops.object.mode_set(mode="OBJECT")
        for obj in layer.objects:
            obj.select_set(obj in selected)
        layer.objects.active = active
        layer.active_layer_collection = collection
        if active is not None and mode != "OBJECT":
            bpy.ops.object.mode_set(mode=mode)
