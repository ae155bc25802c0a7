# SPDX-License-Identifier: GPL-3.0-or-later
"""Unity's animation curves, evaluated on all frames at once.

Between two keys at ``t0`` and ``t1``, ``d = t1 - t0``, ``u = (t - t0) / d``, a component is the cubic Hermite
``(2u^3 - 3u^2 + 1) v0 + (u^3 - 2u^2 + u) d m0 + (3u^2 - 2u^3) v1 + (u^3 - u^2) d m1`` with ``m0`` the first key's out-slope and ``m1`` the
second's in-slope. Where one of them is infinite the first value holds until the second key. With weights it is the Bezier curve through
``(t0 + w0 d, v0 + w0 d m0)`` and ``(t1 - w1 d, v1 - w1 d m1)``; weights of 1/3 make it the Hermite one.
(Unity manual, "Animation Curves"; ``AnimationCurve.Evaluate``.)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..motion import quat
from ..motion.curves import bezier_parameter
from .unity_keys import Keys

Array = NDArray[np.float64]

PING_PONG, REPEAT, CLAMP = 0, 1, 2
"""What a curve does beyond its ends (``m_PreInfinity``, ``m_PostInfinity``)."""

# The axes that each of Unity's rotation orders turns about, first to last.
_ORDERS = ("xyz", "xzy", "yzx", "yxz", "zxy", "zyx")
UNITY_ORDER = 4


def evaluate(keys: Keys, at: Array, before: int = CLAMP, after: int = CLAMP) -> Array:
    """Values ``(F, C)`` at the times ``at (F,)``, seconds in any order."""
    times = keys.times
    if len(times) == 1:
        return np.repeat(keys.values, len(at), axis=0)
    at = _inside(at, float(times[0]), float(times[-1]), before, after)
    # A frame's time is a float32 rounding off a key's: where the curve jumps, that decides between two poses.
    reach = np.maximum(np.abs(at), 1.0) * 2.0**-22
    i = np.clip(np.searchsorted(times, at, side="right") - 1, 0, len(times) - 2)
    d = times[i + 1] - times[i]
    span = np.where(d > 0.0, d, 1.0)
    u = np.clip((at - times[i]) / span, 0.0, 1.0)[:, None]
    v0, v1, m0, m1 = keys.values[i], keys.values[i + 1], keys.out_slopes[i], keys.in_slopes[i + 1]
    steps = ~(np.isfinite(m0) & np.isfinite(m1))
    rise0, rise1 = np.where(steps, 0.0, m0) * d[:, None], np.where(steps, 0.0, m1) * d[:, None]
    out = _hermite(u, v0, v1, rise0, rise1)
    if keys.in_weights is not None and keys.out_weights is not None:
        w0, w1 = keys.out_weights[i], keys.in_weights[i + 1]
        weighted = (w0 != 1.0 / 3.0) | (w1 != 1.0 / 3.0)
        if np.any(weighted):
            f, c = np.nonzero(weighted)
            out[f, c] = _bezier(u[f, 0], w0[f, c], w1[f, c], v0[f, c], v1[f, c], rise0[f, c], rise1[f, c])
    arrived = (at >= times[i + 1] - reach)[:, None]
    out = np.where(steps, np.where(arrived, v1, v0), out)
    out[at >= times[-1]] = keys.values[-1]
    return out


def rotations(values: Array) -> Array:
    """Unity's quaternions xyzw ``(F, 4)``, of any length -> unit quaternions wxyz, still left-handed; zero ones become no rotation."""
    q = values[:, [3, 0, 1, 2]]
    length = np.sqrt(np.sum(q * q, axis=1))
    return np.where(length[:, None] > 1e-9, q / np.maximum(length, 1e-9)[:, None], quat.IDENTITY)


def euler_rotations(degrees: Array, order: int = UNITY_ORDER) -> Array:
    """Angles in degrees about x, y, z ``(F, 3)`` -> unit quaternions wxyz ``(F, 4)``, still left-handed.

    ``order`` is ``m_RotationOrder``; its axes are those of the parent, the first turned about first: the usual 4 (zxy) is
    ``R = Ry Rx Rz``. An order that does not exist is read as the usual one.
    """
    half = np.radians(degrees) * 0.5
    out = quat.identity(len(degrees))
    for axis in _ORDERS[order if 0 <= order < len(_ORDERS) else UNITY_ORDER]:
        k = "xyz".index(axis)
        turn = np.zeros((len(degrees), 4))
        turn[:, 0], turn[:, k + 1] = np.cos(half[:, k]), np.sin(half[:, k])
        out = quat.mul(turn, out)
    return out


def _inside(at: Array, start: float, stop: float, before: int, after: int) -> Array:
    """Times in the keys' range that stand for times outside it."""
    span = stop - start
    if span <= 0.0 or (before == CLAMP and after == CLAMP):
        return np.clip(at, start, stop)
    out = at.copy()
    for kind, beyond in ((before, at < start), (after, at > stop)):
        if kind == REPEAT:
            out[beyond] = start + np.mod(at[beyond] - start, span)
        elif kind == PING_PONG:
            around = np.mod(at[beyond] - start, 2.0 * span)
            out[beyond] = start + np.where(around > span, 2.0 * span - around, around)
    return np.clip(out, start, stop)


def _hermite(u: Array, v0: Array, v1: Array, rise0: Array, rise1: Array) -> Array:
    u2, u3 = u * u, u * u * u
    return (2.0 * u3 - 3.0 * u2 + 1.0) * v0 + (u3 - 2.0 * u2 + u) * rise0 + (3.0 * u2 - 2.0 * u3) * v1 + (u3 - u2) * rise1


def _bezier(u: Array, w0: Array, w1: Array, v0: Array, v1: Array, rise0: Array, rise1: Array) -> Array:
    """The weighted piece at the shares ``u`` of its time; all arrays ``(N,)``."""
    s = bezier_parameter(w0, 1.0 - w1, u)
    r = 1.0 - s
    return r * r * r * v0 + 3.0 * r * r * s * (v0 + w0 * rise0) + 3.0 * r * s * s * (v1 - w1 * rise1) + s * s * s * v1
