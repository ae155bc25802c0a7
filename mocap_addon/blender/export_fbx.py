# SPDX-License-Identifier: GPL-3.0-or-later
"""FBX files of a character and one motion, for Unreal and Unity, through Blender's own exporter.

What engines stumble over is made right before Blender sees it. A copy of the character is put into a scene of its own: its bones and meshes
are multiplied by where and how large the armature stands, in centimetres, so that every node of the file has scale 1 and FBX's own unit;
the motion is baked onto the copy as it is seen; constraints and drivers are gone. For Unity the copy is also turned Y up, so that the root
has no turn of -90 degrees. Blender's exporter asks each shape key for its value on every frame, so that is set while it writes; modifiers
other than the armature's would make it leave shape keys out, and are taken off the copy. Nothing of the person's is touched but a name:
where the file needs one that is taken, its owner lends it for the moment of writing.
"""

from __future__ import annotations

import contextlib
import importlib
import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import addon_utils
import bpy
import numpy as np
from mathutils import Matrix
from numpy.typing import NDArray

from ..motion import quat
from ..motion.errors import FileError, MocapError
from ..motion.take import Take
from ..retarget.motion import PoseMotion
from . import actions, armature, export_character, placement, scenes

Array = NDArray[np.float64]

_CENTIMETRES = 100.0
_Y_UP = Matrix(((1, 0, 0, 0), (0, 0, 1, 0), (0, -1, 0, 0), (0, 0, 0, 1)))


@dataclass(frozen=True)
class FbxPreset:
    """What a program expects. ``up``, ``forward``: axes as the file states them; ``turn``: what makes the character stand so."""

    label: str
    up: str
    forward: str
    turn: Matrix
    primary: str
    secondary: str


PRESETS: dict[str, FbxPreset] = {
    "unreal": FbxPreset("Unreal", "Z", "Y", Matrix.Identity(4), "Y", "X"),
    "unity": FbxPreset("Unity", "Y", "-Z", _Y_UP, "Y", "X"),
}


def write(
    path: str | Path,
    obj: bpy.types.Object,
    take: Take,
    *,
    preset: str = "unreal",
    mesh: bool = True,
    shapes: Mapping[str, Mapping[str, Array]] | None = None,
) -> list[str]:
    """Write a character and its motion.

    Parameters
    ----------
    path : path
    obj : armature object
    take : Take
        On the armature's bones, in the world's axes and metres; relative to where the armature stands.
    preset : "unreal" or "unity"
    mesh : bool
        With the meshes that the armature moves.
    shapes : mapping of str to mapping of str to (F,) array, optional
        Mesh object -> shape key -> values at the take's samples.

    Returns
    -------
    list of str
        Notes.

    Raises
    ------
    MocapError
        Blender's exporter is missing or fails, or the armature cannot be read. No file is left then.
    """
    path = Path(path)
    if preset not in PRESETS:
        raise MocapError(f'"{preset}" is no FBX preset; choose from {", ".join(PRESETS)}.')
    if not addon_utils.check("io_scene_fbx")[1] and addon_utils.enable("io_scene_fbx", default_set=False) is None:
        raise FileError("Blender's FBX exporter (io_scene_fbx) is missing; enable that add-on.", path)
    chosen = PRESETS[preset]
    with _copied(obj, chosen, mesh) as (scene, copy, meshes):
        even = _even(take)
        _bake(scene, copy, even, chosen)
        notes = [note for one, name in meshes for note in _kept_shapes(one, name)]
        values = _at(take, even, meshes, shapes or {})
        with ExitStack() as names:
            root = "Armature" if len([b for b in copy.data.bones if b.parent is None]) == 1 else "root"
            _lend(names, bpy.data.objects, copy, root)  # Unreal leaves a node called Armature out; else it becomes the root bone
            _lend(names, bpy.data.scenes, scene, take.name)  # what the animation is called
            for one, name in meshes:
                _lend(names, bpy.data.objects, one, name)
            names.enter_context(_moving(scene, values))
            _export(path, scene, [copy, *(one for one, _ in meshes)], chosen)
    return notes


Moving = list[tuple[bpy.types.ShapeKey, Array]]


def _even(take: Take) -> Take:
    """The take on whole frames of its rate."""
    rate = take.rate or Fraction(30)
    even = take.frames < 2 or float(np.abs(np.diff(take.times) * float(rate) - 1.0).max()) < 1e-3
    return replace(take, rate=rate) if even else take.resampled(rate)


def _kept_shapes(one: bpy.types.Object, name: str) -> list[str]:
    """Take off what would make Blender's exporter leave a mesh's shape keys out; a note on it."""
    keys = one.data.shape_keys
    if keys is None or len(keys.key_blocks) < 2:
        return []
    others = [m for m in one.modifiers if m.type != "ARMATURE"]
    shown = ", ".join(m.name for m in others if m.show_viewport or m.show_render)
    for modifier in others:
        one.modifiers.remove(modifier)
    return [f'"{name}" is written without its modifiers ({shown}), so that its shape keys can be in the FBX.'] if shown else []


def _at(take: Take, even: Take, meshes: Sequence[tuple[bpy.types.Object, str]], shapes: Mapping[str, Mapping[str, Array]]) -> Moving:
    """The shape keys of the copies that move, and their values on the frames of the file."""
    out: Moving = []
    for one, name in meshes:
        blocks = one.data.shape_keys.key_blocks if one.data.shape_keys is not None else {}
        for key, values in shapes.get(name, {}).items():
            if key in blocks:
                out.append((blocks[key], np.interp(even.times, take.times, values)))
    return out


@contextmanager
def _moving(scene: bpy.types.Scene, found: Moving) -> Iterator[None]:
    """While the exporter steps through the frames shape keys have their values: what plays in a scene that no window shows is never
    written back to them."""

    def put(stepped: bpy.types.Scene, *_: object) -> None:
        if stepped == scene:
            for block, values in found:
                block.value = float(values[min(max(scene.frame_current, 0), len(values) - 1)])

    for block, values in found:
        block.slider_min, block.slider_max = min(0.0, float(values.min())), max(1.0, float(values.max()))
    bpy.app.handlers.frame_change_post.append(put)
    try:
        yield
    finally:
        bpy.app.handlers.frame_change_post.remove(put)


def _export(path: Path, scene: bpy.types.Scene, objects: list[bpy.types.Object], preset: FbxPreset) -> None:
    exporter = importlib.import_module("io_scene_fbx.export_fbx_bin")
    layer = scene.view_layers[0]
    said: list[str] = []
    operator = SimpleNamespace(report=lambda kind, text: said.append(str(text)))
    with io.StringIO() as chat, contextlib.redirect_stdout(chat), contextlib.redirect_stderr(chat):
        try:
            layer.update()
            with bpy.context.temp_override(scene=scene, view_layer=layer):
                exporter.save_single(
                    operator,
                    scene,
                    layer.depsgraph,
                    filepath=str(path),
                    global_matrix=Matrix.Identity(4),
                    axis_up=preset.up,
                    axis_forward=preset.forward,
                    apply_unit_scale=True,
                    apply_scale_options="FBX_SCALE_UNITS",
                    context_objects=objects,
                    object_types={"ARMATURE", "MESH"},
                    use_mesh_modifiers=True,
                    mesh_smooth_type="FACE",
                    use_armature_deform_only=False,
                    add_leaf_bones=False,
                    primary_bone_axis=preset.primary,
                    secondary_bone_axis=preset.secondary,
                    bake_anim=True,
                    bake_anim_use_all_bones=True,
                    bake_anim_use_nla_strips=False,
                    bake_anim_use_all_actions=False,
                    bake_anim_force_startend_keying=True,
                    bake_anim_step=1.0,
                    bake_anim_simplify_factor=0.0,
                    path_mode="COPY",
                    embed_textures=True,
                    armature_nodetype="NULL",
                )
        except Exception as error:  # an exporter may raise anything
            path.unlink(missing_ok=True)
            line = str(error).strip().splitlines()[-1] if str(error).strip() else type(error).__name__
            raise FileError(f"Blender cannot export this character as FBX ({line}).", path) from error
    if not path.is_file():
        raise FileError(f"Blender cannot export this character as FBX ({' '.join(said) or 'nothing was written'}).", path)


def _bake(scene: bpy.types.Scene, copy: bpy.types.Object, take: Take, preset: FbxPreset) -> None:
    """The motion as keys on whole frames of the scene, from frame 0 on."""
    rate = take.rate or Fraction(30)
    scenes.set_rate(scene, rate)
    scenes.set_frame_range(scene, 0, max(take.frames - 1, 1))
    turn = quat.from_matrix(np.array(preset.turn)[:3, :3])
    take = take.turned(turn)
    target = armature.read(copy, scene)
    skeleton = target.skeleton
    order = [take.skeleton.index(name) for name in skeleton.names]
    rest_q, rest_t = skeleton.rest_rotations, skeleton.rest_translations
    q, t = take.local_rotations[:, order], take.local_translations[:, order]
    bases = quat.continuous(quat.mul(quat.inv(rest_q), q))
    places = np.broadcast_to(quat.rotate(quat.inv(rest_q), t - rest_t), (take.frames, len(order), 3))
    moving = tuple(int(j) for j in np.flatnonzero(np.abs(places).max(axis=(0, 2)) > 1e-6) if not target.connected[j])
    motion = PoseMotion(
        take.name, take.times - take.times[0], tuple(range(len(order))), bases, moving, np.asarray(places[:, list(moving)]), rate=rate
    )
    actions.write(copy, target, motion, name=take.name, frame_start=0.0, scene=scene)


@contextmanager
def _copied(
    obj: bpy.types.Object, preset: FbxPreset, mesh: bool
) -> Iterator[tuple[bpy.types.Scene, bpy.types.Object, list[tuple[bpy.types.Object, str]]]]:
    """A copy of the character in a scene of its own, at the scale 1 in centimetres; all of it gone at the end."""
    before = {block.session_uid for kind in _KINDS for block in getattr(bpy.data, kind)}
    here = bpy.context.scene
    unit = float(here.unit_settings.scale_length) * _CENTIMETRES
    scene = bpy.data.scenes.new("Mocap FBX")
    try:
        scene.unit_settings.scale_length = 1.0 / _CENTIMETRES
        world = Matrix(placement.of(obj, bpy.context.evaluated_depsgraph_get()).matrix.tolist())
        origin = world.to_translation()
        place = preset.turn @ Matrix.Scale(unit, 4)
        copy = _of_armature(obj, place @ Matrix.Translation(-origin) @ world)
        scene.collection.objects.link(copy)
        scene.view_layers[0].update()  # builds the pose of the copied bones
        _put_to_rest(copy)
        meshes: list[tuple[bpy.types.Object, str]] = []
        if mesh:
            for one in export_character.members(obj):
                if one.type == "MESH" and one.visible_get():
                    made = _of_mesh(one, obj, copy, place @ Matrix.Translation(-origin))
                    scene.collection.objects.link(made)
                    meshes.append((made, one.name))
        yield scene, copy, meshes
    finally:
        new = [block for kind in _KINDS for block in getattr(bpy.data, kind) if block.session_uid not in before]
        bpy.data.batch_remove(new)


_KINDS = ("scenes", "objects", "armatures", "meshes", "actions")  # shape keys go with their meshes


def _of_armature(obj: bpy.types.Object, world: Matrix) -> bpy.types.Object:
    data = obj.data.copy()
    data.animation_data_clear()
    data.pose_position = "POSE"
    data.transform(world)
    copy = obj.copy()
    copy.data = data
    copy.animation_data_clear()
    copy.parent = None
    copy.hide_viewport = False
    for constraint in list(copy.constraints):
        copy.constraints.remove(constraint)
    copy.delta_location, copy.delta_rotation_euler, copy.delta_scale = (0, 0, 0), (0, 0, 0), (1, 1, 1)
    copy.rotation_mode = "QUATERNION"
    copy.location, copy.rotation_quaternion, copy.scale = (0, 0, 0), (1, 0, 0, 0), (1, 1, 1)
    for name in list(copy.keys()):
        if name.startswith("mocap"):
            del copy[name]
    for bone in data.bones:
        bone.use_inherit_rotation, bone.use_local_location = True, True
    return copy


def _put_to_rest(copy: bpy.types.Object) -> None:
    for pose in copy.pose.bones:
        for constraint in list(pose.constraints):
            pose.constraints.remove(constraint)
        pose.rotation_mode = "QUATERNION"
        pose.matrix_basis = Matrix.Identity(4)
        pose.custom_shape = None


def _of_mesh(one: bpy.types.Object, obj: bpy.types.Object, copy: bpy.types.Object, place: Matrix) -> bpy.types.Object:
    data = one.data.copy()
    made = one.copy()
    made.data = data
    made.animation_data_clear()
    kept = one.matrix_world.copy()
    if one.parent == obj and one.parent_type == "BONE":
        made.parent = copy
        rest = obj.matrix_world @ obj.data.bones[one.parent_bone].matrix_local
        kept = rest @ (obj.matrix_world @ obj.pose.bones[one.parent_bone].matrix).inverted() @ kept
    else:
        made.parent = None
    data.transform(place @ kept, shape_keys=True)
    if data.shape_keys is not None:
        data.shape_keys.animation_data_clear()
    for modifier in made.modifiers:
        if modifier.type == "ARMATURE" and modifier.object == obj:
            modifier.object = copy
    if made.parent is not None:
        tail = copy.data.bones[one.parent_bone]
        made.matrix_parent_inverse = (copy.data.bones[tail.name].matrix_local @ Matrix.Translation((0, tail.length, 0))).inverted()
    else:
        made.parent = copy
        made.parent_type = "OBJECT"
        made.matrix_parent_inverse = Matrix.Identity(4)
    made.delta_location, made.delta_rotation_euler, made.delta_scale = (0, 0, 0), (0, 0, 0), (1, 1, 1)
    made.matrix_basis = Matrix.Identity(4)
    return made


def _lend(stack: ExitStack, kind: bpy.types.bpy_prop_collection, block: bpy.types.ID, name: str) -> None:
    """Call ``block`` so; who has the name now gets it back."""
    owner = next((one for one in kind if one.name == name and one != block and one.library is None), None)
    if owner is not None:
        spare = f"{name[:40]} (lent)"
        owner.name = spare
        stack.callback(setattr, owner, "name", name)
    own = block.name
    block.name = name
    stack.callback(setattr, block, "name", own)
