# SPDX-License-Identifier: GPL-3.0-or-later
"""What a bake did, in figures a person reads: before and after, in mm and cm/s, and contact by contact."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..motion import quat
from . import metrics, signals, terrain
from .bake import Baked
from .footprints import Prints
from .job import Job
from .legs import length
from .paths import Path
from .result import BALL, HEEL, TOE, Footprint

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
Indices = NDArray[np.int64]

REACHED = 0.002
"""Metres that an ankle may miss its place by."""


def footprints(job: Job, prints: Prints, baked: Baked, gate: Array, slid: Array) -> tuple[Footprint, ...]:
    """The places, each with how well it was kept; ``slid`` as :func:`sliding` gives it."""
    full = gate > 0.999
    full[:-1] &= full[1:]
    travel = np.where(full, np.nan_to_num(slid, nan=0.0), 0.0) * np.diff(job.take.times, append=job.take.times[-1:])[:, None]
    drift = _summed(travel, prints.side, prints.start, prints.end)
    out_of_reach = _summed(baked.solved.missing >= REACHED, prints.side, prints.start, prints.end)
    rows = zip(
        prints.side.tolist(), prints.start.tolist(), prints.end.tolist(), prints.place.tolist(), prints.rotation.tolist(),
        prints.normal.tolist(), prints.object.tolist(), drift.tolist(), (out_of_reach == 0).tolist(), strict=True,
    )  # fmt: skip
    return tuple(
        Footprint("left" if side == 0 else "right", a, b, tuple(place), tuple(rotation), tuple(normal), number, travelled, reached)
        for side, a, b, place, rotation, normal, number, travelled, reached in rows
    )


def _summed(values: Array | Flags, side: Indices, start: Indices, end: Indices) -> Array:
    """Sums (n,) of values (F, 2) over contacts."""
    total = np.cumsum(np.concatenate([np.zeros((1, 2)), values.astype(np.float64)]), axis=0)
    return total[end, side] - total[start, side]


def sliding(job: Job, soles: Array, normal: Array, held: Flags) -> Array:
    """(F, 2): how fast what a foot stands on slides over what carries it, see :func:`.metrics.sliding`."""
    standing = _standing(job, soles)
    return metrics.sliding(standing, normal, job.take.times, held, _carried(job, standing))


def _standing(job: Job, soles: Array) -> Array:
    """Points (F, 2, n, 3) that a foot can stand on: where it bends at the ball the tip is none of them (the ball stands in for it)."""
    if all(job.has_toe):
        return soles[:, :, :TOE]
    out = soles.copy()
    for side in range(2):
        if job.has_toe[side]:
            out[:, side, TOE] = soles[:, side, BALL]
    return out


def _carried(job: Job, soles: Array) -> Array | None:
    """Velocity of what is under every point of the soles; None where nothing moves."""
    if job.under is None:
        return None
    f, _, n, _ = soles.shape
    objects, times = np.repeat(job.under.ravel(), n), np.repeat(job.take.times, 2 * n)
    dt = signals.spacing(job.take.times)
    return terrain.carried_velocity(job.ground, soles.reshape(-1, 3), objects, times, dt).reshape(f, 2, n, 3)


def summary(
    job: Job, prints: Prints, path: Path, baked: Baked, traces: Array, slid: Array, made: tuple[Footprint, ...]
) -> dict[str, object]:
    """The report for JSON; ``slid`` as :func:`sliding` gives it."""
    times, held = job.take.times, path.held
    stands = held & (path.owner >= 0)
    on_ground = np.zeros_like(stands)
    if len(prints.side):
        on_ground = stands & (prints.object[np.maximum(path.owner, 0)] >= 0)
    before_floor = np.repeat(path.floor[..., None], 3, axis=2)
    up = np.broadcast_to([0.0, 0.0, 1.0], path.normal.shape)
    before = _figures(job.soles, before_floor, up, sliding(job, job.soles, up, held), held, held, times)
    after = _figures(baked.soles, traces[..., 2], path.normal, slid, held, on_ground, times)
    missing = np.where(held, baked.solved.missing, 0.0)
    offset, travel = baked_offset(job, baked), _source_travel(job, prints)
    return {
        "mode": job.settings.mode,
        "frames": len(times),
        "floor_m": job.found.floor,
        "before": before,
        "after": after,
        "pelvis": {
            "lowest_mm": float(offset.min() * 1e3),
            "highest_mm": float(offset.max() * 1e3),
            "jerk_ratio": _jerk_ratio(job, offset),
        },
        "unreached_frames": int(np.count_nonzero((missing > REACHED).any(axis=1))),
        "unreached_mm": float(missing.max(initial=0.0) * 1e3),
        "contacts": [
            {
                "side": p.side, "start_s": float(times[p.start]), "end_s": float(times[p.end - 1]),
                "on": job.ground.names[p.object] if 0 <= p.object < len(job.ground.names) else None,
                "slid_mm": p.drift * 1e3, "source_slid_mm": own * 1e3, "reached": p.reached,
            }
            for p, own in zip(made, travel.tolist(), strict=True)
        ],
    }  # fmt: skip


def baked_offset(job: Job, baked: Baked) -> Array:
    """(F,): how far the hips were moved up."""
    source = np.broadcast_to(job.take.local_translations[:, job.feet.hips], (len(job.take.times), 3))
    return quat.rotate(job.legs.above_hips, baked.local_translations[:, 0] - source)[:, 2]


def _jerk_ratio(job: Job, offset: Array) -> float:
    own = metrics.vertical_jerk(job.legs.hips[:, 2], job.take.times)
    new = metrics.vertical_jerk(job.legs.hips[:, 2] + offset, job.take.times)
    return new / own if own > 1e-9 else 1.0


def _source_travel(job: Job, prints: Prints) -> Array:
    """(n,): how far the lower one of heel and ball of the source goes in each contact, metres."""
    points = job.soles[:, :, :TOE]
    step = length(np.diff(points, axis=0)[..., :2])
    heel_lower = points[:-1, :, HEEL, 2] <= points[:-1, :, BALL, 2]
    return _summed(np.where(heel_lower, step[..., HEEL], step[..., BALL]), prints.side, prints.start, prints.end - 1)


def _figures(soles: Array, surface: Array, normal: Array, slid: Array, held: Flags, on_ground: Flags, times: Array) -> dict[str, float]:
    known = slid[~np.isnan(slid)]
    deep = metrics.penetration(soles, surface)
    gaps = metrics.gap(soles, surface, on_ground, normal)
    gaps = gaps[~np.isnan(gaps)]
    height = soles[..., 2] - surface
    return {
        "skating_ratio": metrics.skating_ratio(soles[:, :, 1], height[:, :, 1], times),
        "skate_cm_s": float(known.mean() * 100.0) if len(known) else 0.0,
        "skate_max_cm_s": float(known.max() * 100.0) if len(known) else 0.0,
        "weighted_skate_cm_s": metrics.weighted_skate(soles[:, :, 1], height[:, :, 1], times, held) * 100.0,
        "penetration_contact_mm": float(deep[on_ground].max(initial=0.0) * 1e3),
        "penetration_swing_mm": float(deep[~held].max(initial=0.0) * 1e3),
        "gap_mm": float(gaps.max(initial=0.0) * 1e3),
    }


def notes(job: Job, prints: Prints, made: tuple[Footprint, ...]) -> tuple[str, ...]:
    """What a person should know, one plain sentence each."""
    out: list[str] = []
    if not len(prints.side):
        out.append("No foot contact was found; check the contact speed and height, or key foot_lock_l and foot_lock_r.")
    late = [p for p in made if not p.reached]
    if late:
        first = job.take.times[late[0].start]
        where = f"{len(late)} of {len(made)} footprints are out of the legs' reach (the first at {first:.2f} s)"
        out.append(f"{where}; allow stretch or move the ground.")
    hanging = int(np.count_nonzero(prints.object < 0))
    if hanging:
        out.append(f"{hanging} of {len(made)} contacts found no ground within the trace; those feet keep their own height.")
    return tuple(out)
