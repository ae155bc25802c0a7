# SPDX-License-Identifier: GPL-3.0-or-later
"""Root motion of a character in the scene: its action divided anew between hips, root bone and object, or put back into the hips.

A new action is made and the old one kept: an animator compares the two, and strips and files that use the old one go on as they are. The
new one is a copy, in which only the curves of the hips, of what carries them and of other bones that hang on that are rewritten; fingers,
face, custom properties and markers are as they were. An action that was made here can be made again from its take: what was baked is
divided in the same way, so that edits by hand still are edits, and the recipe asks for the same root motion.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

import bpy
import numpy as np

from ..motion.errors import RigError, TargetError
from ..retarget import root_motion as core
from ..retarget.motion import PoseMotion
from ..retarget.root_motion import RootMotion
from . import actions, baseline, compat, root_keys
from .baseline import Baseline
from .channels import check_channels, pose_channels
from .recipes import PLACE, recipe_of, store_place, store_recipe
from .root_keys import RootKeys

Divide = Callable[[PoseMotion], PoseMotion]

_ADDED = {"bone": "root bone", "object": "object root", "in-place": "in place", "hips": "hips"}


@dataclass(frozen=True, eq=False)
class RootResult:
    """The new action, now the object's; the action before it; and what a person should know."""

    action: bpy.types.Action
    before: bpy.types.Action
    notes: tuple[str, ...]


def extract(obj: bpy.types.Object, policy: RootMotion, *, name: str | None = None) -> RootResult:
    """Divide the motion that a character has between its hips and what carries them.

    Parameters
    ----------
    obj : armature object
    policy : RootMotion
        Of its heights only "ground" means something here; the source "object" is the object's own motion, "root" that of the root bone.
    name : str, optional
        Of the new action; by default the old one's with what was done.

    Raises
    ------
    MocapError
        One plain sentence; nothing has been changed then.
    """
    keys = root_keys.read(obj, feet=policy.height == "ground")
    path = core.path_of(keys.motion, keys.chain, policy.source)
    lift = -core.standing_height(keys.motion, keys.chain) if policy.height == "ground" else 0.0

    def divided(motion: PoseMotion) -> PoseMotion:
        return core.extract(motion, keys.chain, policy, path, lift=lift)

    return _Rewrite(obj, keys, divided(keys.motion), name or f"{_base(obj)} {_ADDED[policy.destination]}").run(divided, policy)


def merge(obj: bpy.types.Object, *, name: str | None = None) -> RootResult:
    """Fold what root bone and object carry back into the hips, which then do alone what was seen before. As :func:`extract` otherwise."""
    keys = root_keys.read(obj)
    motion = keys.motion
    if motion.placement is None and motion.turning is None and not set(keys.chain.lifting) & {*motion.bones, *motion.moving}:
        raise RigError(f'Neither a root bone nor the object carries "{obj.name}"; there is nothing to put into its hips.')

    def merged(motion: PoseMotion) -> PoseMotion:
        return core.merge(motion, keys.chain)

    return _Rewrite(obj, keys, merged(keys.motion), name or f"{_base(obj)} {_ADDED['hips']}").run(merged, None)


def _base(obj: bpy.types.Object) -> str:
    """The action's name without what was added to it before."""
    words = "|".join(_ADDED.values())
    return re.sub(rf"( ({words})(\.\d+)?)+$", "", obj.animation_data.action.name)


class _Rewrite:
    """A copy of the object's action with the curves of the root motion written anew; all of it or nothing."""

    def __init__(self, obj: bpy.types.Object, keys: RootKeys, motion: PoseMotion, name: str) -> None:
        self.obj, self.keys, self.name = obj, keys, name
        self.motion = _only(motion, keys)
        self.before = obj.animation_data.action
        if obj.animation_data.use_tweak_mode:
            raise TargetError(f'An NLA strip of "{obj.name}" is being edited; leave tweak mode (Tab in the NLA editor) first.')
        channels = list(pose_channels(keys.target, self.motion))
        check_channels(channels, self.motion)
        self.channels = [*channels, *root_keys.rest_channels(keys, channels)]

    def run(self, divided: Divide, policy: RootMotion | None) -> RootResult:
        """Write, assign, and tell."""
        notes = self._notes()
        slot_before = compat.assigned_slot(self.obj.animation_data)
        with actions.Rollback() as undo:
            action = self.before.copy()
            undo.add(lambda: bpy.data.actions.remove(action))
            action.name = self.name
            slot = (
                next((s for s in compat.slots(action) if s is not None and s.handle == slot_before.handle), None) if slot_before else None
            )
            self._write(action, slot)
            notes += self._remember(action, divided, policy)
            actions.make_active(self.obj, action, slot, undo)
            action.use_fake_user = False
        return RootResult(action, self.before, tuple(notes))

    def _write(self, action: bpy.types.Action, slot: compat.Slot) -> None:
        bag = compat.ensure_bag(action, slot)
        paths = self.keys.paths() | {channel.path for channel in self.channels}
        for curve in [c for c in bag.fcurves if c.data_path in paths]:
            bag.fcurves.remove(curve)
        actions.write_curves(bag, self.keys.frames, self.channels)

    def _remember(self, action: bpy.types.Action, divided: Divide, policy: RootMotion | None) -> list[str]:
        """Place, recipe and bake of the new action."""
        place = self.keys.target.place(self.motion)
        if PLACE in action:
            del action[PLACE]
        recipe = recipe_of(action)
        if recipe is None:
            if place is not None:
                store_place(action, place)
            return []
        options = dict(recipe.get("options") or {})  # type: ignore[call-overload]
        options["root"] = _as_if_retargeted(RootMotion.from_dict(options.get("root")), policy).as_dict()
        recipe = {key: value for key, value in recipe.items() if key != "place"} | {"options": options}
        store_recipe(action, recipe if place is None else {**recipe, "place": place.as_dict()})
        bake = baseline.load(action)
        if bake is None:
            return []
        old = root_keys.of_baseline(self.keys, bake)
        if old is None:
            del action[baseline.PROPERTY]
            return ["Keys were moved or added by hand, so this action cannot be made again from its take; the old one still can."]
        baseline.store(action, self._bake(bake, divided(old)))
        return []

    def _bake(self, bake: Baseline, motion: PoseMotion) -> Baseline:
        paths = self.keys.paths()
        kept = [channel for channel in bake.channels if channel.path not in paths]
        fresh = list(pose_channels(self.keys.target, _only(motion, self.keys)))
        rest = [channel for channel in self.channels if channel.kind == "rest"]
        return replace(bake, channels=(*kept, *fresh, *rest))

    def _notes(self) -> list[str]:
        paths = self.keys.paths()
        modified = [c for (path, _), c in self.keys.found.items() if path in paths and any(not m.mute for m in c.modifiers)]
        return ["Modifiers of the rewritten curves are part of their keys now."] if modified else []


def _only(motion: PoseMotion, keys: RootKeys) -> PoseMotion:
    """The part of a motion that is rewritten."""
    keep = keys.changing
    bones = [k for k, bone in enumerate(motion.bones) if bone in keep]
    moving = [m for m, bone in enumerate(motion.moving) if bone in keep]
    return replace(
        motion,
        bones=tuple(motion.bones[k] for k in bones),
        rotations=np.asfortranarray(motion.rotations[:, bones]),
        moving=tuple(motion.moving[m] for m in moving),
        locations=np.asfortranarray(motion.locations[:, moving]),
    )


def _as_if_retargeted(old: RootMotion, policy: RootMotion | None) -> RootMotion:
    """The policy under which the take would come out as the action is now."""
    if policy is None:
        return replace(old, destination="hips")
    return replace(
        policy,
        source=old.source if policy.source != "hips" else "hips",
        height=old.height if policy.height != "ground" else "ground",
        origin=old.origin if policy.origin == "keep" else policy.origin,
    )
