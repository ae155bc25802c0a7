# SPDX-License-Identifier: GPL-3.0-or-later
"""Rigid bodies of a take as objects: empties, or objects of the scene by name, with an action each.

The motion lies in the character's world (:mod:`mocap_addon.retarget.props`), counted from where its object stands. An object with a parent
stores it in its parent's frame, which must stand still.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import bpy
import numpy as np
from numpy.typing import NDArray

from ..motion import quat
from ..motion.errors import TargetError
from ..motion.take import PropTrack
from ..retarget.extras import PropOptions
from . import companions, object_motion
from .actions import Rollback
from .armature import Target
from .channels import OBJECT_GROUP, Channels, in_mode, rotation_channels
from .companions import Companion

Array = NDArray[np.float64]

PROP = "mocap_prop"
"""Custom property of the empties made here: which prop they are."""
_SIZE = 0.1


def companions_of(
    obj: bpy.types.Object,
    target: Target,
    props: Mapping[str, PropTrack],
    options: PropOptions,
    action: bpy.types.Action | None,
    scene: bpy.types.Scene,
) -> Iterator[Companion]:
    """What :func:`.companions.write` is to write. ``action`` is the one that is made again, if it is: its objects are used again.

    Raises
    ------
    TargetError
        An object that a person named is not there, is linked, or cannot be keyed where it should stand.
    """
    named = dict(options.names)
    before = {one["name"]: one["owner"] for one in companions.listed(action) if one["kind"] == "OBJECT"}
    unit = float(scene.unit_settings.scale_length)
    for name, track in props.items():
        wanted = named.get(name)
        if wanted == "":
            continue
        known = _object(wanted, obj) if wanted is not None else bpy.data.objects.get(before.get(name, "")) or _empty_of(name, obj, scene)
        places = (target.origin + track.translations) / unit
        channels = channels_of(known, track.rotations, places)
        yield Companion("OBJECT", name, _maker(known, name, obj, scene), channels)


def unused(props: Mapping[str, PropTrack], options: PropOptions) -> list[str]:
    """A note on props that nobody asked for."""
    if options.use or not props:
        return []
    names = ", ".join(f'"{name}"' for name in list(props)[:5])
    return [f"The take has props ({names}); turn Props on to have them as objects."]


def _object(name: str, character: bpy.types.Object) -> bpy.types.Object:
    found = bpy.data.objects.get(name)
    if found is None:
        raise TargetError(f'There is no object "{name}" for a prop of the take; choose one that is in the file.')
    if found == character:
        raise TargetError(f'"{name}" is the character itself and cannot be a prop of it; choose another object.')
    if found.library is not None:
        raise TargetError(f'The object "{name}" is linked from another file, so it cannot take a prop\'s motion; make a library override.')
    if found.parent is not None and not object_motion.stands_still(found.parent):
        raise TargetError(f'The object "{name}" hangs on "{found.parent.name}", which moves; clear its parent for a prop\'s motion.')
    if found.parent is not None and found.parent_type not in ("OBJECT", "ARMATURE"):
        raise TargetError(f'The object "{name}" hangs on a part of "{found.parent.name}"; clear its parent for a prop\'s motion.')
    return found


def _empty_of(name: str, character: bpy.types.Object, scene: bpy.types.Scene) -> bpy.types.Object | None:
    """The empty that was made for a prop of this character before."""
    return next((one for one in scene.objects if one.get(PROP) == f"{character.name}/{name}"), None)


def _maker(
    known: bpy.types.Object | None, name: str, character: bpy.types.Object, scene: bpy.types.Scene
) -> Callable[[Rollback], bpy.types.Object]:
    def make(undo: Rollback) -> bpy.types.Object:
        if known is not None:
            return known
        empty = bpy.data.objects.new(name, None)
        undo.add(lambda: bpy.data.objects.remove(empty))
        empty.empty_display_type, empty.empty_display_size = "ARROWS", _SIZE / float(scene.unit_settings.scale_length)
        empty.rotation_mode = "QUATERNION"
        empty[PROP] = f"{character.name}/{name}"
        inside = next((c for c in character.users_collection if c.library is None and c.override_library is None), scene.collection)
        inside.objects.link(empty)
        return empty

    return make


def channels_of(known: bpy.types.Object | None, rotations: Array, places: Array) -> Sequence[Channels]:
    """Location and rotation as the object stores them: ``world = parent * inverse * basis``."""
    mode = "QUATERNION"
    if known is not None:
        mode = known.rotation_mode
        above = np.eye(4)
        if known.parent is not None:
            parent = object_motion.world_matrices(known.parent, np.zeros(1))[0]
            above = parent @ np.array(known.matrix_parent_inverse, dtype=np.float64)
        places = (places - above[:3, 3]) @ np.linalg.inv(above[:3, :3]).T - np.array(known.delta_location)
        size = float(np.cbrt(np.linalg.det(above[:3, :3])))
        if abs(size) < 1e-9 or not np.allclose(above[:3, :3] @ above[:3, :3].T, size * size * np.eye(3), rtol=0.0, atol=1e-4 * size * size):
            raise TargetError(f'What "{known.name}" hangs on is scaled differently along its axes; apply that scale for a prop\'s motion.')
        rotations = quat.mul(quat.inv(quat.from_matrix(above[:3, :3] / size)), rotations)
        delta = known.delta_rotation_quaternion if mode == "QUATERNION" else known.delta_rotation_euler.to_quaternion()
        if mode != "AXIS_ANGLE":
            rotations = quat.mul(quat.inv(np.array(delta, dtype=np.float64)), rotations)
    prop, values = in_mode(quat.continuous(rotations), mode)
    return [
        Channels("location", OBJECT_GROUP, np.asfortranarray(places), kind="location"),
        rotation_channels(OBJECT_GROUP, prop, values, mode),
    ]
