# SPDX-License-Identifier: GPL-3.0-or-later
"""Everything in the open file as one dictionary: what "nothing else changes" is measured with.

Blender's own property tables are walked, so that nothing has to be thought of: every simple property of every data-block, bone, pose bone,
constraint, f-curve, slot, NLA strip and layer collection. Keys and vertices are read as arrays. Custom properties are included.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import bpy
import numpy as np

from mocap_addon.blender import compat

_NOT_THE_USERS = ("all_ids", "screens", "workspaces", "window_managers")
COLLECTIONS = tuple(p.identifier for p in bpy.data.bl_rna.properties if p.type == "COLLECTION" and p.identifier not in _NOT_THE_USERS)
"""Every kind of data-block, without the window's own."""

_SIMPLE = ("BOOLEAN", "INT", "FLOAT", "STRING", "ENUM")
_VOLATILE = {"rna_type", "users", "session_uid", "is_evaluated", "tag", "id_data", "is_runtime_data", "is_library_indirect"}
_DERIVED = {"bound_box", "dimensions", "is_visible"}


def snapshot() -> dict[str, str]:
    """Path -> value of all that is the user's. The scene is brought up to date first, so that derived values can be compared."""
    for scene in bpy.data.scenes:
        for layer in scene.view_layers:
            layer.update()
    return dict(_everything())


def digest(shot: dict[str, str]) -> str:
    """One hash of a snapshot."""
    return hashlib.sha256("\n".join(f"{k}={v}" for k, v in sorted(shot.items())).encode()).hexdigest()


def changes(before: dict[str, str], after: dict[str, str], *, ignoring: tuple[str, ...] = ()) -> list[str]:
    """What differs, as ``path: old -> new``; paths that start with one of ``ignoring`` do not count."""
    out = []
    for path in sorted(before.keys() | after.keys()):
        if before.get(path) != after.get(path) and not path.startswith(ignoring):
            out.append(f"{path}: {before.get(path)} -> {after.get(path)}")
    return out


def beside_the_retarget(
    before: dict[str, str], obj: bpy.types.Object, new: bpy.types.Action, *, carried: bool = False, after: dict[str, str] | None = None
) -> list[str]:
    """What a retarget onto ``obj`` changed that it may not: it may add the action ``new``, assign it, keep the one before, pose the bones.

    ``carried``: the object itself takes the travel, so that its location may change too.
    """
    path = f"objects/{obj.name}"
    allowed = [f"actions/{new.name}/", f"actions/{new.name}[", "actions/count"]
    allowed += [f"{path}/pose/{bone.name}/{channel}" for bone in obj.pose.bones for channel in _POSED]
    if f"{path}/animation/present" in before:
        allowed += [f"{path}/animation/{what}" for what in ("action", "slot", "last_slot_identifier", "action_slot_handle")]
        allowed += [f"actions/{before[f'{path}/animation/action']}/use_fake_user"]
    else:
        allowed += [f"{path}/animation/"]
    if carried:
        allowed += [f"objects/{o.name}/{what}" for o in (obj, *obj.children_recursive) for what in ("location", "matrix_")]
    return changes(before, after or snapshot(), ignoring=tuple(allowed))


_POSED = ("location", "rotation_", "scale", "matrix", "head", "tail", "length", "bbone_", "center", "vector", "x_axis", "y_axis", "z_axis")


def _everything() -> Iterator[tuple[str, str]]:
    for kind in COLLECTIONS:
        blocks = getattr(bpy.data, kind)
        yield f"{kind}/count", str(len(blocks))
        for block in blocks:
            library = f"@{block.library.name}" if block.library else ""
            path = f"{kind}/{block.name}{library}"
            yield from _struct(block, path)
            yield from _animation(block, path)
            special = _SPECIAL.get(kind)
            if special is not None:
                yield from special(block, path)
    yield "context/active", _named(bpy.context.view_layer.objects.active)
    yield "context/mode", str(bpy.context.mode)
    yield "context/scene", bpy.context.scene.name
    yield "context/layer", bpy.context.view_layer.name


def _struct(owner: bpy.types.bpy_struct, path: str) -> Iterator[tuple[str, str]]:
    """Every simple property, and where its pointers to data-blocks lead."""
    for prop in owner.bl_rna.properties:
        name = prop.identifier
        if name in _VOLATILE or name in _DERIVED:
            continue
        if prop.type in _SIMPLE:
            try:
                value = getattr(owner, name)
            except (AttributeError, RuntimeError, TypeError):
                continue
            yield f"{path}/{name}", _text(value)
        elif prop.type == "POINTER" and _is_id(prop):
            yield f"{path}/{name}", _named(getattr(owner, name, None))
    if hasattr(owner, "keys"):
        try:
            keys = list(owner.keys())
        except TypeError:
            keys = []
        for key in keys:
            yield f'{path}["{key}"]', _custom(owner[key])


def _is_id(prop: bpy.types.Property) -> bool:
    base = prop.fixed_type
    while base is not None:
        if base.identifier == "ID":
            return True
        base = base.base
    return False


def _text(value: object) -> str:
    if isinstance(value, str | bool | int | float):
        return repr(value)
    if isinstance(value, set | frozenset):
        return repr(sorted(value))
    try:
        return repr(np.array(value).ravel().tolist())
    except (TypeError, ValueError):
        return repr(value)


def _custom(value: object) -> str:
    if hasattr(value, "to_dict"):
        return repr(value.to_dict())
    return repr(value.to_list()) if hasattr(value, "to_list") else repr(value)


def _named(block: object) -> str:
    return "None" if block is None else f"{getattr(block, 'name_full', None) or getattr(block, 'name', block)}"


def _animation(block: bpy.types.ID, path: str) -> Iterator[tuple[str, str]]:
    data = getattr(block, "animation_data", None)
    if data is None:
        return
    yield f"{path}/animation/present", "True"
    yield from _struct(data, f"{path}/animation")
    slot = compat.assigned_slot(data)
    yield f"{path}/animation/slot", slot.identifier if slot else "None"
    for driver in data.drivers:
        yield from _struct(driver, f"{path}/drivers/{driver.data_path}[{driver.array_index}]")
        yield f"{path}/drivers/{driver.data_path}[{driver.array_index}]/expression", driver.driver.expression
    for track in data.nla_tracks:
        yield from _struct(track, f"{path}/nla/{track.name}")
        for strip in track.strips:
            yield from _struct(strip, f"{path}/nla/{track.name}/{strip.name}")


def _object(obj: bpy.types.Object, path: str) -> Iterator[tuple[str, str]]:
    try:
        yield f"{path}/selected", f"{obj.select_get()} {obj.hide_get()} {obj.visible_get()}"
    except RuntimeError:  # not in this view layer
        yield f"{path}/selected", "elsewhere"
    for kind in ("constraints", "modifiers"):
        for item in getattr(obj, kind):
            yield from _struct(item, f"{path}/{kind}/{item.name}")
    for pose in obj.pose.bones if obj.pose else ():
        yield from _struct(pose, f"{path}/pose/{pose.name}")
        for constraint in pose.constraints:
            yield from _struct(constraint, f"{path}/pose/{pose.name}/constraints/{constraint.name}")


def _armature(data: bpy.types.Armature, path: str) -> Iterator[tuple[str, str]]:
    for bone in data.bones:
        yield from _struct(bone, f"{path}/bones/{bone.name}")
    for collection in data.collections:
        yield from _struct(collection, f"{path}/collections/{collection.name}")


def _action(action: bpy.types.Action, path: str) -> Iterator[tuple[str, str]]:
    for slot in compat.slots(action):
        name = slot.identifier if slot else ""
        if slot is not None:
            yield from _struct(slot, f"{path}/slots/{name}")
        for curve in compat.all_curves(action, slot):
            at = f"{path}/curves/{name}/{curve.data_path}[{curve.array_index}]"
            yield from _struct(curve, at)
            yield f"{at}/keys", _hash(curve.keyframe_points, ("co", 2), ("handle_left", 2), ("handle_right", 2))
            yield (
                f"{at}/kinds",
                str([(k.interpolation, k.easing, k.handle_left_type, k.handle_right_type, k.type) for k in curve.keyframe_points]),
            )
            for modifier in curve.modifiers:
                yield from _struct(modifier, f"{at}/modifiers/{modifier.type}")


def _mesh(mesh: bpy.types.Mesh, path: str) -> Iterator[tuple[str, str]]:
    yield f"{path}/vertices", _hash(mesh.vertices, ("co", 3))
    keys = mesh.shape_keys.key_blocks if mesh.shape_keys else ()
    for key in keys:
        yield from _struct(key, f"{path}/keys/{key.name}")
        yield f"{path}/keys/{key.name}/points", _hash(key.data, ("co", 3))


def _scene(scene: bpy.types.Scene, path: str) -> Iterator[tuple[str, str]]:
    for part in ("render", "tool_settings", "unit_settings"):
        yield from _struct(getattr(scene, part), f"{path}/{part}")
    yield f"{path}/markers", str([(m.name, m.frame) for m in scene.timeline_markers])
    yield f"{path}/objects", str(sorted(o.name for o in scene.objects))
    for layer in scene.view_layers:
        yield from _struct(layer, f"{path}/layers/{layer.name}")
        yield f"{path}/layers/{layer.name}/active", _named(layer.objects.active)
        yield f"{path}/layers/{layer.name}/selected", str(sorted(o.name for o in layer.objects if o.select_get(view_layer=layer)))
        yield from _layer_collections(layer.layer_collection, f"{path}/layers/{layer.name}")


def _layer_collections(found: bpy.types.LayerCollection, path: str) -> Iterator[tuple[str, str]]:
    yield from _struct(found, f"{path}/{found.name}")
    for child in found.children:
        yield from _layer_collections(child, f"{path}/{found.name}")


def _collection(found: bpy.types.Collection, path: str) -> Iterator[tuple[str, str]]:
    yield f"{path}/objects", str(sorted(o.name for o in found.objects))


_SPECIAL = {
    "objects": _object,
    "armatures": _armature,
    "actions": _action,
    "meshes": _mesh,
    "scenes": _scene,
    "collections": _collection,
}


def _hash(items: bpy.types.bpy_prop_collection, *columns: tuple[str, int]) -> str:
    out = hashlib.sha256()
    for name, width in columns:
        values = np.empty(len(items) * width, dtype=np.float32)
        items.foreach_get(name, values)
        out.update(values.tobytes())
    return f"{len(items)} {out.hexdigest()}"
