# SPDX-License-Identifier: GPL-3.0-or-later
"""Rigs made by hand, and what Blender itself says of them. mathutils and the depsgraph are the oracle here, never our own arithmetic."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import bpy
import numpy as np

from mocap_addon.blender import compat

KINDS = ("objects", "armatures", "actions", "meshes", "images", "texts", "collections", "scenes")
MODES = ("QUATERNION", "XYZ", "XZY", "YXZ", "YZX", "ZXY", "ZYX", "AXIS_ANGLE")


def make_rig(bones: Sequence[tuple[str, str | None, Sequence[float], Sequence[float], float]], name: str = "Rig") -> bpy.types.Object:
    """An armature object from (name, parent, head, tail, roll) rows, in Object Mode."""
    obj = bpy.data.objects.new(name, bpy.data.armatures.new(name))
    bpy.context.scene.collection.objects.link(obj)
    bpy.context.view_layer.objects.active = obj
    bpy.ops.object.mode_set(mode="EDIT")
    for bone, parent, head, tail, roll in bones:
        made = obj.data.edit_bones.new(bone)
        made.head, made.tail, made.roll = head, tail, roll
        if parent is not None:
            made.parent = obj.data.edit_bones[parent]
    bpy.ops.object.mode_set(mode="OBJECT")
    return obj


def limb(name: str = "Rig", modes: Sequence[str] = MODES) -> bpy.types.Object:
    """A crooked chain with one bone for each rotation mode, odd names and odd rolls."""
    rng = np.random.default_rng(5)
    place, rows, parent = np.array([0.3, -0.2, 1.0]), [], None
    for i, mode in enumerate(modes):
        bone = f'b "{i}" {mode}'
        tip = place + rng.normal(size=3) * 0.4
        rows.append((bone, parent, tuple(place), tuple(tip), float(rng.uniform(-3, 3))))
        place, parent = tip + rng.normal(size=3) * 0.05, bone
    obj = make_rig(rows, name)
    for pose, mode in zip(obj.pose.bones, modes, strict=True):
        pose.rotation_mode = mode
    return obj


def world_matrices(obj: bpy.types.Object, frames: Iterable[float], names: Sequence[str]) -> np.ndarray:
    """(F, J, 4, 4): evaluated bone matrices in the world, Blender units."""
    out = []
    for frame in frames:
        whole = int(np.floor(frame))
        bpy.context.scene.frame_set(whole, subframe=float(frame - whole))
        seen = obj.evaluated_get(bpy.context.evaluated_depsgraph_get())
        out.append([np.array(seen.matrix_world @ seen.pose.bones[n].matrix) for n in names])
    return np.array(out)


def rest_matrices(obj: bpy.types.Object, names: Sequence[str]) -> np.ndarray:
    """(J, 4, 4): rest matrices in the world, Blender units."""
    bpy.context.view_layer.update()
    return np.array([obj.matrix_world @ obj.data.bones[n].matrix_local for n in names])


def random_quaternions(rng: np.random.Generator, *shape: int) -> np.ndarray:
    q = rng.normal(size=(*shape, 4))
    return q / np.linalg.norm(q, axis=-1, keepdims=True)


def smooth_quaternions(rng: np.random.Generator, frames: int, bones: int) -> np.ndarray:
    """(F, K, 4): a wandering motion, continuous in sign."""
    knots = random_quaternions(rng, 6, bones)
    for i in range(1, len(knots)):
        knots[i] *= np.where(np.sum(knots[i] * knots[i - 1], axis=-1) < 0, -1.0, 1.0)[:, None]
    at = np.linspace(0, 5, frames)
    out = np.stack([np.stack([np.interp(at, range(6), knots[:, k, c]) for c in range(4)], -1) for k in range(bones)], 1)
    return out / np.linalg.norm(out, axis=-1, keepdims=True)


def snapshot(owner: bpy.types.Object | None = None) -> dict[str, object]:
    """What must not change: counts of data-blocks; each object's transform, modes, properties, animation; each action's keys."""
    return {
        "counts": {kind: len(getattr(bpy.data, kind)) for kind in KINDS},
        "objects": {o.name: _of_object(o) for o in bpy.data.objects if owner is None or o == owner},
        "actions": {a.name: keys_of(a) for a in bpy.data.actions},
        "scene": [(s.render.fps, round(s.render.fps_base, 6), s.frame_start, s.frame_end, s.frame_current) for s in bpy.data.scenes],
    }


def _of_object(obj: bpy.types.Object) -> tuple:
    data = obj.animation_data
    action = data.action if data else None
    slot = getattr(data, "action_slot", None)
    out: list[object] = [tuple(map(tuple, obj.matrix_world)), sorted((k, str(v)) for k, v in obj.items()), data is not None]
    out += [action.name if action else None, slot.identifier if slot else None, action.use_fake_user if action else None, obj.select_get()]
    if obj.type == "ARMATURE":
        out += [(p.name, p.rotation_mode, tuple(map(tuple, p.matrix_basis))) for p in obj.pose.bones]
        out += [(b.name, tuple(map(tuple, b.matrix_local))) for b in obj.data.bones]
    return tuple(map(str, out))


def keys_of(action: bpy.types.Action) -> list:
    return [
        (c.data_path, c.array_index, [(*k.co, k.interpolation, *k.handle_left, *k.handle_right) for k in c.keyframe_points])
        for slot in compat.slots(action)
        for c in compat.all_curves(action, slot)
    ]
