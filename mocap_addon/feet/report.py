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
from .result import BALL, TOE, Footprint

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]

REACHED = 0.002
"""Metres that an ankle may miss its place by."""


def footprints(job: Job, prints: Prints, path: Path, baked: Baked, gate: Array) -> tuple[Footprint, ...]:
    """The places, each with how well it was kept."""
    slid = metrics.sliding(
        _standing(job, baked.soles), path.normal, job.take.times, path.held & (gate > 0.999), _carried(job, _standing(job, baked.soles))
    )
    out: list[Footprint] = []
    steps = np.diff(job.take.times, append=job.take.times[-1:])
    travel = np.nan_to_num(slid, nan=0.0) * steps[:, None]
    for i in range(len(prints.side)):
        side, a, b = int(prints.side[i]), int(prints.start[i]), int(prints.end[i])
        out.append(
            Footprint(
                "left" if side == 0 else "right", a, b, _triple(prints.place[i]), _four(prints.rotation[i]), _triple(prints.normal[i]),
                int(prints.object[i]), float(travel[a:b, side].sum()), bool(np.all(baked.solved.missing[a:b, side] < REACHED)),
            )
        )  # fmt: skip
    return tuple(out)


def _standing(job: Job, soles: Array) -> Array:
    """Points (F, 2, 3, 3) that a foot can stand on: where it bends at the ball the tip is none of them (the ball stands in for it)."""
    out = soles.copy()
    for side in range(2):
        if job.has_toe[side]:
            out[:, side, TOE] = soles[:, side, BALL]
    return out


def _triple(v: Array) -> tuple[float, float, float]:
    return (float(v[0]), float(v[1]), float(v[2]))


def _four(q: Array) -> tuple[float, float, float, float]:
    return (float(q[0]), float(q[1]), float(q[2]), float(q[3]))


def _carried(job: Job, soles: Array) -> Array | None:
    """Velocity of what is under every point of the soles; None where nothing moves."""
    if job.under is None:
        return None
    objects = np.repeat(job.under.ravel(), 3)
    dt = signals.spacing(job.take.times)
    return terrain.carried_velocity(job.ground, soles.reshape(-1, 3), objects, np.repeat(job.take.times, 6), dt).reshape(soles.shape)


def summary(
    job: Job, prints: Prints, path: Path, baked: Baked, gate: Array, traces: Array, made: tuple[Footprint, ...]
) -> dict[str, object]:
    """The report for JSON."""
    times, held = job.take.times, path.held
    stands = held & (path.owner >= 0)
    on_ground = np.zeros_like(stands)
    if len(prints.side):
        on_ground = stands & (prints.object[np.maximum(path.owner, 0)] >= 0)
    before_floor = np.repeat(path.floor[..., None], 3, axis=2)
    before = _figures(job, job.soles, before_floor, np.broadcast_to([0.0, 0.0, 1.0], path.normal.shape), held, held, times)
    after = _figures(job, baked.soles, traces[..., 2], path.normal, held, on_ground, times)
    missing = np.where(held, baked.solved.missing, 0.0)
    return {
        "mode": job.settings.mode,
        "frames": len(times),
        "floor_m": job.found.floor,
        "before": before,
        "after": after,
        "pelvis": {
            "lowest_mm": float(baked_offset(job, baked).min() * 1e3),
            "highest_mm": float(baked_offset(job, baked).max() * 1e3),
            "jerk_ratio": _jerk_ratio(job, baked),
        },
        "unreached_frames": int(np.count_nonzero((missing > REACHED).any(axis=1))),
        "unreached_mm": float(missing.max(initial=0.0) * 1e3),
        "contacts": [
            {
                "side": p.side, "start_s": float(times[p.start]), "end_s": float(times[p.end - 1]),
                "on": job.ground.names[p.object] if 0 <= p.object < len(job.ground.names) else None,
                "slid_mm": p.drift * 1e3, "source_slid_mm": float(_source_travel(job, p) * 1e3), "reached": p.reached,
            }
            for p in made
        ],
    }  # fmt: skip


def baked_offset(job: Job, baked: Baked) -> Array:
    """(F,): how far the hips were moved up."""
    source = np.broadcast_to(job.take.local_translations[:, job.feet.hips], (len(job.take.times), 3))
    return quat.rotate(job.legs.above_hips, baked.local_translations[:, 0] - source)[:, 2]


def _jerk_ratio(job: Job, baked: Baked) -> float:
    own = metrics.vertical_jerk(job.legs.hips[:, 2], job.take.times)
    new = metrics.vertical_jerk(job.legs.hips[:, 2] + baked_offset(job, baked), job.take.times)
    return new / own if own > 1e-9 else 1.0


def _source_travel(job: Job, p: Footprint) -> float:
    side = 0 if p.side == "left" else 1
    points = job.soles[p.start : p.end, side, :2]
    low = points[..., 2].argmin(axis=1)
    step = np.diff(points, axis=0)[..., :2]
    if not len(step):
        return 0.0
    return float(length(np.take_along_axis(step, low[:-1, None, None], axis=1)[:, 0]).sum())


def _figures(job: Job, soles: Array, surface: Array, normal: Array, held: Flags, on_ground: Flags, times: Array) -> dict[str, float]:
    slid = metrics.sliding(_standing(job, soles), normal, times, held, _carried(job, _standing(job, soles)))
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
