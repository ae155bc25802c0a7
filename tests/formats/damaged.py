# SPDX-License-Identifier: GPL-3.0-or-later
"""Damaged BVH files by name, made from a good one. The large ones are functions so that they are only made when asked for."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

from tests.formats.bvh_text import ARM, ARM_FILE, ROWS, motion
from tests.paths import DATA

GOOD = DATA / "takes" / "cmu_walk_60rows.bvh"


def _flipped(data: bytes, seed: int, count: int) -> bytes:
    rng = random.Random(seed)
    out = bytearray(data)
    for _ in range(count):
        out[rng.randrange(len(out))] ^= 1 << rng.randrange(8)
    return bytes(out)


def _deep(depth: int, closed: bool = True) -> str:
    body = "".join(f"{'JOINT' if i else 'ROOT'} j{i}\n{{\nOFFSET 0 1 0\nCHANNELS 1 Xrotation\n" for i in range(depth))
    return "HIERARCHY\n" + body + ("}\n" * depth if closed else "") + "MOTION\nFrames: 1\nFrame Time: 0.1\n" + "1 " * depth


def _wide(children: int, name: str = "same") -> str:
    joints = f"JOINT {name}\n{{\nOFFSET 0 1 0\nCHANNELS 3 Xrotation Yrotation Zrotation\n}}\n" * children
    return f"HIERARCHY\nROOT r\n{{\nOFFSET 0 0 0\nCHANNELS 0\n{joints}}}\n" + motion([" ".join(["1"] * 3 * children)])


def _starved(joints: int, rows: int) -> str:
    still = "JOINT s\n{\nOFFSET 0 1 0\n}\n" * joints
    return f"HIERARCHY\nROOT r\n{{\nOFFSET 0 0 0\nCHANNELS 1 Xrotation\n{still}}}\n" + motion(["1"] * rows)


def damaged() -> dict[str, bytes | Callable[[], bytes]]:
    """Name -> content."""
    good = GOOD.read_bytes()
    text = good.decode()
    size = len(good)
    head = text.index("MOTION")
    out: dict[str, bytes | Callable[[], bytes]] = {}
    for share in (0.001, 0.01, 0.03, 0.05, 0.08, 0.09, 0.1, 0.12, 0.25, 0.5, 0.75, 0.99):
        out[f"cut off at {share:.1%}"] = good[: int(size * share)]
    for what, at in {"in MOTION": head + 3, "after MOTION": head + 6, "in Frames": head + 11, "after Frames": head + 17}.items():
        out[f"cut off {what}"] = good[:at]
    out["cut off in Frame Time"] = good[: text.index("Frame Time:") + 14]
    out["cut off after Frame Time"] = good[: text.index("Frame Time:") + 24]
    out["cut off before the last newline"] = good[:-1]
    for seed in range(12):
        out[f"{1 + seed * seed} bits flipped, {seed}"] = _flipped(good, seed, 1 + seed * seed)
    out["many bits flipped"] = _flipped(good, 99, 3000)
    out["bits flipped in the hierarchy"] = _flipped(good[:head], 7, 5) + good[head:]
    out["bits flipped in the numbers"] = good[: head + 60] + _flipped(good[head + 60 :], 8, 50)
    out["empty"] = b""
    out["one byte"] = b"H"
    out["white space"] = b" \n\r\n\t " * 100
    out["zeros"] = bytes(4096)
    out["noise"] = random.Random(1).randbytes(100_000)
    out["noise after HIERARCHY"] = b"HIERARCHY\n" + random.Random(2).randbytes(100_000)
    out["noise as rows"] = good[: head + 50] + b"\n" + random.Random(3).randbytes(200_000)
    out["zeros in the middle"] = good[: size // 2] + bytes(5000) + good[size // 2 + 5000 :]
    out["a block missing"] = good[: size // 2] + good[size // 2 + 5003 :]
    out["a block twice"] = good[: size // 2] + good[size // 3 :]
    out["two files in one"] = good + good
    out["only the numbers"] = good[head + 50 :]
    out["only MOTION"] = good[head:]
    out["a billion frames declared"] = ARM.encode() + motion(ROWS, frames=10**9).encode()
    out["frames beyond any integer"] = ARM.encode() + f"MOTION\nFrames: {'9' * 500}\nFrame Time: 0.1\n1 2 3".encode()
    out["negative frames"] = ARM.encode() + motion(ROWS, frames=-5).encode()
    out["frames in words"] = ARM_FILE.replace("Frames: 3", "Frames: three").encode()
    out["frames left empty"] = ARM_FILE.replace("Frames: 3", "Frames:").encode()
    out["frame time left empty"] = ARM_FILE.replace("Time: 0.05", "Time:").encode()
    out["huge channel count"] = ARM_FILE.replace("CHANNELS 3", "CHANNELS 2000000000").encode()
    out["channel count beyond any integer"] = ARM_FILE.replace("CHANNELS 3", "CHANNELS " + "9" * 5000).encode()
    out["channel count negative"] = ARM_FILE.replace("CHANNELS 3", "CHANNELS -3").encode()
    out["channel count missing"] = ARM_FILE.replace("CHANNELS 3", "CHANNELS").encode()
    out["channel names missing"] = ARM_FILE.replace("Zrotation Yrotation Xrotation\n    End", "\n    End").encode()
    out["channels unknown"] = ARM_FILE.replace("Zrotation", "Wrotation").encode()
    out["channels of a megabyte"] = lambda: ARM_FILE.replace("CHANNELS 3 ", "CHANNELS 3 " + "Xposition " * 100_000).encode()
    out["too many rotations"] = ARM_FILE.replace("3 Zrotation", "4 Zrotation Zrotation").encode()
    out["offset of words"] = ARM_FILE.replace("OFFSET 0 50 0", "OFFSET zero fifty zero").encode()
    out["offset too short"] = ARM_FILE.replace("OFFSET 0 50 0", "OFFSET 0 50").encode()
    out["offset too long"] = ARM_FILE.replace("OFFSET 0 50 0", "OFFSET 0 50 0 0").encode()
    out["offset nan"] = ARM_FILE.replace("OFFSET 0 50 0", "OFFSET 0 nan 0").encode()
    out["offset infinite"] = ARM_FILE.replace("OFFSET 0 50 0", "OFFSET 0 1e999 0").encode()
    out["offset huge"] = ARM_FILE.replace("OFFSET 0 50 0", "OFFSET 0 1e29 0").encode()
    out["offset missing"] = ARM_FILE.replace("    OFFSET 0 50 0\n", "").encode()
    out["brace missing at the end"] = ARM_FILE.replace("}\nMOTION", "MOTION").encode()
    out["brace too many"] = ARM_FILE.replace("}\nMOTION", "}\n}\nMOTION").encode()
    out["opening brace missing"] = ARM_FILE.replace("JOINT Arm\n  {", "JOINT Arm\n").encode()
    out["opening brace twice"] = ARM_FILE.replace("JOINT Arm\n  {", "JOINT Arm\n  {{\n").encode()
    out["joint without name"] = ARM_FILE.replace("JOINT Arm", "JOINT").encode()
    out["joint before root"] = ARM_FILE.replace("ROOT", "JOINT").encode()
    out["root inside a joint"] = ARM_FILE.replace("JOINT", "ROOT").encode()
    out["End without Site"] = ARM_FILE.replace("End Site", "End").encode()
    out["End Site with a joint inside"] = ARM_FILE.replace("OFFSET 0 25 0", "OFFSET 0 25 0\nJOINT x {\n}").encode()
    out["no root"] = b"HIERARCHY\nMOTION\nFrames: 0\nFrame Time: 0.1\n"
    out["no HIERARCHY"] = ARM_FILE.replace("HIERARCHY\n", "HIERARKY\n").encode()
    out["no channels at all"] = ("HIERARCHY\nROOT a\n{\nOFFSET 0 0 0\n}\n" + motion(["1 2 3"] * 5)).encode()
    out["rows too short"] = (ARM + motion(["1 2 3 4"] * 50)).encode()
    out["rows too long"] = (ARM + motion([ROWS[0] + " 1"] * 50)).encode()
    out["rows of every length"] = (ARM + motion([" ".join("1" * 1 for _ in range(k % 17)) for k in range(500)])).encode()
    out["rows of words"] = (ARM + motion(["to be or not to be that is it"] * 50)).encode()
    out["values beyond all bounds"] = (ARM + motion(["1e308 -1e308 1e307 1e300 1e200 1e100 9e99 1 1"] * 50)).encode()
    out["half of the rows bad"] = (ARM + motion([ROWS[0], "1 2 3"] * 500)).encode()
    out["a number of a megabyte"] = lambda: (ARM + motion(["1" * 1_000_000 + " 2 3 4 5 6 7 8 9"])).encode()
    out["a name of a megabyte"] = lambda: ARM_FILE.replace("Arm", "A" * 1_000_000).encode()
    out["a row of 20 megabytes"] = lambda: (ARM + motion(["1.5 " * 5_000_000])).encode()
    out["a row of 7 megabytes"] = lambda: (ARM + motion(["1 " * 3_500_000])).encode()
    out["a million blank lines"] = lambda: (ARM + motion(["\n" * 1_000_000])).encode()
    out["HIERARCHY again and again"] = b"HIERARCHY\n" * 50_000
    out["braces"] = b"HIERARCHY\nROOT a\n" + b"{" * 200_000
    out["10,000 joints deep"] = lambda: _deep(10_000).encode()
    out["10,000 joints deep, never closed"] = lambda: _deep(10_000, closed=False).encode()
    out["10,000 joints of one name"] = lambda: _wide(10_000).encode()
    out["200,000 joints"] = lambda: _wide(200_000).encode()
    out["10,000 joints without channels, 200,000 rows"] = lambda: _starved(10_000, 200_000).encode()
    out["UTF-16 cut in a character"] = ARM_FILE.encode("utf-16")[:-1]
    out["UTF-16 of noise"] = b"\xff\xfe" + random.Random(5).randbytes(5001)
    out["control characters between numbers"] = ARM_FILE.replace(" ", "\x01").encode()
    out["a zero after every byte"] = b"".join(bytes([b, 0]) for b in ARM_FILE.encode())
    return out


def write(folder: Path, name: str) -> Path:
    """The damaged file of this name."""
    content = damaged()[name]
    path = folder / "damaged.bvh"
    path.write_bytes(content if isinstance(content, bytes) else content())
    return path
