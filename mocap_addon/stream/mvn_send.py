# SPDX-License-Identifier: GPL-3.0-or-later
"""Frames to MVN's datagrams: what its network streamer would send."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from fractions import Fraction
from typing import cast

import numpy as np
from numpy.typing import NDArray

from ..motion import quat, timecode
from ..motion.errors import MocapError
from . import mvn_wire
from .axes import MVN, MVN_Y_UP, UNITY, Y_UP
from .base import numbers
from .frame import Frame, Sender
from .mvn_layout import FINGER_NAMES, PARENTS, STANDARD, UNITY_ORDER, finger_parent

Array = NDArray[np.float64]


def encode(frames: Sequence[Frame], sender: Sender) -> list[bytes]:
    """Poses of one moment. Options: ``types`` (tuple of "02", "01", "05", "12", "13", "20" to "25"; default "02" with 12 and 13
    once a second, and 25 where there is a time code), ``up`` "z" or "y", ``unit`` "m" or "cm", ``first_id`` 1 or 0, ``mark_last`` (False
    leaves the datagram counter 0), ``declare`` (False leaves counts and sizes 0, as before 2019), ``bare_time_code``, ``euler_order``.

    Props go with the performer whose source is the part before "/" of theirs, else with the first, at most four.
    """
    bodies = [f for f in frames if f.kind == "body" and f.positions is not None and f.rotations is not None]
    props = [f for f in frames if f.kind == "prop" and f.positions is not None and f.rotations is not None]
    out: list[bytes] = []
    for i, (frame, character) in enumerate(zip(bodies, numbers([f.source for f in bodies], 256), strict=True)):
        out += _performer(frame, [p for p in props if _owner(p, bodies) == i][:4], character, sender)
    return out


def _owner(prop: Frame, bodies: Sequence[Frame]) -> int:
    name = prop.source.partition("/")[0]
    return next((i for i, f in enumerate(bodies) if f.source == name), 0)


def _performer(frame: Frame, props: Sequence[Frame], character: int, sender: Sender) -> list[bytes]:
    wanted = sender.options.get("types")
    kinds = [str(k) for k in cast(Sequence[object], wanted)] if isinstance(wanted, tuple | list) else ["02"]
    if wanted is None:
        if frame.time_code:
            kinds.insert(0, "25")
        if sender.number % max(1, round(sender.rate)) == 0:
            kinds = ["12", "13", *kinds]
    fingers = any(n in FINGER_NAMES for n in frame.joints)
    places, turns = complete(frame, fingers)
    counts = (23, len(props), 40 if fingers else 0)
    message = _Message(sender, character, counts)
    for k, prop in enumerate(props):
        assert prop.positions is not None and prop.rotations is not None
        places = np.insert(places, 23 + k, prop.positions[0], axis=0)
        turns = np.insert(turns, 23 + k, prop.rotations[0], axis=0)
    ids = np.arange(len(places)) + int(str(sender.options.get("first_id", 1)))
    scale = 100.0 if sender.options.get("unit") == "cm" else 1.0
    out: list[bytes] = []
    for kind in kinds:
        if kind == "02":
            axes = MVN_Y_UP if sender.options.get("up") == "y" else MVN
            out += message.items(b"02", ids, np.hstack([axes.points_back(places) * scale, axes.to_wxyz(turns)]))
        elif kind == "01":
            order = str(sender.options.get("euler_order", "ZYX"))
            angles = np.degrees(quat.to_euler(Y_UP.to_wxyz(turns), order))[:, [order.index(c) for c in "XYZ"]]
            out += message.items(b"01", ids, np.hstack([Y_UP.points_back(places) * scale, angles]))
        elif kind == "05":
            out += _unity(message, places[:23], turns[:23], places[23 : 23 + len(props)], turns[23 : 23 + len(props)], scale)
        elif kind == "12":
            out.append(message.one(b"12", 1, mvn_wire.string(f"name:{frame.name or frame.source}\nxmid:\ncolor:FF8000\n")))
        elif kind == "13":
            out += _null_pose(message, frame, sender)
        elif kind == "25":
            text = _clock(frame.time_code or "00:00:00.000", sender).encode("ascii", "replace")
            out.append(message.one(b"25", 1, text if sender.options.get("bare_time_code") else struct.pack(">i", len(text)) + text))
        else:
            out += _kinematics(message, kind, places[:23], turns[:23])
    return out


def _clock(code: str, sender: Sender) -> str:
    """``HH:MM:SS.mmm`` of a label ``HH:MM:SS:FF`` counted at option ``timecode_rate`` (else at the sender's rate)."""
    if code.count(":") != 3 and ";" not in code:
        return code
    try:
        rate = Fraction(str(sender.options.get("timecode_rate") or Fraction(sender.rate).limit_denominator(1001)))
        found = timecode.parse(code, rate)
        hour, minute, second, frame = timecode.fields(np.array([found.count]), rate, drop=found.drop)[:, 0].tolist()
    except (MocapError, ValueError, ZeroDivisionError):
        return "00:00:00.000"
    milliseconds = min(999, round(1000.0 * (frame + found.subframe) / timecode.nominal(rate)))
    return f"{hour:02d}:{minute:02d}:{second:02d}.{milliseconds:03d}"


class _Message:
    """Packs messages of one performer and moment."""

    def __init__(self, sender: Sender, character: int, counts: tuple[int, int, int]) -> None:
        self.sender, self.character = sender, character
        self.declared = sender.options.get("declare", True) is not False
        self.counts = counts if self.declared else (0, 0, 0)
        self.last = mvn_wire.LAST if sender.options.get("mark_last", True) is not False else 0

    def one(self, kind: bytes, items: int, body: bytes, part: int = 0) -> bytes:
        s = self.sender
        time = round(s.time * 1000.0)
        packed = mvn_wire.pack(kind, s.number, part | self.last, items, time, self.character, self.counts, body)
        return packed if self.declared else packed[:22] + b"\0\0" + packed[24:]

    def items(self, kind: bytes, ids: NDArray[np.int64], values: Array, pairs: NDArray[np.int64] | None = None) -> list[bytes]:
        """Rows as ``id(s), float32 ...``, split where they pass the sender's MTU."""
        heads = ids[:, None] if pairs is None else pairs
        table = np.empty((len(values), heads.shape[1] + values.shape[1]), dtype=">u4")
        table[:, : heads.shape[1]] = heads
        table[:, heads.shape[1] :] = values.astype(">f4").view(">u4")
        per = max(1, (self.sender.mtu - 24) // (4 * table.shape[1]))
        blocks = [table[i : i + per] for i in range(0, len(table), per)]
        out: list[bytes] = []
        for k, block in enumerate(blocks):
            final = k == len(blocks) - 1
            packed = self.one(kind, len(block), block.tobytes(), k)
            out.append(packed if final else packed[:10] + bytes([k]) + packed[11:])
        return out


def complete(frame: Frame, fingers: bool) -> tuple[Array, Array]:
    """Places and rotations of all segments; those that the frame lacks go with the one above them."""
    names = (*STANDARD, *FINGER_NAMES) if fingers else STANDARD
    assert frame.positions is not None and frame.rotations is not None
    at = {n: i for i, n in enumerate(frame.joints)}
    if all(n in at for n in names):
        order = [at[n] for n in names]
        if np.isfinite(frame.positions[order]).all():
            return frame.positions[order], frame.rotations[order]
    places, turns = np.zeros((len(names), 3)), np.zeros((len(names), 4))
    for j, name in enumerate(names):
        if name in at:
            places[j], turns[j] = frame.positions[at[name]], frame.rotations[at[name]]
            if np.isfinite(places[j]).all():
                continue
        hand = "LeftHand" if name.startswith("Left") else "RightHand"
        up = PARENTS[j] if j < 23 else names.index(finger_parent(name, hand))
        places[j] = places[up] if up >= 0 else 0.0
        if name not in at:
            turns[j] = turns[up] if up >= 0 else quat.IDENTITY
    return places, turns


def _unity(message: _Message, places: Array, turns: Array, prop_places: Array, prop_turns: Array, scale: float) -> list[bytes]:
    above = np.maximum(PARENTS, 0)
    undo = quat.inv(turns[above])
    local_r, local_p = quat.mul(undo, turns), quat.rotate(undo, places - places[above])
    local_r[0], local_p[0] = turns[0], places[0]
    order = list(UNITY_ORDER)
    rows_p, rows_r = np.vstack([local_p[order], prop_places]), np.vstack([local_r[order], prop_turns])
    ids = np.concatenate([np.array(order) + 1, np.arange(len(prop_places)) + 25])
    return message.items(b"05", ids, np.hstack([UNITY.points_back(rows_p) * scale, UNITY.to_wxyz(rows_r)]))


def _null_pose(message: _Message, frame: Frame, sender: Sender) -> list[bytes]:
    """Segments with their T-pose origins; nothing where the performer's skeleton is not known."""
    skeleton = sender.skeletons.get(frame.source)
    if skeleton is None or any(n not in skeleton for n in STANDARD):
        return []
    places = MVN.points_back(skeleton.rest_global_positions[[skeleton.index(n) for n in STANDARD]])
    body = struct.pack(">I", 23)
    for name, p in zip(STANDARD, places.tolist(), strict=True):
        body += mvn_wire.string(name) + struct.pack(">3f", *p)
    return [message.one(b"13", 23, body + struct.pack(">I", 0))]


def _kinematics(message: _Message, kind: str, places: Array, turns: Array) -> list[bytes]:
    """20 to 24; velocities and accelerations, which a pose does not tell, are zero."""
    ids = np.arange(1, 24)
    still = np.zeros((23, 3))
    if kind == "21":
        return message.items(b"21", ids, np.hstack([MVN.points_back(places), still, still]))
    if kind == "22":
        return message.items(b"22", ids, np.hstack([MVN.to_wxyz(turns), still, still]))
    if kind == "23":
        return message.items(b"23", ids, np.hstack([MVN.to_wxyz(turns), still, still, still, still]))
    if kind == "24":
        centre = MVN.points_back(places.mean(axis=0)[None]).astype(">f4")
        return [message.one(b"24", 1, centre.tobytes())]
    if kind == "20":
        joined = np.array(PARENTS[1:])
        local = quat.mul(quat.inv(turns[joined]), turns[1:])
        pairs = np.stack([(joined + 1) * 256 + 1, np.arange(2, 24) * 256 + 0], axis=1)
        return message.items(b"20", ids[1:], np.degrees(quat.to_euler(MVN.to_wxyz(local), "ZXY"))[:, [1, 2, 0]], pairs)
    return []
