# SPDX-License-Identifier: GPL-3.0-or-later
"""Quaternion arithmetic on arrays.

Conventions, for the whole project
----------------------------------
* Quaternions are ``[w, x, y, z]`` in the last axis, shape ``(..., 4)``, unit length unless said otherwise.
  ``q`` and ``-q`` are the same rotation.
* ``mul(a, b)`` applies ``b`` first: ``rotate(mul(a, b), v) == rotate(a, rotate(b, v))``.
* Right-handed axes, angles in radians, float64. Leading axes broadcast; time is the first axis, joints the second.
* Results are laid out *component by component* (Fortran order): ``q[:, j, c]`` of an ``(F, J, 4)`` array is
  contiguous over the frames. That is what both vectorised arithmetic and f-curves want. The layout never changes a value.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

IDENTITY: Array = np.array([1.0, 0.0, 0.0, 0.0])
IDENTITY.flags.writeable = False

_AXES: dict[str, int] = {"X": 0, "Y": 1, "Z": 2}

_FEW = 64
"""Numbers in an array up to which calls cost more than arithmetic: :func:`mul` and :func:`rotate` then do the same sums in fewer calls."""

# Row by row, what a product's first factor is multiplied with: component of the second factor, and sign.
_PARTNER = np.array([[0, 1, 2, 3], [1, 0, 3, 2], [2, 3, 0, 1], [3, 2, 1, 0]])
_SIGN: Array = np.array([[1.0, -1.0, -1.0, -1.0], [1.0, 1.0, 1.0, -1.0], [1.0, -1.0, 1.0, 1.0], [1.0, 1.0, -1.0, 1.0]])
_NEXT, _LAST = np.array([1, 2, 0]), np.array([2, 0, 1])


def pack(w: Array, x: Array, y: Array, z: Array) -> Array:
    """Four component arrays of one shape ``(...)`` -> ``(..., 4)``, component-major."""
    out = np.empty((*np.shape(w), 4), order="F")
    out[..., 0] = w
    out[..., 1] = x
    out[..., 2] = y
    out[..., 3] = z
    return out


def identity(shape: int | tuple[int, ...] = ()) -> Array:
    """Identity rotations of shape ``(*shape, 4)``."""
    shape = (shape,) if isinstance(shape, int) else shape
    out = np.zeros((*shape, 4), order="F")
    out[..., 0] = 1.0
    return out


def mul(a: Array, b: Array) -> Array:
    """Hamilton product ``a b`` (``b`` acts first); ``(..., 4)`` each, broadcast."""
    if a.size <= _FEW and b.size <= _FEW:
        return np.asfortranarray(np.add.reduce(a[..., None, :] * (b.take(_PARTNER, -1) * _SIGN), -1))
    aw, ax, ay, az = a[..., 0], a[..., 1], a[..., 2], a[..., 3]
    bw, bx, by, bz = b[..., 0], b[..., 1], b[..., 2], b[..., 3]
    return pack(
        aw * bw - ax * bx - ay * by - az * bz,
        aw * bx + ax * bw + ay * bz - az * by,
        aw * by - ax * bz + ay * bw + az * bx,
        aw * bz + ax * by - ay * bx + az * bw,
    )


def inv(q: Array) -> Array:
    """Inverse (conjugate) of unit quaternions ``(..., 4)``."""
    return q * np.array([1.0, -1.0, -1.0, -1.0])


def normalize(q: Array) -> Array:
    """Scale ``(..., 4)`` to unit length. A zero or non-finite quaternion gives NaN: bad data is not hidden."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return q / np.sqrt(np.einsum("...i,...i->...", q, q))[..., None]


def rotate(q: Array, v: Array) -> Array:
    """Rotate vectors ``v (..., 3)`` by ``q (..., 4)``; broadcast. Uses ``v + 2 w (u x v) + 2 u x (u x v)``, ``u`` the vector part."""
    if q.size <= _FEW and v.size <= _FEW:
        y, z = q.take(_NEXT + 1, -1), q.take(_LAST + 1, -1)
        t = 2.0 * (y * v.take(_LAST, -1) - z * v.take(_NEXT, -1))
        return np.asfortranarray(v + q[..., :1] * t + (y * t.take(_LAST, -1) - z * t.take(_NEXT, -1)))
    w, x, y, z = q[..., 0], q[..., 1], q[..., 2], q[..., 3]
    vx, vy, vz = v[..., 0], v[..., 1], v[..., 2]
    tx = 2.0 * (y * vz - z * vy)
    ty = 2.0 * (z * vx - x * vz)
    tz = 2.0 * (x * vy - y * vx)
    rx = vx + w * tx + (y * tz - z * ty)
    out = np.empty((*np.shape(rx), 3), order="F")
    out[..., 0] = rx
    out[..., 1] = vy + w * ty + (z * tx - x * tz)
    out[..., 2] = vz + w * tz + (x * ty - y * tx)
    return out


def from_axis_angle(axis: ArrayLike, angle: ArrayLike) -> Array:
    """Rotation by ``angle`` (radians, ``(...)``) about unit ``axis`` ``(..., 3)``."""
    axis_ = np.asarray(axis, dtype=np.float64)
    half = 0.5 * np.asarray(angle, dtype=np.float64)
    s = np.sin(half)
    w, x, y, z = np.broadcast_arrays(np.cos(half), s * axis_[..., 0], s * axis_[..., 1], s * axis_[..., 2])
    return pack(w, x, y, z)


def exp(v: Array) -> Array:
    """Rotation vector ``(..., 3)`` (axis times angle, radians) -> quaternion. Exact at zero."""
    angle = np.sqrt(np.einsum("...i,...i->...", v, v))
    half = np.asarray(0.5 * angle)
    factor = np.ones_like(half)  # 2 sin(angle / 2) / angle
    np.divide(np.sin(half), half, out=factor, where=half > 0.0)
    factor *= 0.5
    return pack(np.cos(half), factor * v[..., 0], factor * v[..., 1], factor * v[..., 2])


def log(q: Array) -> Array:
    """Rotation vector ``(..., 3)`` of the shorter turn (angle in [0, pi], radians). Exact at identity."""
    w, axis = q[..., 0], q[..., 1:]
    s = np.sqrt(np.einsum("...i,...i->...", axis, axis))
    angle = 2.0 * np.arctan2(s, np.abs(w))
    factor = np.where(s > 1e-12, angle / np.maximum(s, 1e-300), 2.0)
    return axis * np.where(w < 0.0, -factor, factor)[..., None]


def angle(a: Array, b: Array) -> Array:
    """Angle in radians between rotations ``a`` and ``b``, in [0, pi]; accurate near zero (``4 asin(|a - b| / 2)``)."""
    apart, together = a - b, a + b
    chord = np.minimum(np.einsum("...i,...i->...", apart, apart), np.einsum("...i,...i->...", together, together))
    return 4.0 * np.arcsin(np.clip(0.5 * np.sqrt(chord), 0.0, 1.0))


def slerp(a: Array, b: Array, t: ArrayLike) -> Array:
    """Spherical interpolation on the shorter arc; ``t (...)`` in [0, 1] broadcasts against the leading axes.

    Source: Shoemake, *Animating rotation with quaternion curves*, 1985; the weights come from ``atan2`` of the
    chord lengths, which stays accurate for nearly equal rotations.
    """
    t_ = np.asarray(t, dtype=np.float64)
    dot = np.einsum("...i,...i->...", a, b)
    sign = np.where(dot < 0.0, -1.0, 1.0)
    b = b * sign[..., None]
    minus, plus = a - b, a + b
    omega = 2.0 * np.arctan2(np.sqrt(np.einsum("...i,...i->...", minus, minus)), np.sqrt(np.einsum("...i,...i->...", plus, plus)))
    # sin(k omega) / sin(omega), written with sinc so that omega -> 0 gives k
    bottom = np.sinc(omega / np.pi)
    wa = (1.0 - t_) * np.sinc((1.0 - t_) * omega / np.pi) / bottom
    wb = t_ * np.sinc(t_ * omega / np.pi) / bottom
    return normalize(wa[..., None] * a + wb[..., None] * b)


def between(u: Array, v: Array, fallback_axis: ArrayLike = (1.0, 0.0, 0.0)) -> Array:
    """Smallest rotation that turns direction ``u (..., 3)`` onto ``v (..., 3)``; neither need be unit length.

    Opposite directions turn about ``fallback_axis`` made perpendicular to ``u``; should it lie along ``u``, about the coordinate axis
    that is least along ``u``. A zero vector gives the identity.
    """
    u = np.asarray(u, dtype=np.float64)
    v = np.asarray(v, dtype=np.float64)
    lengths = np.sqrt(np.einsum("...i,...i->...", u, u) * np.einsum("...i,...i->...", v, v))
    (ux, uy, uz), (vx, vy, vz) = ((a[..., 0], a[..., 1], a[..., 2]) for a in (u, v))
    w = lengths + np.einsum("...i,...i->...", u, v)
    q = pack(w, uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx)
    norm = np.sqrt(np.einsum("...i,...i->...", q, q))
    opposite, nothing = norm < 1e-9 * lengths, lengths < 1e-300
    if np.any(opposite):
        q = np.where(opposite[..., None], _half_turn(np.broadcast_to(u, (*np.shape(w), 3)), fallback_axis), q)
    if np.any(nothing):
        q = np.where(nothing[..., None], IDENTITY, q)
    return np.asfortranarray(normalize(q))


def _half_turn(u: Array, axis: ArrayLike) -> Array:
    """Half turns that turn ``u (..., 3)`` round, about ``axis`` made perpendicular to it where that is possible; not unit length."""
    uu = np.maximum(np.einsum("...i,...i->...", u, u), 1e-300)[..., None]
    least = np.eye(3)[np.argmin(np.abs(u), axis=-1)]
    wanted = np.broadcast_to(np.asarray(axis, dtype=np.float64), u.shape)
    across = wanted - u * (np.einsum("...i,...i->...", wanted, u)[..., None] / uu)
    instead = least - u * (np.einsum("...i,...i->...", least, u)[..., None] / uu)
    along = np.einsum("...i,...i->...", across, across) <= 1e-12 * np.einsum("...i,...i->...", wanted, wanted)
    out = np.zeros((*u.shape[:-1], 4))
    out[..., 1:] = np.where(along[..., None], instead, across)
    return out


def swing_twist(q: Array, axis: ArrayLike) -> tuple[Array, Array]:
    """Split ``q = mul(swing, twist)`` with ``twist`` about unit ``axis`` and ``swing``'s own axis perpendicular to it.

    Source: Dobrowolski, *Swing-twist decomposition in Clifford algebra*, 2015. A half turn perpendicular to the axis has no
    twist: it gives the identity there.
    """
    axis_ = np.asarray(axis, dtype=np.float64)
    along = np.einsum("...i,...i->...", q[..., 1:], np.broadcast_to(axis_, q[..., 1:].shape))
    twist = np.concatenate([q[..., :1], along[..., None] * axis_], axis=-1)
    norm = np.sqrt(np.einsum("...i,...i->...", twist, twist))[..., None]
    twist = np.where(norm < 1e-12, IDENTITY, twist / np.maximum(norm, 1e-300))
    return mul(q, inv(twist)), twist


def to_matrix(q: Array) -> Array:
    """Unit quaternions ``(..., 4)`` -> rotation matrices ``(..., 3, 3)`` acting on column vectors."""
    w, x, y, z = q[..., 0], q[..., 1], q[..., 2], q[..., 3]
    m = np.empty((*q.shape[:-1], 3, 3))
    m[..., 0, 0] = 1.0 - 2.0 * (y * y + z * z)
    m[..., 0, 1] = 2.0 * (x * y - w * z)
    m[..., 0, 2] = 2.0 * (x * z + w * y)
    m[..., 1, 0] = 2.0 * (x * y + w * z)
    m[..., 1, 1] = 1.0 - 2.0 * (x * x + z * z)
    m[..., 1, 2] = 2.0 * (y * z - w * x)
    m[..., 2, 0] = 2.0 * (x * z - w * y)
    m[..., 2, 1] = 2.0 * (y * z + w * x)
    m[..., 2, 2] = 1.0 - 2.0 * (x * x + y * y)
    return m


def from_matrix(m: Array) -> Array:
    """Rotation matrices ``(..., 3, 3)`` -> unit quaternions, accurate for every angle.

    The largest of the four squared components chooses the formula (Shepperd, *Quaternion from rotation matrix*, 1978).
    The matrix must be a proper rotation; scale must have been taken out before.
    """
    m = np.asarray(m, dtype=np.float64)
    d0, d1, d2 = m[..., 0, 0], m[..., 1, 1], m[..., 2, 2]
    w = np.stack(
        [
            1.0 + d0 + d1 + d2,
            m[..., 2, 1] - m[..., 1, 2],
            m[..., 0, 2] - m[..., 2, 0],
            m[..., 1, 0] - m[..., 0, 1],
        ],
        axis=-1,
    )
    x = np.stack([w[..., 1], 1.0 + d0 - d1 - d2, m[..., 1, 0] + m[..., 0, 1], m[..., 0, 2] + m[..., 2, 0]], axis=-1)
    y = np.stack([w[..., 2], x[..., 2], 1.0 - d0 + d1 - d2, m[..., 2, 1] + m[..., 1, 2]], axis=-1)
    z = np.stack([w[..., 3], x[..., 3], y[..., 3], 1.0 - d0 - d1 + d2], axis=-1)
    rows = np.stack([w, x, y, z], axis=-2)
    best = np.argmax(np.stack([w[..., 0], x[..., 1], y[..., 2], z[..., 3]], axis=-1), axis=-1)
    picked = np.take_along_axis(rows, best[..., None, None], axis=-2)[..., 0, :]
    return np.asfortranarray(normalize(picked))


def from_euler(angles: Array, order: str) -> Array:
    """Intrinsic Euler angles -> quaternion.

    Parameters
    ----------
    angles : (..., n) array
        Radians, in the order of ``order``.
    order : str
        1 to 3 of the letters X, Y, Z, e.g. ``"ZYX"`` for ``Rz @ Ry @ Rx`` (a BVH joint whose channels are
        Zrotation Yrotation Xrotation). Blender's rotation mode ``'XYZ'`` is ``Rz @ Ry @ Rx``: reverse its name.
    """
    half = 0.5 * angles
    c, s = np.cos(half), np.sin(half)
    q: Array | None = None
    for i, letter in enumerate(order):
        turn = np.zeros((*angles.shape[:-1], 4), order="F")
        turn[..., 0] = c[..., i]
        turn[..., 1 + _AXES[letter]] = s[..., i]
        q = turn if q is None else mul(q, turn)
    return identity(angles.shape[:-1]) if q is None else q


def to_euler(q: Array, order: str) -> Array:
    """Quaternion -> intrinsic Euler angles ``(..., 3)`` in radians for three *different* axes ``order`` (see :func:`from_euler`).

    The middle angle lies in [-pi/2, pi/2]. At the poles the third angle is set to zero. Source: Bernardes and Viollet,
    *Quaternion to Euler angles conversion*, 2022 (its two half-sum angles stay accurate close to the poles).
    """
    i, j, k = (_AXES[letter] for letter in reversed(order))  # the paper writes extrinsic angles, applied in this order
    sign = 1.0 if (i, j, k) in ((0, 1, 2), (1, 2, 0), (2, 0, 1)) else -1.0
    w, qi, qj, qk = q[..., 0], q[..., 1 + i], q[..., 1 + j], q[..., 1 + k] * sign
    a, b, c, d = w - qj, qi + qk, qj + w, qk - qi
    middle = 2.0 * np.arctan2(np.hypot(c, d), np.hypot(a, b))
    half_sum = np.arctan2(b, a)
    half_diff = np.arctan2(d, c)
    first = half_sum - half_diff
    third = half_sum + half_diff
    low, high = middle < 1e-9, middle > np.pi - 1e-9
    first = np.where(low, 2.0 * half_sum, np.where(high, -2.0 * half_diff, first))
    third = np.where(low | high, 0.0, third)
    out = np.empty((*q.shape[:-1], 3), order="F")
    out[..., 2] = _wrap(first)  # extrinsic first = intrinsic last
    out[..., 1] = middle - 0.5 * np.pi
    out[..., 0] = _wrap(third * sign)
    return out


def _wrap(a: Array) -> Array:
    return (a + np.pi) % (2.0 * np.pi) - np.pi


def continuous(q: Array) -> Array:
    """Choose signs so that neighbours along the first axis have a dot product >= 0; ``(F, ..., 4)``. The last step before keys."""
    if len(q) < 2:
        return q.copy(order="K")
    dots = np.einsum("f...i,f...i->f...", q[1:], q[:-1])
    if np.all(dots >= 0.0):
        return q.copy(order="K")
    sign = np.ones(q.shape[:-1])
    sign[1:] = np.cumprod(np.where(dots < 0.0, -1.0, 1.0), axis=0)
    return q * sign[..., None]


def continuous_euler(angles: Array) -> Array:
    """Choose, frame by frame along the first axis, the equivalent Euler angles nearest to the frame before; ``(F, ..., 3)`` radians.

    ``(a, b, c)`` and ``(a + pi, pi - b, c + pi)`` are the same rotation for three different axes. Both lie at the same distance from
    the same two choices of the frame before, so "flip or not" is a running parity and needs no loop; whole turns are unwrapped after.
    """
    if len(angles) < 2:
        return angles.copy(order="K")
    other = angles * np.array([1.0, -1.0, 1.0]) + np.pi
    same = np.abs(_wrap(np.diff(angles, axis=0))).sum(axis=-1)
    swapped = np.abs(_wrap(other[1:] - angles[:-1])).sum(axis=-1)
    flip = np.zeros(angles.shape[:-1], dtype=bool)
    flip[1:] = np.cumsum(swapped < same, axis=0) % 2 == 1
    return np.unwrap(np.where(flip[..., None], other, angles), axis=0)


def left_matrix(q: Array) -> Array:
    """``(..., 4, 4)`` matrices with ``left_matrix(a) @ b == mul(a, b)``."""
    return _product_matrix(q, 1.0)


def right_matrix(q: Array) -> Array:
    """``(..., 4, 4)`` matrices with ``right_matrix(b) @ a == mul(a, b)``."""
    return _product_matrix(q, -1.0)


def _product_matrix(q: Array, side: float) -> Array:
    """Matrix of a product with ``q``; the cross product's part changes sign with the side that ``q`` stands on."""
    w, x, y, z = q[..., 0], q[..., 1], q[..., 2], q[..., 3]
    m = np.empty((*q.shape[:-1], 4, 4))
    m[..., 0, 0] = m[..., 1, 1] = m[..., 2, 2] = m[..., 3, 3] = w
    m[..., 1, 0], m[..., 0, 1] = x, -x
    m[..., 2, 0], m[..., 0, 2] = y, -y
    m[..., 3, 0], m[..., 0, 3] = z, -z
    m[..., 3, 2], m[..., 2, 3] = side * x, -side * x
    m[..., 1, 3], m[..., 3, 1] = side * y, -side * y
    m[..., 2, 1], m[..., 1, 2] = side * z, -side * z
    return m


def cross(u: Array, v: Array) -> Array:
    """Cross product of vectors ``(..., 3)``, broadcast; several times faster than ``np.cross``."""
    out = np.empty(np.broadcast_shapes(u.shape, v.shape))
    out[..., 0] = u[..., 1] * v[..., 2] - u[..., 2] * v[..., 1]
    out[..., 1] = u[..., 2] * v[..., 0] - u[..., 0] * v[..., 2]
    out[..., 2] = u[..., 0] * v[..., 1] - u[..., 1] * v[..., 0]
    return out
