# SPDX-License-Identifier: GPL-3.0-or-later
"""Takes to BVH files.

A BVH rest pose has no rotations: every joint's frame is parallel to the world at rest. So each joint gets a new frame. With ``G`` a joint's
global rotation and ``R0`` its global rest rotation, ``G' = G R0^-1`` is the identity at rest and moves the body alike; its rotation below
its parent is ``G'_p^-1 G'``, its translation ``G'_p^-1 (P - P_p)``, and its OFFSET the rest pose's ``P0 - P0_p``. Then the whole is seen
from the file's axes: with ``W`` the turn from the file's up axis to +Z, rotations become ``W^-1 G' W`` and vectors ``W^-1 v``.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from io import TextIOWrapper
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..motion import quat
from ..motion.errors import FileError, MocapError
from ..motion.take import Take
from . import orientation
from .options import AXES, Axis

Array = NDArray[np.float64]

_BLOCK = 1000  # frames written at a time
_MOVES = 1e-7  # metres: a joint that leaves its offset by more gets position channels
_DECIMALS = 7
_ORDERS = ("XYZ", "XZY", "YXZ", "YZX", "ZXY", "ZYX")


@dataclass(frozen=True)
class BvhOptions:
    """How a BVH file is written.

    Parameters
    ----------
    up : "Y", "Z", ...
        The file's axis that points up.
    unit : float
        Metres in one file unit.
    order : str
        Order of the rotation channels; ``"ZYX"`` is ``Rz Ry Rx``.
    """

    up: Axis = "Y"
    unit: float = 0.01
    order: str = "ZYX"

    def __post_init__(self) -> None:
        if self.up not in AXES:
            raise MocapError(f'"{self.up}" is not an axis; write one of {", ".join(AXES)}.')
        if not self.unit > 0.0:
            raise MocapError(f"The unit {self.unit} is not a length; give the metres in one file unit, for example 0.01 for centimetres.")
        if self.order not in _ORDERS:
            raise MocapError(f'"{self.order}" is not a rotation order; write one of {", ".join(_ORDERS)}.')


def write(take: Take, path: str | Path, options: BvhOptions | None = None) -> None:
    """Write a take as a BVH file: Y up and centimetres unless told otherwise. Any rest pose will do.

    The file appears complete or not at all. A take without a uniform rate is resampled to the rate of its closest samples.

    Raises
    ------
    FileError
        Where the file cannot be written.
    """
    path = Path(path)
    options = options or BvhOptions()
    take, rate = _uniform(take)
    joints = _Joints(take, options)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with temporary.open("w", encoding="utf-8", newline="\n") as file:
            file.write(joints.hierarchy())
            _write_motion(file, take, rate, joints)
        os.replace(temporary, path)
    except OSError as error:
        raise FileError(f"The file cannot be written ({error.strerror or error}).", path) from None
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()


class _Joints:
    """What the file says about the joints: order of writing, offsets, channels."""

    def __init__(self, take: Take, options: BvhOptions) -> None:
        skeleton = take.skeleton
        self.options = options
        self.take = take
        self.parents = skeleton.parents
        self.turn = quat.inv(orientation.turn_to_z(options.up))  # from the project's axes to the file's
        self.rest = skeleton.rest_global_rotations
        places = skeleton.rest_global_positions
        above = np.where(self.parents >= 0, self.parents, 0)
        offsets = np.where((self.parents >= 0)[:, None], places - places[above], places)
        self.offsets = self._to_file(offsets)
        self.ends = self._to_file(quat.rotate(self.rest, skeleton.ends))
        self.order = [j for root in skeleton.roots for j in _depth_first(skeleton.children, root)]
        self.moves = np.zeros(len(skeleton), dtype=bool)
        for _, translations in self.blocks():
            self.moves |= (np.abs(translations - self.offsets) > _MOVES / options.unit).any(axis=(0, 2))
        self.moves[list(skeleton.roots)] = True

    def _to_file(self, vectors: Array) -> Array:
        return quat.rotate(self.turn, vectors) / self.options.unit

    def blocks(self) -> Iterator[tuple[Array, Array]]:
        """Local rotations ``(n, J, 4)`` and translations ``(n, J, 3)`` in the file's axes and units, block by block."""
        has_parent = self.parents >= 0
        above = np.where(has_parent, self.parents, 0)
        rest_inverse = quat.inv(self.rest)
        for start in range(0, self.take.frames, _BLOCK):
            block = self.take.block(start, start + _BLOCK)
            own = quat.mul(block.global_rotations, rest_inverse)
            undo = np.where(has_parent[:, None], quat.inv(own[:, above]), quat.IDENTITY)
            local = quat.mul(undo, own)
            # P - P_p is the local translation turned by the parent's old frame
            turn_old = np.where(has_parent[:, None], block.global_rotations[:, above], quat.IDENTITY)
            translations = quat.rotate(quat.mul(undo, turn_old), block.local_translations)
            rotations = np.empty_like(local)
            rotations[..., 0] = local[..., 0]
            rotations[..., 1:] = quat.rotate(self.turn, local[..., 1:])
            yield rotations, self._to_file(translations)

    def hierarchy(self) -> str:
        """The text up to MOTION."""
        skeleton = self.take.skeleton
        names = _names(skeleton.names)
        rotation_names = " ".join(f"{letter}rotation" for letter in self.options.order)
        lines: list[str] = ["HIERARCHY"]
        depth: dict[int, int] = {}
        for position, j in enumerate(self.order):
            parent = int(self.parents[j])
            level = depth[parent] + 1 if parent >= 0 else 0
            depth[j] = level
            indent = "\t" * level
            channels = f"6 Xposition Yposition Zposition {rotation_names}" if self.moves[j] else f"3 {rotation_names}"
            lines.append(f"{indent}{'JOINT' if parent >= 0 else 'ROOT'} {names[j]}")
            lines.append(f"{indent}{{")
            lines.append(f"{indent}\tOFFSET {_numbers(self.offsets[j])}")
            lines.append(f"{indent}\tCHANNELS {channels}")
            if not skeleton.children[j] or np.isfinite(self.ends[j]).all():
                end = self.ends[j] if np.isfinite(self.ends[j]).all() else np.zeros(3)
                lines += [f"{indent}\tEnd Site", f"{indent}\t{{", f"{indent}\t\tOFFSET {_numbers(end)}", f"{indent}\t}}"]
            following = self.order[position + 1] if position + 1 < len(self.order) else -1
            next_level = depth[int(self.parents[following])] + 1 if following >= 0 and self.parents[following] >= 0 else 0
            lines += ["\t" * k + "}" for k in range(level, next_level - 1, -1)]
        return "\n".join(lines) + "\n"


def _write_motion(file: TextIOWrapper, take: Take, rate: Fraction, joints: _Joints) -> None:
    file.write(f"MOTION\nFrames: {take.frames}\nFrame Time: {float(1 / rate):.10g}\n")
    order = joints.order
    columns = int(3 * len(order) + 3 * joints.moves.sum())
    row = " ".join([f"%.{_DECIMALS}f"] * columns) + "\n"
    before: Array | None = None
    for rotations, translations in joints.blocks():
        angles = quat.to_euler(rotations[:, order], joints.options.order)
        angles = quat.continuous_euler(angles if before is None else np.concatenate([before, angles]))
        angles = angles if before is None else angles[1:]
        before = angles[-1:]
        parts: list[Array] = []
        for k, j in enumerate(order):
            if joints.moves[j]:
                parts.append(translations[:, j])
            parts.append(np.degrees(angles[:, k]))
        values = np.concatenate(parts, axis=1) + 0.0  # no negative zeros
        file.write((row * len(values)) % tuple(values.ravel().tolist()))


def _uniform(take: Take) -> tuple[Take, Fraction]:
    """The take on a uniform time axis, and its rate."""
    if take.rate is not None:
        return take, take.rate
    if take.frames < 2:
        return take, Fraction(30)
    from ..motion import timeline

    steps = np.diff(take.times)
    rate = timeline.rate_from_frame_time(float(np.median(steps)))
    if float(np.abs(steps * float(rate) - 1.0).max()) > 1e-3:
        take = take.resampled(rate)
    return take, rate


def _depth_first(children: tuple[tuple[int, ...], ...], root: int) -> list[int]:
    out: list[int] = []
    stack = [root]
    while stack:
        j = stack.pop()
        out.append(j)
        stack += reversed(children[j])
    return out


def _names(names: tuple[str, ...]) -> list[str]:
    """Names that a BVH reader gives back: on one line, without braces; kept unique by the reader."""
    return [" ".join(name.replace("{", "(").replace("}", ")").split()) or "joint" for name in names]


def _numbers(vector: Array) -> str:
    return " ".join(f"{v:.9g}" for v in (vector + 0.0).tolist())
