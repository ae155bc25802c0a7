# SPDX-License-Identifier: GPL-3.0-or-later
"""The main job in one call: a take onto an armature object. Operators and the command line share it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import cast

import bpy

from .. import retarget, rig
from ..motion.errors import MocapError, RigError
from ..motion.take import Take
from ..retarget import Mask, PoseMotion, RetargetOptions, scales
from ..retarget.build import Bodies, bodies_of, table_and_bodies
from ..retarget.neutral import Chosen, reference_notes, source_reference
from ..retarget.travel import sole_thickness
from ..rig.roles import RoleMap
from ..rig.table import CorrectionTable
from . import actions, armature, control_check, control_rig, existing, extra_keys, morph_keys, recorded, routing, scenes, state
from .armature import Target
from .control_rig import Controls, Puppet
from .existing import Existing
from .job_options import JobOptions, options_of, recipe_for
from .morph_keys import Plan as Morphs

__all__ = ["Carried", "Character", "JobOptions", "JobResult", "carry", "character_of", "options_of", "preview_table", "retarget_onto"]


_NO_SCALE = "The take scales bones; that goes onto bones alone, not onto controls, and was left out."


@dataclass(frozen=True, eq=False)
class JobResult:
    """What came of it. ``timing`` holds seconds for ``table``, ``retarget`` and ``write``; for ``check`` where controls have the keys.

    ``meant`` is the motion of the ``puppet``, before controls; None where a mask mixes it with other motion.
    """

    action: bpy.types.Action
    motion: PoseMotion
    target: Target
    table: CorrectionTable
    source_roles: RoleMap
    target_roles: RoleMap
    notes: tuple[str, ...]
    timing: dict[str, float]
    puppet: Puppet
    meant: PoseMotion | None
    morphs: Morphs

    @property
    def on_bones(self) -> PoseMotion:
        """The motion on the bones that move the skin and on shape keys by name, for players that know neither constraints nor drivers."""
        plain = self.meant is None or self.puppet.plan is None
        motion = self.motion if plain else self.puppet.on_bones(self.meant, self.target)
        return morph_keys.under_key_names(self.morphs, motion)

    @property
    def take(self) -> Take:
        """The motion of the character's body: of all its bones, or of those with roles where controls drive them."""
        return self.motion.to_take(self.target.skeleton) if self.meant is None else self.meant.to_take(self.puppet.skeleton)


@dataclass(frozen=True, eq=False)
class Character:
    """What is read of a character before takes come onto it: its bones, their roles, what the keys go to, and the motion it has."""

    target: Target
    roles: RoleMap
    puppet: Puppet
    under: Existing


def character_of(obj: bpy.types.Object, *, table: CorrectionTable | None = None, options: JobOptions | None = None) -> Character:
    """Read a character, for takes that come onto it by ``table`` and ``options``. Nothing is changed.

    Raises
    ------
    MocapError
        It cannot take motion, or has no such controls.
    """
    target = armature.read(obj, bpy.context.scene)
    roles = rig.match(target.skeleton)
    options = options or JobOptions()
    puppet = control_rig.puppet(obj, target, roles, options.controls, table)
    return Character(target, roles, puppet, existing.now(obj, pose=bool(options.mask)))


def retarget_onto(
    obj: bpy.types.Object,
    take: Take,
    *,
    table: CorrectionTable | None = None,
    options: JobOptions | None = None,
    character: Character | None = None,
) -> JobResult:
    """Carry a take onto an armature object: a new action, assigned, the old one kept.

    The action keeps how it was made, so that it can be made again (:mod:`.update`).

    Parameters
    ----------
    obj : armature object
    take : Take
    table : CorrectionTable, optional
        An edited or loaded one; when missing that of the recording (:mod:`.recorded`), else computed.
    options : JobOptions, optional
    character : Character, optional
        ``obj`` as it was read before, by the same table and options: for many takes onto one.

    Raises
    ------
    MocapError
        One plain sentence; nothing has been changed then.
    """
    options = options or JobOptions()
    scene = bpy.context.scene
    carried = carry(obj, take, table=table, options=options, character=character)
    started = time.perf_counter()
    action = actions.write(
        obj,
        carried.target,
        carried.motion,
        name=options.name or take.name,
        frame_start=carried.frame_start,
        scene=scene,
        recipe=carried.recipe,
        finish=lambda made, frames, undo: extra_keys.write(made, frames, carried.extras, undo),
    )
    timing = {**carried.timing, "write": time.perf_counter() - started}
    notes = carried.notes
    if carried.puppet.plan is not None and carried.meant is not None:
        started = time.perf_counter()
        frames = actions.key_frames(carried.meant.times, carried.frame_start, scenes.scene_rate(scene), None)
        found = control_check.difference(obj, carried.target, carried.puppet.plan, carried.meant, frames)
        notes = (*notes, *(found.sentences() if found is not None else ()))
        timing["check"] = time.perf_counter() - started
    roles = carried.source_roles, carried.target_roles
    found = carried.puppet, carried.meant, carried.extras.morphs
    return JobResult(action, carried.motion, carried.target, carried.table, *roles, notes, timing, *found)


@dataclass(frozen=True, eq=False)
class Carried:
    """A take carried onto a character, before anything is written. ``timing`` holds seconds for ``table`` and ``retarget``; ``meant`` is
    the motion of the ``puppet``, before controls, and None where a mask mixes it with other motion."""

    motion: PoseMotion
    frame_start: float
    target: Target
    table: CorrectionTable
    source_roles: RoleMap
    target_roles: RoleMap
    notes: tuple[str, ...]
    recipe: dict[str, object]
    timing: dict[str, float]
    puppet: Puppet
    meant: PoseMotion | None
    extras: extra_keys.Planned


def carry(
    obj: bpy.types.Object,
    take: Take,
    *,
    table: CorrectionTable | None = None,
    options: JobOptions | None = None,
    under: Existing | None = None,
    character: Character | None = None,
    action: bpy.types.Action | None = None,
) -> Carried:
    """The part of :func:`retarget_onto` that changes nothing: the motion, and the recipe to store with it.

    ``under`` is what shows where the mask lets nothing through; None: what the character has now. ``action`` is the one that is made
    again, if it is.
    """
    if take.facts.get("unfit"):
        raise MocapError(str(take.facts["unfit"]))
    options = options or JobOptions()
    started = time.perf_counter()
    scene = bpy.context.scene
    character = character or character_of(obj, table=table, options=options)
    target, target_roles, puppet = character.target, character.roles, character.puppet
    source_roles = rig.match(take.skeleton)
    told: tuple[str, ...] = ()
    if table is None:
        table = recorded.table_of(take, puppet.skeleton.names)
        told = recorded.notes(take, table)
    table, bodies = _table(take, target, puppet, source_roles, table, options.reference_frame)
    matched = time.perf_counter()

    rate = _rate(options, take, scene)
    sampled = take if rate is None else take.resampled(rate)
    carrier, routed = routing.carrier_of(target, table) if puppet.plan is None else (None, "")
    settings = RetargetOptions(
        travel=options.travel,
        locations=options.extras.locations or None,
        scales=options.extras.scales,
        bodies=bodies,
        sole=sole_thickness(take, bodies),  # of the take as it is, so that the rate of the keys does not show
        inherits_rotation=puppet.inherits_rotation,
        carrier=carrier,
        adjustments=options.adjustments,
        root=options.root,
        root_joints=(source_roles.one("root"), puppet.roles.one("root")),
    )
    meant = extra_keys.time_coded(retarget.retarget(sampled, table, puppet.skeleton, settings), sampled, options.extras)
    motion, stood = control_rig.switched(obj, puppet.keys(meant))
    timing = {"table": matched - started, "retarget": time.perf_counter() - matched}
    notes = (
        *take.notes,
        *told,
        *reference_notes(take, options.reference_frame),
        *source_roles.notes,
        *target_roles.notes,
        *target.notes,
        *filter(None, [routed]),
        *motion.notes,
        *puppet.notes,
        *_notes(obj, target, motion, take, controls=puppet.plan is not None),
    )
    recipe = recipe_for(obj, take, table, options)
    start = float(scene.frame_start if options.frame_start is None else options.frame_start)
    recipe["frame_start"] = start
    under = character.under if under is None else under
    recipe["under"] = asdict(under)
    if options.mask:
        control_rig.check_alike(under.action, motion)
        roles = bodies.target.pose.roles if puppet.plan is None else puppet.plan.roles
        motion, start = _masked(obj, target, motion, roles, options.mask, under, start)
    if stood:
        recipe[control_rig.SWITCHED] = stood
    place = target.place(motion)
    if place is not None:
        recipe["place"] = place.as_dict()
    planned = extra_keys.plan(obj, target, motion, take, options.extras, action, scene)
    rows = [(row.source[0], row.movable) for row in table.rows if row.rule == "copy"]
    notes = (*notes, *planned.notes, *extra_keys.still_rows(take, rows))
    if options.extras.scales:
        controlled = puppet.plan is not None and bool(take.scales)
        notes = (*notes, *((_NO_SCALE,) if controlled else scales.missed(take, dict(rows))))
    return Carried(
        motion,
        start,
        target,
        table,
        source_roles,
        target_roles,
        tuple(dict.fromkeys(notes)),
        recipe,
        timing,
        puppet,
        None if options.mask else meant,
        planned,
    )


def _masked(
    obj: bpy.types.Object,
    target: Target,
    motion: PoseMotion,
    roles: Mapping[str, tuple[int, ...]],
    mask: Mask,
    under: Existing,
    start: float,
) -> tuple[PoseMotion, float]:
    """The motion where the mask lets it through and what was there elsewhere, over the frames of both; and its first frame."""
    frames = actions.key_frames(motion.times, start, scenes.scene_rate(bpy.context.scene), None)
    bounded = mask.bounded(frames)
    motion, frames = existing.padded(motion, frames, existing.frame_range(under))
    _check_carriers(under, target, motion, roles)
    old = existing.motion(under, obj, target, motion, frames)
    return retarget.blended(old, motion, target.skeleton, roles, bounded, frames), float(frames[0])


def _check_carriers(under: Existing, target: Target, motion: PoseMotion, roles: Mapping[str, tuple[int, ...]]) -> None:
    """Raise :class:`RigError` where old and new motion, of which some of each is to be seen, are carried by different things."""
    skeleton, hips = target.skeleton, roles.get("hips")
    if not under.action or not hips:
        return
    above = skeleton.ancestors(hips[0])
    new = {skeleton.names[bone] for bone in (*motion.bones, *motion.moving) if bone in above}
    if motion.placement is not None or motion.turning is not None:
        new.add(existing.OBJECT)
    old = existing.carriers(under, {skeleton.names[bone] for bone in above})
    if old != new:
        was, now = (", ".join(f'"{x}"' if x in target.skeleton else x for x in sorted(found)) or "the hips alone" for found in (old, new))
        raise RigError(
            f"The motion that is there is carried by {was}, the new one by {now}, so that parts of both do not fit together; "
            "choose the same root motion for the new one."
        )


def preview_table(
    obj: bpy.types.Object, take: Take, *, reference_frame: Chosen = None, controls: Controls = "auto"
) -> tuple[CorrectionTable, RoleMap, RoleMap]:
    """The table that :func:`retarget_onto` would compute, and both role maps. Nothing is changed."""
    found, source_roles = character_of(obj, options=JobOptions(controls=controls)), rig.match(take.skeleton)
    table, _bodies = _table(take, found.target, found.puppet, source_roles, None, reference_frame)
    return table, source_roles, found.roles


def _table(
    take: Take,
    target: Target,
    puppet: Puppet,
    source_roles: RoleMap,
    table: CorrectionTable | None,
    reference_frame: Chosen,
) -> tuple[CorrectionTable, Bodies]:
    reference = source_reference(take, reference_frame)
    axes, skeleton = target.object_rotation, puppet.skeleton
    if table is not None:
        table = control_rig.fitted(table, puppet)
        roles = (source_roles, puppet.roles)
        bodies = bodies_of(table, take.skeleton, skeleton, reference=reference, target_axes=axes, roles=roles)
        if not (_measured and _measured[0] is table and _measured[1] is bodies):
            _measured[:] = [table, bodies, retarget.measured(table, take.skeleton, skeleton, bodies=bodies)]
        return cast("CorrectionTable", _measured[2]), bodies
    rig.require_humanoid(source_roles, take.skeleton)
    rig.require_humanoid(puppet.roles, skeleton)
    return table_and_bodies(take.skeleton, source_roles, skeleton, puppet.roles, reference=reference, target_axes=axes)


_measured: list[object] = []
"""The table last given, the bodies it was measured on, and what came of it: many takes onto one character by one table."""


def _rate(options: JobOptions, take: Take, scene: bpy.types.Scene) -> Fraction | None:
    if options.rate == "source":
        return None
    rate = scenes.scene_rate(scene) if options.rate == "scene" else options.rate
    if take.frames == 0:
        raise RigError(f'The take "{take.name}" has no frames; there is nothing to retarget.')
    return rate


def _notes(obj: bpy.types.Object, target: Target, motion: PoseMotion, take: Take, *, controls: bool) -> list[str]:
    names = target.skeleton.names
    keyed = dict.fromkeys((*motion.moving, *motion.bones))
    above = {joint: None for bone in keyed for joint in target.skeleton.ancestors(bone) if joint not in keyed}
    above |= dict.fromkeys(sorted(motion.followed))
    moving = [names[joint] for joint in motion.moving]
    notes = state.bone_notes(obj, [names[joint] for joint in keyed], [names[joint] for joint in above], moving, controls=controls)
    for k, joint in enumerate(motion.moving):
        if target.connected[joint] and abs(motion.locations[:, k]).max() > 1e-4:
            name = target.skeleton.names[joint]
            notes.append(f'The bone "{name}" is connected to its parent, so Blender ignores its location; clear Connected in Edit Mode.')
    if take.valid is not None and not take.valid.all():
        notes.append("Some samples of the take are not numbers; their neighbours' values are held there.")
    return notes
