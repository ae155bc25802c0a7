# SPDX-License-Identifier: GPL-3.0-or-later
"""ALS mode: the foot IK of Advanced Locomotion System V4 over a take, stepped at a rate of its own.

A game's capsule walks on the ground; here the character is first carried along by the ground under its hips (smoothed). Relative to that
floor the feet are traced, offset and locked as ALS does it. Locks are kept in the space of what is stood on, which is what ALS's
integration of velocities means.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ..motion import quat, timeline
from . import als_steps, bake, pelvis, signals, terrain
from .footprints import Prints
from .job import Job
from .paths import Path
from .settings import FeetSettings
from .spaces import Spaces, spaces_of
from .stretches import Stretches, fade

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
Indices = NDArray[np.int64]


def als_feet(job: Job, gate: Array, lock: Array | None, prints: Prints, path: Path) -> tuple[bake.Baked, Array, Path]:
    """What ALS makes of a take.

    Parameters
    ----------
    job : Job
    gate : (F, 2) array
    lock : (F, 2) array or None
        FootLock curves; NaN or None: from contacts.
    prints, path
        The contacts, as planting finds them; only their levels and times are used.

    Returns
    -------
    baked : Baked
    pelvis : (F, 3) array
        Offset of the hips.
    path : Path
        Where the feet went, for the report.
    """
    settings, legs, times = job.settings, job.legs, job.take.times
    ride, floor = _ride(job, path)
    steps = times[0] + np.arange(int(np.floor((times[-1] - times[0]) * settings.als_rate + 1e-6)) + 1) / settings.als_rate
    i0, i1, t = timeline.bracket(times, steps)

    def at_steps(x: Array) -> Array:
        w = t.reshape(-1, *([1] * (x.ndim - 1)))
        return x[i0] * (1.0 - w) + x[i1] * w

    foot, root, gates = at_steps(legs.ankle), at_steps(floor + ride), at_steps(gate)
    weight, held_at = _locks(job, path, lock, gates, at_steps)
    locked = _held(job, foot, weight, held_at, steps)
    hits = _traces(job, locked, root, steps)
    exact = settings.exact_slope
    height = np.array([settings.als_foot_height or leg.sole.heel_height or 0.0 for leg in job.feet.legs])
    location, angles = als_steps.targets(locked, root, hits[0], hits[1], hits[2], height, exact)
    airborne = ~at_steps(_near_contact(job, times).astype(np.float64)).astype(bool)
    moved = als_steps.run(location, angles, gates, airborne, settings, 1.0 / settings.als_rate)
    return _baked(job, gate, path, prints, ride, steps, moved, weight, held_at)


def _ride(job: Job, path: Path) -> tuple[Array, Array]:
    """How far the ground under the hips lies over the take's own floor, smoothed, (F,); and that floor's height, (F,)."""
    settings, times = job.settings, job.take.times
    dt = signals.spacing(times)
    own = job.found.floor
    floor = np.full(len(times), own) if own is not None else signals.smooth_held(path.floor.min(axis=1), signals.bell(0.5, dt))
    trend = pelvis.trend(path.rise, path.inside, settings.pelvis_window)
    points = job.legs.hip.mean(axis=1)
    points[:, 2] = floor + trend
    steepest = float(np.cos(np.radians(settings.slope_limit)))
    hits = terrain.cast_down(job.ground, points, times, settings.trace_up, settings.trace_down)
    under = terrain.nearest_to(hits, points[:, 2], steepest).height
    ride = np.where(np.isnan(under), trend, under - floor)
    return signals.smooth_held(ride, signals.bell(settings.pelvis_window, dt)), floor


def _near_contact(job: Job, times: Array) -> Flags:
    """(F,): either foot stands, or did or will within a tenth of a second."""
    n = signals.half_width(0.1, signals.spacing(times))
    return signals.highest(np.any(job.found.held, axis=1).astype(np.float64), n) > 0.5


def _locks(job: Job, path: Path, lock: Array | None, gates: Array, at_steps: Callable[[Array], Array]) -> tuple[Array, Indices]:
    """Lock weights and what they hold, (N, 2) each."""
    settings, times = job.settings, job.take.times
    curve = np.zeros((len(times), 2))
    if settings.hold_contacts:
        for side in range(2):
            held = job.found.flat[:, side]
            curve[:, side] = fade(held[:, None].astype(np.float64), Stretches.of(held, times), settings.ease_out, 0.0)[:, 0]
        if lock is not None:
            curve = np.where(np.isnan(lock), curve, np.clip(lock, 0.0, 1.0))
    curves = at_steps(curve)
    both = [als_steps.lock_weights(curves[:, side], gates[:, side]) for side in range(2)]
    return np.stack([b[0] for b in both], axis=1), np.stack([b[1] for b in both], axis=1)


def _held(job: Job, foot: Array, weight: Array, held_at: Indices, steps: Array) -> Array:
    """Feet (N, 2, 3) drawn to where they are locked."""
    out = foot.copy()
    for side in range(2):
        at = np.flatnonzero(held_at[:, side] >= 0)
        if len(at):
            first = held_at[at, side]
            now, then = _spaces(job, side, steps[at], steps[first], steps[first])
            place = now.point_out(then.point_in(foot[first, side]))
            out[at, side] += (place - foot[at, side]) * weight[at, side, None]
    return out


def _spaces(job: Job, side: int, now: Array, then: Array, moment: Array) -> tuple[Spaces, Spaces]:
    """Spaces, at ``now`` and ``then``, of what is under a foot at ``moment``."""
    times = job.take.times
    if job.under is None:
        objects = np.full(len(now), -1, dtype=np.int64)
        return spaces_of(job.ground, objects, now, False), spaces_of(job.ground, objects, then, False)
    objects = job.under[np.clip(np.searchsorted(times, moment - 1e-9), 0, len(times) - 1), side]
    return spaces_of(job.ground, objects, now, True), spaces_of(job.ground, objects, then, True)


def _traces(job: Job, foot: Array, root: Array, steps: Array) -> tuple[Array, Array, Flags]:
    """Points, normals (N, 2, 3) and walkable hits (N, 2) of one ray a foot, from above to below the root's floor."""
    settings: FeetSettings = job.settings
    points = foot.copy()
    points[..., 2] = root[:, None]
    flat = points.reshape(-1, 3)
    hits = terrain.cast_down(job.ground, flat, np.repeat(steps, 2), settings.trace_up, settings.trace_down)
    steepest = float(np.cos(np.radians(settings.slope_limit)))
    found = terrain.nearest_to(hits, flat[:, 2], steepest)
    walkable = found.object >= 0
    points = flat.copy()
    points[:, 2] = np.where(walkable, found.height, flat[:, 2])
    return points.reshape(foot.shape), found.normal.reshape(foot.shape), walkable.reshape(foot.shape[:2])


def _baked(
    job: Job, gate: Array, path: Path, prints: Prints, ride: Array, steps: Array, moved: als_steps.Offsets, weight: Array, held_at: Indices
) -> tuple[bake.Baked, Array, Path]:
    """Offsets and locks put onto the frames of the take."""
    settings, legs, times = job.settings, job.legs, job.take.times

    def at_frames(x: Array) -> Array:
        flat = x.reshape(len(x), -1)
        return np.column_stack([np.interp(times, steps, flat[:, c]) for c in range(flat.shape[1])]).reshape(len(times), *x.shape[1:])

    ankle, foot = legs.ankle.copy(), legs.foot.copy()
    weights = at_frames(weight)
    frame = np.clip(np.floor((times - steps[0]) * settings.als_rate + 1e-6).astype(np.int64), 0, len(steps) - 1)
    for side in range(2):
        first = held_at[frame, side]
        at = np.flatnonzero(first >= 0)
        if len(at):
            moment = steps[first[at]]
            source = np.clip(np.searchsorted(times, moment - 1e-9), 0, len(times) - 1)
            now, then = _spaces(job, side, times[at], times[source], moment)
            place = now.point_out(then.point_in(ankle[source, side]))
            turn = now.turn_out(then.turn_in(legs.foot[source, side]))
            w = weights[at, side]
            ankle[at, side] += (place - ankle[at, side]) * w[:, None]
            foot[at, side] = quat.slerp(legs.foot[at, side], turn, w)
    ankle = ankle + at_frames(moved.location)
    ankle[..., 2] += ride[:, None]  # velocities on the ground are level: a lock goes up and down with the character's floor
    angles = np.radians(at_frames(moved.angles))
    if settings.exact_slope:
        tilt = quat.exp(np.concatenate([angles, np.zeros((*angles.shape[:-1], 1))], axis=-1))
    else:
        x, y = np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0])
        tilt = quat.mul(quat.from_axis_angle(y, angles[..., 1]), quat.from_axis_angle(x, angles[..., 0]))
    foot = quat.mul(tilt, foot)
    toe = quat.mul(foot, quat.mul(quat.inv(legs.foot), legs.toe))
    shift = at_frames(moved.pelvis) * at_frames(moved.alpha)[:, None]
    shift[:, 2] += ride * gate.max(axis=1)
    if settings.pin_hips:
        shift[:] = 0.0
    normal = quat.rotate(tilt, np.array([0.0, 0.0, 1.0]))
    baked = bake.bake(job.take, job.feet, legs, shift, ankle, foot, toe, normal, gate, settings)
    held = weights > 0.99
    return (
        baked,
        shift,
        Path(ankle, foot, toe, path.rise, path.floor, held, np.where(held, path.owner, -1), normal, weights, path.inside, path.touched),
    )
