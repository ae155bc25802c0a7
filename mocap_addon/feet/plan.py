# SPDX-License-Identifier: GPL-3.0-or-later
"""The one call: a take, a character's feet and a ground -> the same motion with its feet on the ground."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..motion.errors import MocapError
from ..motion.take import Take
from . import als, bake, clearance, contacts, pelvis, report, signals, terrain, toes
from .body import Feet
from .contacts import Contacts
from .footprints import Prints, find_prints
from .ground import Ground, Plane
from .job import Job
from .paths import Path, find_path
from .pose import legs_of, soles
from .result import BALL, TOE, FeetResult, Gates
from .settings import FeetSettings

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


def plan_feet(
    take: Take, feet: Feet, ground: Ground | None = None, settings: FeetSettings | None = None, gates: Gates | None = None
) -> FeetResult:
    """Put a take's feet on the ground.

    Parameters
    ----------
    take : Take
        On the character's own skeleton, world axes, metres.
    feet : Feet
        See :func:`.body.find_feet`.
    ground : Ground or None
        None: an even floor where the feet are lowest.
    settings : FeetSettings, optional
    gates : Gates, optional

    Returns
    -------
    FeetResult

    Raises
    ------
    MocapError
        Gates of the wrong size, a range outside the take, or a take without frames.
    """
    settings, gates = settings or FeetSettings(), gates or Gates()
    gate = _gate(take, gates, settings)
    job = _prepare(take, feet, ground, settings, gates)
    if settings.mode == "off":
        job = replace(job, found=contacts.summed(np.zeros_like(job.found.parts), job.has_toe, job.found.floor))
        gate = np.zeros_like(gate)
    return _plant(job, gate, gates)


def _gate(take: Take, gates: Gates, settings: FeetSettings) -> Array:
    """(F, 2): how much of the work shows."""
    f = take.frames
    if f == 0:
        raise MocapError(f'The take "{take.name}" has no frames; there are no feet to plant.')
    for name, value, shape in (
        ("foot_ik", gates.foot_ik, (f, 2)),
        ("foot_lock", gates.foot_lock, (f, 2)),
        ("contacts", gates.contacts, (f, 2, 3)),
    ):
        if value is not None and value.shape != shape:
            raise MocapError(f"The curve {name} has shape {value.shape}; {shape} was expected, one row a frame.")
    out = np.ones((f, 2)) if gates.foot_ik is None else np.clip(np.nan_to_num(gates.foot_ik, nan=1.0), 0.0, 1.0)
    if gates.start is None and gates.end is None:
        return out
    start, end = gates.start if gates.start is not None else -np.inf, gates.end if gates.end is not None else np.inf
    if not start < end or start > take.times[-1] or end < take.times[0]:
        raise MocapError(f'The range from {start:g} to {end:g} s lies outside the take "{take.name}"; choose one inside it.')
    border = max(min(settings.border, 0.5 * (min(end, take.times[-1]) - max(start, take.times[0]))), 1e-9)
    inside = signals.ease((take.times - start) / border) * signals.ease((end - take.times) / border)
    return out * inside[:, None]


def _prepare(take: Take, feet: Feet, ground: Ground | None, settings: FeetSettings, gates: Gates) -> Job:
    legs = legs_of(take, feet)
    points = soles(feet, legs.ankle, legs.foot, legs.ball, legs.toe)
    has_toe = (feet.legs[0].toe >= 0, feet.legs[1].toe >= 0)
    times, dt = take.times, signals.spacing(take.times)
    moving = ground is not None and terrain.moves(ground, times)
    under: Indices | None = None
    carried: Array | None = None
    over: Array | None = None
    slow = contacts.speeds(points, times, settings) < settings.enter_speed * feet.length / 0.9
    even = contacts.own_floor(points[..., 2], slow) is not None
    if ground is not None and (moving or not even):
        found = clearance.under(ground, points, times, settings)
        over = points[..., 2] - found.height.reshape(-1, 2, 3)
        if moving:
            objects = found.object.reshape(-1, 2, 3)
            under = objects[:, :, 1]
            carried = terrain.carried_velocity(ground, points.reshape(-1, 3), objects.ravel(), np.repeat(times, 6), dt).reshape(
                points.shape
            )
    first = contacts.detect(points, times, settings, feet.length, has_toe, carried, over)
    obeyed = contacts.obey(first, gates, times, points, has_toe)
    if ground is None:
        height = _height_of_floor(points, obeyed)
        ground = Plane((0.0, 0.0, height), name="floor")
    return Job(take, feet, legs, points, ground, moving, under, obeyed, has_toe, settings)


def _height_of_floor(points: Array, found: Contacts) -> float:
    """Where balls of flat feet are (median); of a take without, where the lowest soles are (5th percentile)."""
    if np.any(found.flat):
        return float(np.median(points[:, :, BALL, 2][found.flat]))
    return float(np.percentile(points[..., 2].min(axis=(1, 2)), 5.0))


def _plant(job: Job, gate: Array, gates: Gates) -> FeetResult:
    take, feet, legs, settings = job.take, job.feet, job.legs, job.settings
    prints = find_prints(job.ground, feet, job.soles, legs.foot, take.times, job.found, job.under, settings)
    path = find_path(job.ground, feet, legs, job.soles, job.found, prints, job.moving, settings)
    if settings.mode == "als":
        baked, shift, path = als.als_feet(job, gate, gates.foot_lock, prints, path)
        surface = clearance.under(job.ground, baked.soles, take.times, settings)
        return _result(job, gate, prints, path, baked, shift, baked.soles, surface)
    joints = bake.toe_joints(legs, path.ankle, path.foot)
    points = soles(feet, path.ankle, path.foot, joints, path.toe, path.normal)
    surface = clearance.under(job.ground, points, take.times, settings)
    bent, points[:, :, TOE] = toes.bent_toes(feet, path, points, surface, joints, take.times)
    height = surface.height.reshape(-1, 2, 3)
    room = (job.soles[..., 2] - path.floor[..., None]) * path.touched[..., None]
    need, least = (clearance.needed(points, height, own, path.held, settings) for own in (room, np.zeros_like(room)))
    ankle = path.ankle.copy()
    for side in range(2):
        if np.any(prints.side == side):
            ankle[:, side, 2] += clearance.lift(need[:, side], least[:, side], path.held[:, side], take.times)
    shift = np.zeros((take.frames, 3))
    if not settings.pin_hips and len(prints.side):
        shift[:, 2] = pelvis.offset(legs, ankle, path.rise, path.inside, settings) * gate.max(axis=1)
    baked = bake.bake(take, feet, legs, shift, ankle, path.foot, bent, path.normal, gate, settings)
    return _result(job, gate, prints, path, baked, shift, points, surface)


def _result(
    job: Job, gate: Array, prints: Prints, path: Path, baked: bake.Baked, shift: Array, points: Array, surface: terrain.Surface
) -> FeetResult:
    normals = surface.normal.reshape(-1, 2, 3, 3)
    traces = baked.soles.copy()
    slope = -normals[..., :2] / np.maximum(normals[..., 2:], 0.2)
    traces[..., 2] = surface.height.reshape(-1, 2, 3) + (slope * (baked.soles - points)[..., :2]).sum(axis=-1)
    slid = report.sliding(job, baked.soles, path.normal, path.held)
    footprints = report.footprints(job, prints, baked, gate, slid)
    return FeetResult(
        baked.joints, baked.local_rotations, baked.moving, baked.local_translations, shift, job.found.parts,
        job.found.held.astype(np.float64), gate, path.weight * gate, baked.soles, traces, normals, footprints,
        report.summary(job, prints, path, baked, traces, slid, footprints), report.notes(job, prints, footprints),
    )  # fmt: skip
