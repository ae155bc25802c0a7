# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes Unity clips as Unity does, for tests; and the formula of Unity's curves, one value at a time."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

THIRD = 1.0 / 3.0
XYZW = "xyzw"


@dataclass
class Key:
    time: float
    value: tuple[float, ...]
    in_slope: tuple[float, ...]
    out_slope: tuple[float, ...]
    mode: int = 0
    in_weight: tuple[float, ...] = ()
    out_weight: tuple[float, ...] = ()
    version: int = 3


@dataclass
class Clip:
    name: str = "clip"
    rate: float = 30
    stop: float | None = None
    start: float = 0.0
    lists: dict[str, list[str]] = field(default_factory=dict)
    extra: str = ""


def number(x: float) -> str:
    if math.isinf(x):
        return "Infinity" if x > 0 else "-Infinity"
    return f"{x:.17g}"


def group(values: tuple[float, ...]) -> str:
    if len(values) == 1:
        return number(values[0])
    return "{" + ", ".join(f"{c}: {number(v)}" for c, v in zip(XYZW, values, strict=False)) + "}"


def key(k: Key) -> str:
    n = len(k.value)
    lines = [
        f"time: {number(k.time)}",
        f"value: {group(k.value)}",
        f"inSlope: {group(k.in_slope)}",
        f"outSlope: {group(k.out_slope)}",
        "tangentMode: 0",
    ]
    if k.version:
        lines.insert(0, f"serializedVersion: {k.version}")
    if k.version == 3:
        weights = (k.in_weight or (THIRD,) * n, k.out_weight or (THIRD,) * n)
        lines += [f"weightedMode: {k.mode}", f"inWeight: {group(weights[0])}", f"outWeight: {group(weights[1])}"]
    return "      - " + "\n        ".join(lines) + "\n"


def curve(keys: list[Key], path: str, *, before: int = 2, after: int = 2, order: int = 4, more: str = "") -> str:
    return (
        "  - curve:\n      serializedVersion: 2\n      m_Curve:\n"
        + "".join(map(key, keys))
        + f"      m_PreInfinity: {before}\n      m_PostInfinity: {after}\n      m_RotationOrder: {order}\n{more}    path: {path}\n"
    )


def float_curve(keys: list[Key], path: str, attribute: str, class_id: int) -> str:
    return curve(keys, path, more=f"    attribute: {attribute}\n") + f"    classID: {class_id}\n    script: {{fileID: 0}}\n"


def text(clip: Clip) -> str:
    out = "%YAML 1.1\n%TAG !u! tag:unity3d.com,2011:\n--- !u!74 &7400000\nAnimationClip:\n  m_ObjectHideFlags: 0\n"
    out += f"  m_Name: {clip.name}\n  serializedVersion: 6\n  m_Legacy: 0\n  m_Compressed: 0\n"
    names = ("Rotation", "CompressedRotation", "Euler", "Position", "Scale", "Float", "PPtr")
    for name in (f"m_{n}Curves" for n in names):
        items = clip.lists.get(name)
        out += f"  {name}:\n{''.join(items)}" if items else f"  {name}: []\n"
    out += f"  m_SampleRate: {clip.rate:g}\n  m_WrapMode: 0\n{clip.extra}"
    if clip.stop is not None:
        out += "  m_AnimationClipSettings:\n    serializedVersion: 2\n"
        out += f"    m_StartTime: {number(clip.start)}\n    m_StopTime: {number(clip.stop)}\n    m_LoopTime: 1\n"
    return out + "  m_Events: []\n"


def formula(keys: list[Key], c: int, t: float) -> float:
    """Component ``c`` of a curve at ``t``: cubic Hermite, weighted Bezier by bisection, steps; clamped."""
    if t <= keys[0].time:
        return keys[0].value[c]
    if t >= keys[-1].time:
        return keys[-1].value[c]
    i = max(n for n, k in enumerate(keys) if k.time <= t)
    a, b = keys[i], keys[i + 1]
    d = b.time - a.time
    m0, m1 = a.out_slope[c], b.in_slope[c]
    if math.isinf(m0) or math.isinf(m1):
        return a.value[c]
    w0 = a.out_weight[c] if a.mode & 2 else THIRD
    w1 = b.in_weight[c] if b.mode & 1 else THIRD
    u = (t - a.time) / d
    if w0 == THIRD and w1 == THIRD:
        h00, h10 = 2 * u**3 - 3 * u**2 + 1, u**3 - 2 * u**2 + u
        h01, h11 = -2 * u**3 + 3 * u**2, u**3 - u**2
        return h00 * a.value[c] + h10 * d * m0 + h01 * b.value[c] + h11 * d * m1
    low, high = 0.0, 1.0
    for _ in range(200):
        s = 0.5 * (low + high)
        x = 3 * (1 - s) ** 2 * s * w0 + 3 * (1 - s) * s**2 * (1 - w1) + s**3
        low, high = (s, high) if x < u else (low, s)
    p1, p2 = a.value[c] + w0 * d * m0, b.value[c] - w1 * d * m1
    return (1 - s) ** 3 * a.value[c] + 3 * (1 - s) ** 2 * s * p1 + 3 * (1 - s) * s**2 * p2 + s**3 * b.value[c]
