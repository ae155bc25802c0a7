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
    n = half_width(seconds, dt)
    if n == 0:
        return np.ones(1)
    x = np.abs(np.arange(-n, n + 1) / (n + 1)) * 2.0
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


def fade(values: Array, mask: Flags, times: Array, leave: float, enter: float) -> Array:
    """Values known where ``mask`` is set, let go outside it.

    A value dies away within ``leave`` seconds after a stretch and the next begins to show ``enter`` seconds before its own, both with
    their own velocity at the edge (cubic Hermite), so that nothing jumps. Where the gap is shorter than both, one goes over into
    the other and nothing is let go.

    Parameters
    ----------
    values : (F, n) array
    mask : (F,) bool array
    times : (F,) array
    leave, enter : float

    Returns
    -------
    (F, n) array
    """
    out = np.where(mask[:, None], values, 0.0)
    if not np.any(mask) or np.all(mask):
        return out
    before, after = neighbours(mask)
    out_of = np.flatnonzero(~mask)
    b, a = before[out_of], after[out_of]
    has_b, has_a = b >= 0, a < len(mask)
    b, a = np.maximum(b, 0), np.minimum(a, len(mask) - 1)
    gap = np.where(has_b & has_a, times[a] - times[b], np.inf)
    since, until = times[out_of] - times[b], times[a] - times[out_of]
    rate = _edge_rates(values, mask, times)
    for known, there, x, width, sign in ((has_b, b, since, leave, 1.0), (has_a, a, until, enter, -1.0)):
        span = np.maximum(np.minimum(width, gap), 1e-9)
        s = np.clip(x / span, 0.0, 1.0)
        hold, carry = 1.0 - ease(s), s * (1.0 - s) ** 2 * span * sign
        part = values[there] * hold[:, None] + rate[there] * carry[:, None]
        out[out_of] += np.where((known & (x < span))[:, None], part, 0.0)
    return out


def _edge_rates(values: Array, mask: Flags, times: Array) -> Array:
    """Velocity of ``values`` at the first and last frame of every stretch, one-sided over up to three frames; zero elsewhere."""
    rate = np.zeros_like(values)
    start, end = runs(mask)
    last = end - 1
    reach = np.minimum(last - start, 2)
    for here, there in ((start, start + reach), (last, last - reach)):
        span = times[there] - times[here]
        use = span != 0.0
        rate[here[use]] = (values[there[use]] - values[here[use]]) / span[use, None]
    return rate


def between(values: Array, mask: Flags, times: Array) -> Array:
    """Values (F,) known where ``mask`` is set; elsewhere eased from one stretch's last to the next one's first, held at the ends."""
    if not np.any(mask):
        return np.zeros_like(values)
    before, after = neighbours(mask)
    b = np.where(before < 0, after, before)
    a = np.where(after >= len(mask), before, after)
    x = np.where(a > b, (times - times[b]) / np.maximum(times[a] - times[b], 1e-9), 0.0)
    return np.where(mask, values, values[b] + (values[a] - values[b]) * ease(x))
