# SPDX-License-Identifier: GPL-3.0-or-later
"""MVN messages beside the poses: names (12), null pose (13), joint angles and kinematics (20 to 24), time code (25)."""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from typing import cast

import numpy as np
from numpy.typing import NDArray

from ..formats.mvnx_skeleton import STANDARD
from .axes import MVN
from .base import BrokenPacketError
from .frame import Frame
from .mvn_wire import Header, read_string

Array = NDArray[np.float64]
_TAG = re.compile(r"(name|xmid|color|timeOffset)\s*:[ \t]*([^\n\r\0]*)")
_TIME = re.compile(rb"\d{1,2}:\d{2}:\d{2}(?:[.:;,]\d{1,3})?")


def meta(text: bytes) -> dict[str, str]:
    """Tags of a character's description. A length may stand before the first; unknown tags are passed over."""
    return {m.group(1): m.group(2).strip() for m in _TAG.finditer(text.decode("utf-8", "replace"))}


def null_pose(data: bytes) -> tuple[list[str], Array]:
    """Names and T-pose origins ``(S, 3)`` of the segments as sent; none from a datagram that goes on with points."""
    if len(data) < 4:
        raise BrokenPacketError("the null pose is cut off")
    (count,) = struct.unpack_from(">I", data)
    if count > 256:
        raise BrokenPacketError("more segments than any body has")
    at, names, origins = 4, list[str](), list[tuple[float, ...]]()
    for _ in range(count):
        name, at = read_string(data, at)
        if at + 12 > len(data):
            raise BrokenPacketError("the null pose is cut off")
        names.append(name)
        origins.append(struct.unpack_from(">3f", data, at))
        at += 12
    places = np.array(origins, dtype=np.float64).reshape(-1, 3)
    if len(places) and not np.abs(places).max() < 1e4:
        raise BrokenPacketError("an origin is out of any room")
    return names, places


def time_code(data: bytes) -> str:
    """``HH:MM:SS.mmm`` (or without milliseconds), with or without a length before it."""
    found = _TIME.search(data[:64])
    if found is None:
        raise BrokenPacketError("no time code")
    return found.group().decode("ascii").replace(",", ".")


def values(data: bytes, head: Header) -> Frame:
    """Types 20 to 24 as an ``info`` frame: places and rotations where they are sent, the rest as curves."""
    source = str(head.character)
    items = max(1, head.items)
    if head.kind == b"24":
        width = len(data) // 4
        if width < 3:
            raise BrokenPacketError("the centre of mass is cut off")
        place = _checked(np.frombuffer(data, ">f4", 3).astype(np.float64))
        return _info(head, source, ("CenterOfMass",), MVN.points(place[None]), None, {})
    width = len(data) // items // 4 if head.kind == b"23" else {b"20": 5, b"21": 10, b"22": 11}[head.kind]
    if width < 2 or width * 4 * items > len(data) or (head.kind == b"23" and width not in (11, 17)):
        raise BrokenPacketError("fewer items than the header says")
    table = np.frombuffer(data, ">f4", items * width).reshape(items, width)
    ids = np.frombuffer(data, ">u4", items * width).reshape(items, width)
    if head.kind == b"20":
        angles = _checked(table[:, 2:].astype(np.float64))
        named = {
            f"angle {a}-{b} {axis}": angle
            for (a, b), row in zip(ids[:, :2].tolist(), angles.tolist(), strict=True)
            for axis, angle in zip("xyz", row, strict=True)
        }
        return _info(head, source, (), None, None, named)
    joints = tuple(STANDARD[i - 1] if 0 < i <= len(STANDARD) else f"Segment{i}" for i in cast(list[int], ids[:, 0].tolist()))
    rest = _checked(table[:, 1:].astype(np.float64))
    if head.kind == b"21":
        return _info(head, source, joints, MVN.points(rest[:, :3]), None, {})
    return _info(head, source, joints, None, MVN.from_wxyz(rest[:, :4]), {})


def _info(
    head: Header, source: str, joints: tuple[str, ...], places: Array | None, turns: Array | None, curves: Mapping[str, float]
) -> Frame:
    return Frame(source, "info", head.sample, head.time_code / 1000.0, joints, places, turns, "global", curves, name=source)


def _checked(a: Array) -> Array:
    if not np.isfinite(a).all():
        raise BrokenPacketError("a number is not finite")
    return a
