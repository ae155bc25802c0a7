# SPDX-License-Identifier: GPL-3.0-or-later
"""Walks over slopes, stairs, ledges, boxes and platforms: a take, a ground that the product asks, and the exact heights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from mocap_addon.feet.ground import Box, Boxes, Ground, Plane, Union
from mocap_addon.motion import quat
from mocap_addon.motion.take import Take

from .measure import Height, flat_floor
from .walker import Gait, Shape, Walk, sliding, straight, walk


@dataclass
class Scene:
    name: str
    walk: Walk
    source: Take
    ground: Ground | None
    height: Height = flat_floor
    carry: Callable | None = None
    source_height: Height = flat_floor


def wandering(t):
    """A drift of up to 12 cm/s that comes from no ground."""
    return np.column_stack([0.03 * np.sin(2.5 * t), 0.05 * np.sin(2.0 * t), 0.0 * t])


BODY = Shape()


def plain(fps=60.0, shape=BODY, rolls=None, count=8, **more) -> Walk:
    steps, last = straight(count, shape=shape)
    return walk(steps, last, fps=fps, shape=shape, rolls=rolls, **more)


def clean() -> Scene:
    w = plain()
    return Scene("clean", w, w.take, None)


def skating(noise=0.0) -> Scene:
    w = plain()
    return Scene("skating" + (", 1 cm noise" if noise else ""), w, sliding(w, wandering, noise).take, None)


def slope(degrees: float, heading: float) -> Scene:
    """Downhill along ``heading`` degrees from where the walker faces; the walker skates a little as well."""
    w = plain(shape=Shape())
    tan, a = np.tan(np.radians(degrees)), np.radians(heading)
    d = np.array([np.sin(a), -np.cos(a)])

    def height(x, y, t):
        return -tan * (x * d[0] + y * d[1])

    return Scene(
        f"slope {degrees:g}, heading {heading:g}", w, sliding(w, wandering).take, Plane(normal=(tan * d[0], tan * d[1], 1.0)), height
    )


def stairs(rise: float, tread: float, up: bool, length: float = 0.56, offset: float = 0.0, period=0.47) -> Scene:
    """A flat walk of 1.2 m/s onto stairs that begin 1.2 m ahead."""
    steps, last = straight(9, length=length, period=period)
    w = walk(steps, last)
    sign = 1.0 if up else -1.0
    first = -(0.98 + offset)
    boxes = [Box((-3.0, first, -9.0), (3.0, 9.0, 0.0), "landing")]
    for k in range(30):
        z = sign * rise * (k + 1)
        boxes.append(Box((-3.0, first - tread * (k + 1), -9.0), (3.0, first - tread * k, z), f"step {k + 1}"))

    def height(x, y, t):
        k = np.clip(np.ceil((first - y) / tread), 0, 30)
        return sign * rise * k + 0.0 * x

    return Scene(
        f"stairs {rise * 100:g}/{tread * 100:g} {'up' if up else 'down'}",
        w,
        sliding(w, lambda t: 0.4 * wandering(t)).take,
        Boxes(boxes),
        height,
    )


def ledge(reverse=False, drop=0.4) -> Scene:
    w = plain()
    ground = Boxes([Box((0.0, -50, -9), (50, 50, 0.0), "ledge"), Box((-50, -50, -9), (0.0, 50, -drop), "below")])
    take = w.take
    if reverse:
        take = replace(take, local_rotations=take.local_rotations[::-1].copy(), local_translations=take.local_translations[::-1].copy())
    return Scene("ledge", w, take, ground, lambda x, y, t: np.where(x > 0, 0.0, -drop))


def over_box() -> Scene:
    """A box of 20 cm that one foot swings over."""
    steps, last = straight(6, length=0.7, period=0.6)
    w = walk(steps, last)
    front, back = -0.265, -0.325
    ground = Union([Plane(), Boxes([Box((0.02, back, 0.0), (0.4, front, 0.20), "box")])])
    return Scene("box", w, w.take, ground, lambda x, y, t: np.where((x > 0.02) & (x < 0.4) & (y > back) & (y < front), 0.2, 0.0))


def platform(turning: bool) -> Scene:
    """Who walks on a platform that moves at 1 m/s, or turns at 45 degrees a second, and is carried by it."""
    w = plain()
    t0 = w.take.times

    def motion(t):
        at = np.zeros((len(t), 3))
        q = quat.identity(len(t))
        if turning:
            q = quat.from_axis_angle(np.array([0.0, 0.0, 1.0]), np.radians(45.0) * t)
        else:
            at[:, 0] = t
        return at, q

    at, q = motion(t0)
    take = sliding(w, wandering).take.rerooted(lambda r: quat.mul(q, r), lambda v: at + quat.rotate(q, v), rest=False)

    def carry(points, t):
        a, r = motion(t)
        shape = (len(t),) + (1,) * (points.ndim - 2)
        return quat.rotate(quat.inv(r).reshape(*shape, 4), points - a.reshape(*shape, 3))

    ground = Boxes([Box((-50.0, -50.0, -1.0), (50.0, 50.0, 0.0), "platform", motion)])
    return Scene("platform turning" if turning else "platform", w, take, ground, carry=carry)


def tunnel() -> Scene:
    w = plain()
    ground = Union([Plane(), Boxes([Box((-9, -9, 0.6), (9, 9, 3.0), "roof")])])
    return Scene("tunnel", w, sliding(w, wandering).take, ground)


def storeys() -> Scene:
    w = plain()
    ground = Union([Plane(), Boxes([Box((-9, -9, 2.4), (9, 9, 2.6), "upper floor"), Box((-9, -9, 0.72), (9, -0.4, 0.75), "table")])])
    return Scene("storeys", w, sliding(w, wandering).take, ground)


def shaped(name: str, shape: Shape, **more) -> Scene:
    w = plain(shape=shape, **more)
    return Scene(name, w, sliding(w, wandering).take, Plane())


def other_legs(factor: float) -> Scene:
    """A walk's rotations on legs of another length, its travel as it was."""
    w = plain()
    shape = Shape(thigh=0.45 * factor, shin=0.45 * factor)
    from mocap_addon.feet.body import find_feet

    from .walker import ROLES, skeleton

    sk = skeleton(shape)
    tr = np.broadcast_to(sk.rest_translations, w.take.local_translations.shape).copy()
    tr[:, 0] = w.take.local_translations[:, 0]
    tr[:, 0, 2] = shape.heel_height + (tr[:, 0, 2] - shape.heel_height) * factor
    take = replace(w.take, skeleton=sk, local_translations=tr)
    feet = find_feet(sk, ROLES, {"left": shape.sole, "right": shape.sole})
    return Scene(f"legs {factor * 100:g} %", Walk(take, feet, w.steps, shape, w.parts), take, Plane())


def jump() -> Scene:
    """From the floor onto a box of 30 cm, half a second in the air."""
    from .walker import Step

    w2 = 0.09
    steps = []
    for side, x in ((0, w2), (1, -w2)):
        steps.append(Step(side, (x, 0.0, 0.0), 0.0, -1.0, -0.9, 0.8, 1.0))
        steps.append(Step(side, (x, -0.8, 0.3), 0.0, 1.5, 1.58, 9.0, 9.1))
    w = walk(tuple(steps), 3.0, gait=Gait(pitch_strike=0.0, clearance=0.15))
    ground = Union([Plane(), Boxes([Box((-2, -3, 0.0), (2, -0.5, 0.3), "box")])])
    return Scene(
        "jump", w, w.take, ground, lambda x, y, t: np.where(y < -0.5, 0.3, 0.0), source_height=lambda x, y, t: np.where(y < -0.5, 0.3, 0.0)
    )


SLOPES = (10, 20, 30, 40)


def others() -> list[Scene]:
    """All but slopes and stairs."""
    return [
        clean(), skating(), skating(0.01), over_box(), jump(), platform(False), platform(True), tunnel(), storeys(),
        shaped("boots", Shape(heel_height=0.135, ball_height=0.05)),
        shaped("high heels", Shape(heel_height=0.11, ball_height=0.03)),
        shaped("random roll", Shape(), rolls=7),
        shaped("straight legs", Shape(), gait=Gait(reach=0.997)),
        *(other_legs(f) for f in (0.85, 0.9, 1.15)),
    ]  # fmt: skip


def everything() -> list[Scene]:
    """Every scene."""
    slopes = [slope(d, h) for d in SLOPES for h in range(0, 360, 45)]
    return [*others(), *(stairs(0.17, 0.28, up) for up in (True, False)), *slopes]
