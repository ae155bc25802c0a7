# SPDX-License-Identifier: GPL-3.0-or-later
"""Packets written out by hand, and motion to send: independent of what the package writes."""

from __future__ import annotations

import struct
from fractions import Fraction

import numpy as np

from mocap_addon.motion import quat
from mocap_addon.motion.skeleton import Skeleton
from mocap_addon.motion.take import PropTrack, Take

A, B = bytes([192, 168, 1, 20]), bytes([192, 168, 1, 30])
A6, B6 = bytes.fromhex("20010db8000000000000000000000001"), bytes.fromhex("20010db8000000000000000000000002")


def ipv4(protocol: int, body: bytes, source: bytes = A, target: bytes = B, number: int = 1, part: int = 0) -> bytes:
    return struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(body), number, part, 64, protocol, 0, source, target) + body


def ipv6(protocol: int, body: bytes, source: bytes = A6, target: bytes = B6) -> bytes:
    return struct.pack(">IHBB16s16s", 0x60000000, len(body), protocol, 64, source, target) + body


def udp(data: bytes, source: int = 5000, target: int = 9763) -> bytes:
    return struct.pack(">HHHH", source, target, 8 + len(data), 0) + data


def tcp(number: int, data: bytes = b"", flags: int = 0x18, source: int = 5000, target: int = 7001) -> bytes:
    return struct.pack(">HHIIBBHHH", source, target, number & 0xFFFFFFFF, 0, 0x50, flags, 8192, 0, 0) + data


def pcap(packets: list[tuple[float, bytes]], link: int = 101, order: str = "<", nano: bool = True) -> bytes:
    out = struct.pack(order + "IHHiIII", 0xA1B23C4D if nano else 0xA1B2C3D4, 2, 4, 0, 0, 65535, link)
    for time, data in packets:
        seconds = int(time)
        out += struct.pack(order + "IIII", seconds, round((time - seconds) * (1e9 if nano else 1e6)), len(data), len(data)) + data
    return out


def pcapng(packets: list[tuple[float, bytes]], link: int = 1, order: str = "<", resolution: int | None = None) -> bytes:
    def block(kind: int, body: bytes) -> bytes:
        body += b"\0" * (-len(body) % 4)
        size = 12 + len(body)
        return struct.pack(order + "II", kind, size) + body + struct.pack(order + "I", size)

    out = block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1))
    options = b"" if resolution is None else struct.pack(order + "HHB3xHH", 9, 1, resolution, 0, 0)
    out += block(1, struct.pack(order + "HHI", link, 0, 0) + options)
    ticks = 10 ** (6 if resolution is None else resolution)
    for time, data in packets:
        count = round(time * ticks)
        out += block(6, struct.pack(order + "IIIII", 0, count >> 32, count & 0xFFFFFFFF, len(data), len(data)) + data)
    return out


def dance(skeleton: Skeleton, rate: Fraction | float, frames: int, seed: int = 0, name: str = "Ann", prop: bool = False) -> Take:
    """Every joint turning about an axis of its own, the hips walking."""
    rng = np.random.default_rng(seed)
    t, n = np.arange(frames) / float(rate), len(skeleton)
    turns = [np.sin(2 * np.pi * (t[:, None] * rng.uniform(0.3, 1.0, n)) + rng.uniform(0, 6, n)) * rng.uniform(0.1, 0.6, n) for _ in "xyz"]
    rotations = quat.continuous(quat.exp(np.stack(turns, -1)))
    translations = np.broadcast_to(skeleton.rest_translations, (frames, n, 3)).copy()
    translations[:, 0, 0] += 0.3 * np.sin(t)
    translations[:, 0, 1] += 0.5 * t
    props = {}
    if prop:
        places = np.stack([np.sin(t), np.cos(t), 1.0 + 0.1 * t], -1)
        props["Sword"] = PropTrack(quat.exp(np.stack([t, 0.5 * t, 0 * t], -1)), places)
    return Take(name, skeleton, t, rotations, translations, rate=Fraction(rate), performer=name, props=props)
