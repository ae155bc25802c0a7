# SPDX-License-Identifier: GPL-3.0-or-later
"""What foot planting takes beside the motion, and what it gives back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ..motion.take import Take

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]

LEFT, RIGHT = 0, 1
HEEL, BALL, TOE = 0, 1, 2


@dataclass(frozen=True)
class Force:
    """What a person says of one foot for a while.

    Parameters
    ----------
    side : "left" or "right"
    start, end : float
        Seconds of the take.
    state : "on" or "off"
        The foot is planted, or it is free.
    """

    side: Literal["left", "right"]
    start: float
    end: float
    state: Literal["on", "off"]


@dataclass(frozen=True, eq=False)
class Gates:
    """How much, and when.

    Parameters
    ----------
    foot_ik : (F, 2) array or None
        0..1, left and right: how much of the work shows (Enable_FootIK of ALS). None: all.
    foot_lock : (F, 2) array or None
        0..1: where a foot is planted (FootLock of ALS; planted from 0.5 on). NaN: as detected. None: as detected everywhere.
    forces : tuple of Force
        They win over ``foot_lock`` and detection.
    contacts : (F, 2, 3) bool array or None
        What the source says itself of heel, ball and toe (MVNX has it); None: detected.
    start, end : float or None
        Seconds: only this range is worked on, with eased borders; None: to the take's own.
    """

    foot_ik: Array | None = None
    foot_lock: Array | None = None
    forces: tuple[Force, ...] = ()
    contacts: Flags | None = None
    start: float | None = None
    end: float | None = None


@dataclass(frozen=True)
class Footprint:
    """One place where a foot stands.

    Parameters
    ----------
    side : "left" or "right"
    start, end : int
        First frame and the one after the last.
    position : triple of float
        Under the ball, world, metres, at ``start``.
    rotation : quadruple of float
        wxyz of the foot joint with its sole flat there, world, at ``start``.
    normal : triple of float
    object : int
        Of the ground's names; -1: none.
    drift : float
        Metres that the supporting point moves at most over the solid part of the contact, in the space of what it stands on.
    reached : bool
        Whether the leg is long enough for it all the time.
    """

    side: Literal["left", "right"]
    start: int
    end: int
    position: tuple[float, float, float]
    rotation: tuple[float, float, float, float]
    normal: tuple[float, float, float]
    object: int
    drift: float = 0.0
    reached: bool = True


@dataclass(frozen=True, eq=False)
class FeetResult:
    """The motion with its feet on the ground; only what changed.

    Parameters
    ----------
    joints : tuple of int
        K joints with new rotations: thigh, shin, foot, toe, left and right.
    local_rotations : (F, K, 4) array
        wxyz in their parents' frames; neighbours in time have a dot product >= 0.
    moving : tuple of int
        M joints with new translations: the hips first; shins and feet too where legs stretch.
    local_translations : (F, M, 3) array
        Metres in their parents' frames.
    hips_offset : (F, 3) array
        Metres in the world: how far the hips were moved.
    contacts : (F, 2, 3) bool array
        Left and right; heel, ball, toe.
    locks : (F, 2) array
        0..1: what to write as ``foot_lock_l`` and ``foot_lock_r``.
    foot_ik : (F, 2) array
        0..1: what to write as ``foot_ik_l`` and ``foot_ik_r``.
    weights : (F, 2) array
        How far each foot is held at its place: 1 in contact, eased around.
    soles : (F, 2, 3, 3) array
        Heel, ball and toe tip of both feet after the bake, world, metres.
    traces : (F, 2, 3, 3) array
        The ground under each of them; NaN where there is none.
    normals : (F, 2, 3, 3) array
    footprints : tuple of Footprint
    report : mapping
        For JSON: metrics before and after, contacts, notes.
    notes : tuple of str
    """

    joints: tuple[int, ...]
    local_rotations: Array
    moving: tuple[int, ...]
    local_translations: Array
    hips_offset: Array
    contacts: Flags
    locks: Array
    foot_ik: Array
    weights: Array
    soles: Array
    traces: Array
    normals: Array
    footprints: tuple[Footprint, ...]
    report: Mapping[str, object] = field(default_factory=dict[str, object])
    notes: tuple[str, ...] = ()

    def onto(self, take: Take) -> Take:
        """The take with the new rotations and translations."""
        rotations = take.local_rotations.copy(order="K")
        rotations[:, list(self.joints)] = self.local_rotations
        translations = np.empty((take.frames, len(take.skeleton), 3), order="F")
        translations[:] = take.local_translations
        translations[:, list(self.moving)] = self.local_translations
        return replace(take, local_rotations=rotations, local_translations=translations)
