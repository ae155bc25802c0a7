# SPDX-License-Identifier: GPL-3.0-or-later
"""Filters without delay and runs of frames. Widths are seconds, so that the rate of a take does not matter."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
Indices = NDArray[np.int64]


def spacing(times: Array) -> float:
    """Median seconds from frame to frame; 1/30 for fewer than two frames."""
    return float(np.median(np.diff(times))) if len(times) > 1 else 1.0 / 30.0


def half_width(seconds: float, dt: float) -> int:
    """Frames within ``seconds``."""
    return max(round(seconds / dt), 0)


def gaussian(cutoff: float, dt: float) -> Array:
    """Kernel whose response is one over root two at ``cutoff`` Hz."""
    sigma = np.sqrt(np.log(2.0)) / (2.0 * np.pi * cutoff) / dt
    k = np.arange(-int(np.ceil(4.0 * sigma)), int(np.ceil(4.0 * sigma)) + 1)
    kernel = np.exp(-0.5 * (k / max(sigma, 1e-9)) ** 2)
    return kernel / kernel.sum()


def bell(seconds: float, dt: float) -> Array:
    """Kernel of finite width, ``seconds`` to either side: a cubic B-spline (four box filters in a row), twice smooth."""
    n = int(seconds / dt + 1e-9)
    if n == 0:
        return np.ones(1)
    x = np.abs(np.arange(-n, n + 1)) * (2.0 * dt / seconds)
    kernel = np.where(x < 1.0, 2.0 / 3.0 - x * x + 0.5 * x**3, np.maximum(2.0 - x, 0.0) ** 3 / 6.0)
    return kernel / kernel.sum()


def convolve(x: Array, kernel: Array) -> Array:
    """``x`` (F, ...) smoothed over frames; beyond the ends it goes on as its image through the end point, so that slopes stay."""
    n = len(kernel) // 2
    if n == 0 or len(x) < 2:
        return x.copy()
    flat = x.reshape(len(x), -1)
    out = np.empty_like(flat)
    at = np.arange(1, n + 1)
    period = 2 * (len(x) - 1)
    mirrored = np.abs((at % period + len(x) - 1) % period - (len(x) - 1))  # indices of an image of an image of short takes
    for c in range(flat.shape[1]):
        column = flat[:, c]
        before = 2.0 * column[0] - column[mirrored][::-1]
        after = 2.0 * column[-1] - column[len(x) - 1 - mirrored]
        out[:, c] = np.convolve(np.concatenate([before, column, after]), kernel, mode="valid")
    return out.reshape(x.shape)


def smooth_held(x: Array, kernel: Array) -> Array:
    """``x`` (F,) smoothed; beyond the ends its end values are held, so that it never leaves its own bounds."""
    n = len(kernel) // 2
    return x.copy() if n == 0 else np.convolve(np.pad(x, n, mode="edge"), kernel, mode="valid")


def lowest(x: Array, frames: int) -> Array:
    """Minimum over ``frames`` to either side, along the first axis of ``(F,)`` or ``(F, n)``."""
    out = x.copy()
    reach = 0
    while reach < frames:  # twice as wide with every pass
        step = min(reach + 1, frames - reach)
        wider = out.copy()
        wider[step:] = np.minimum(wider[step:], out[:-step])
        wider[:-step] = np.minimum(wider[:-step], out[step:])
        if step >= len(x):
            return np.broadcast_to(x.min(axis=0), x.shape).copy()
        out = wider
        reach += step
    return out


def lowest_within(x: Array, seconds: float, dt: float) -> Array:
    """Minimum over ``seconds`` to either side of ``(F,)``; frames at the very edge of that count as far as it reaches to them."""
    n = int(seconds / dt + 1e-9)
    part = seconds / dt - n
    inner = lowest(x, n)
    if part < 1e-6:
        return inner
    outer = lowest(inner, 1)
    both = np.isfinite(inner) & np.isfinite(outer)
    return np.where(both, np.where(both, inner, 0.0) * (1.0 - part) + np.where(both, outer, 0.0) * part, outer)


def highest(x: Array, frames: int) -> Array:
    """Maximum over ``frames`` to either side."""
    return -lowest(-x, frames)


def velocity(x: Array, times: Array) -> Array:
    """Central differences of ``x`` (F, ...) over ``times``; zeros for a single frame."""
    if len(times) < 2:
        return np.zeros_like(x)
    return np.gradient(x, times, axis=0)


def runs(mask: Flags) -> tuple[Indices, Indices]:
    """First frame and the one after the last of every stretch of True in ``(F,)``."""
    edges = np.diff(np.concatenate([[False], mask, [False]]).astype(np.int8))
    return np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)


def hysteresis(enter: Flags, stay: Flags) -> Flags:
    """Stretches of ``stay`` that hold at least one ``enter``: the same forwards and backwards in time."""
    start, end = runs(stay)
    if len(start) == 0:
        return np.zeros(len(stay), dtype=bool)
    count = np.concatenate([[0], np.cumsum(enter & stay)])
    return filled(start, end, count[end] > count[start], len(stay))


def filled(start: Indices, end: Indices, keep: Flags, frames: int) -> Flags:
    """True inside those stretches that are kept."""
    mark = np.zeros(frames + 1, dtype=np.int64)
    np.add.at(mark, start[keep], 1)
    np.add.at(mark, end[keep], -1)
    return np.cumsum(mark[:-1]) > 0


def majority(mask: Flags, seconds: float, dt: float) -> Flags:
    """What most frames within ``seconds`` (the whole window) say."""
    n = half_width(0.5 * seconds, dt)
    if n == 0:
        return mask
    votes = np.convolve(np.pad(mask.astype(np.float64), n, mode="edge"), np.ones(2 * n + 1), mode="valid")
    return votes > n + 0.5


def without_short(mask: Flags, seconds: float, dt: float) -> Flags:
    """Without stretches shorter than ``seconds``; those cut off by the take's ends stay."""
    start, end = runs(mask)
    keep = ((end - start) * dt >= seconds - 0.5 * dt) | (start == 0) | (end == len(mask))
    return filled(start, end, keep, len(mask))


def without_gaps(mask: Flags, seconds: float, dt: float) -> Flags:
    """With gaps shorter than ``seconds`` closed."""
    start, end = runs(~mask)
    inside = (start > 0) & (end < len(mask))
    return mask | filled(start, end, inside & ((end - start) * dt < seconds - 0.5 * dt), len(mask))


def ease(x: Array) -> Array:
    """``3 x^2 - 2 x^3`` of x limited to 0..1."""
    x = np.clip(x, 0.0, 1.0)
    return x * x * (3.0 - 2.0 * x)


def neighbours(mask: Flags) -> tuple[Indices, Indices]:
    """For every frame the last True at or before it and the first at or after it; -1 and F where there is none."""
    f = len(mask)
    index = np.arange(f)
    before = np.maximum.accumulate(np.where(mask, index, -1))
    after = np.minimum.accumulate(np.where(mask, index, f)[::-1])[::-1]
    return before, after
