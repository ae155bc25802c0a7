# SPDX-License-Identifier: GPL-3.0-or-later
"""Blocks of MVNX frames -> one :class:`~mocap_addon.motion.take.Take`.

Every block is turned into local rotations as it arrives, so that the whole file never stands in memory at once. Bones keep their lengths:
only the root's place moves. The places that the file gives for the other segments are compared with forward kinematics and
the difference is told (MVN lets the shoulders slide by a few millimetres, which no rig follows).
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import PureWindowsPath

import numpy as np
from numpy.typing import NDArray

from ..motion import kinematics, quat, timeline
from ..motion.errors import MocapError
from ..motion.skeleton import Skeleton
from ..motion.take import PropTrack, Take
from . import orientation
from .mvnx_rest import Pose, Rest, Settled, settle
from .mvnx_scan import Block, PlacedError
from .mvnx_times import axis
from .mvnx_xml import Subject

Array = NDArray[np.float64]

_CONTACTS = ("LeftFoot_Heel", "LeftFoot_Toe", "RightFoot_Heel", "RightFoot_Toe")
_POSES = frozenset({"identity", "tpose", "tpose-isb", "npose"})


class TakeBuilder:
    """Takes the blocks of one subject and gives its take at the end."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.frames = 0
        self._poses: dict[str, Pose] = {}
        self._settled: Settled | None = None
        self._rotations: list[Array] = []
        self._roots: list[Array] = []
        self._valid: list[NDArray[np.bool_]] = []
        self._stamps: list[Array] = []
        self._contacts: list[Array] = []
        self._props: list[Array] = []
        self._missed = [0.0, 0.0, 0]  # greatest distance, sum of distances, count
        self._first: dict[str, str] = {}

    # -- blocks ----------------------------------------------------------------------------------------------------------------

    def add(self, block: Block) -> None:
        """Take the next frames."""
        kinds = [a.get("type", "normal").strip().lower() for a in block.attributes]
        normal = [i for i, kind in enumerate(kinds) if kind not in _POSES]
        for i, kind in enumerate(kinds):
            if kind in _POSES:
                self._poses.setdefault(kind, Pose({tag: v[i] for tag, v in block.values.items()}))
        if not normal:
            return
        if "orientation" not in block.values:
            if self._settled is None:
                raise PlacedError("The frames have no orientations; export the file with orientation and position.", block.offsets[0])
            block.values["orientation"] = np.full((len(kinds), self._settled.width), np.nan)
        if len(normal) != len(kinds):
            block = block.rows(normal)
        if self._settled is None:
            self._first = block.attributes[0]
            self._settled = settle(self.subject, self._poses, block)
        self._convert(block, self._settled)

    def _convert(self, block: Block, settled: Settled) -> None:
        n = len(block.attributes)
        self.frames += n
        world, places = settled.world(block)
        valid = np.isfinite(world[..., 0])
        root = places[:, 0].copy()
        if np.isfinite(places).any():
            valid[:, 0] &= np.isfinite(root).all(axis=1)
            self._compare(world, places, settled.rest)
        parents = settled.layout.parents
        local = np.empty(world.shape, order="F")
        local[:, 0] = world[:, 0]
        local[:, 1:] = quat.mul(quat.inv(world[:, parents[1:]]), world[:, 1:])
        self._rotations.append(local)
        self._roots.append(root)
        self._valid.append(valid)
        self._stamps.append(np.array([_numbers([a.get(k, "") for a in block.attributes]) for k in ("time", "index", "ms")]))
        contacts = block.values.get("footContacts")
        self._contacts.append(np.full((n, 0), np.nan) if contacts is None else contacts)
        if settled.layout.props:
            self._props.append(settled.props(block))

    def _compare(self, world: Array, places: Array, rest: Rest) -> None:
        offsets = np.where(np.isfinite(rest.offsets), rest.offsets, 0.0)
        offsets = np.broadcast_to(offsets, places.shape).copy()
        offsets[:, 0] = places[:, 0]
        with np.errstate(invalid="ignore"):
            miss = kinematics.global_positions(world, offsets, rest.parents) - places
            distance = np.sqrt(miss[..., 0] ** 2 + miss[..., 1] ** 2 + miss[..., 2] ** 2)[:, 1:]
        distance = distance[np.isfinite(distance)]
        if distance.size:
            self._missed[0] = max(self._missed[0], float(distance.max()))
            self._missed[1] += float(distance.sum())
            self._missed[2] += distance.size

    # -- the take --------------------------------------------------------------------------------------------------------------

    def finish(self, name: str, rate: Fraction | None, notes_before: tuple[str, ...] = ()) -> Take:
        """The take; ``rate`` overrides what the file says."""
        settled = self._settled
        if settled is None:
            raise MocapError(f'The take "{name}" has no frames.')
        notes = [*notes_before, *settled.notes]
        layout, rest = settled.layout, settled.rest
        stamps = np.concatenate(self._stamps, axis=1)
        if not np.isfinite(stamps[0]).all():
            stamps[0] = stamps[2] - stamps[2, 0]  # the clock of the computer stands in
        nominal = self._rate(stamps, notes)
        times = axis(stamps[0] / 1000.0, stamps[1], nominal)
        if rate is not None:
            times = replace(times, times=times.times * float((times.rate or nominal) / rate), rate=None if times.rate is None else rate)
        valid = np.concatenate(self._valid)
        rotations = self._joined(len(layout.names), valid)
        translations = np.empty((self.frames, len(layout.names), 3), order="F")
        translations[:] = rest.offsets
        translations[:, 0] = self._root(rest)
        if not valid.all():
            bad = int(np.count_nonzero(~valid.all(axis=1)))
            notes.append(f"{bad} of {self.frames} frames lack the value of some segment; the value before is held there.")
        facts = self._facts(settled, rate or times.rate or nominal, times.missing, rotations[0, 0])
        notes.extend(times.notes)
        notes.extend(self._fit_note(facts))
        return Take(
            name=name,
            skeleton=Skeleton(layout.names, layout.parents, rest.offsets, rest.local_rotations, layout.ends),
            times=times.times,
            local_rotations=rotations,
            local_translations=translations,
            rate=times.rate,
            valid=None if valid.all() else valid,
            curves=self._curves(notes),
            props=self._prop_tracks(settled),
            performer=self.subject.attributes.get("label", ""),
            timecode=self._first.get("tc") or None,
            timecode_rate=nominal,  # MVN counts its own frames in the last field: 0 to 239 at 240 Hz
            notes=tuple(notes),
            facts=facts,
        )

    def _joined(self, joints: int, valid: NDArray[np.bool_]) -> Array:
        """All local rotations, held where they are missing, with continuous signs; the blocks are given up on the way."""
        out = np.empty((self.frames, joints, 4), order="F")
        at = 0
        while self._rotations:
            block = self._rotations.pop(0)
            out[at : at + len(block)] = block
            at += len(block)
        for j in range(joints):
            q = out[:, j]
            if not np.isfinite(q).all():
                q = np.where(np.isfinite(q).any(), _held(q), quat.IDENTITY)
            out[:, j] = quat.continuous(q)
        return out

    def _root(self, rest: Rest) -> Array:
        root = np.concatenate(self._roots)
        return _held(root) if np.isfinite(root).any() else np.broadcast_to(rest.offsets[0], root.shape)

    def _rate(self, stamps: Array, notes: list[str]) -> Fraction:
        text = self.subject.attributes.get("frameRate", "")
        if text:
            try:
                return timeline.parse_rate(text)
            except MocapError:
                pass
        steps = np.diff(stamps[0])
        steps = steps[np.isfinite(steps) & (steps > 0.0)]
        if not steps.size:
            notes.append("The file gives neither a frame rate nor time stamps; 60 frames a second were taken.")
            return Fraction(60)
        digits = 3 + int(np.log10(steps.size))  # whole milliseconds; over n steps only the first and the last are rounded
        rate = timeline.rate_from_frame_time(float(steps.mean()) / 1000.0, digits)
        notes.append(f"The file gives no frame rate; its time stamps say {timeline.format_rate(rate)} frames a second.")
        return rate

    def _facts(self, settled: Settled, rate: Fraction, missing: int, first: Array) -> dict[str, object]:
        """What was found; ``first`` is the root's rotation in the first frame."""
        forward = quat.rotate(first, np.array([1.0, 0.0, 0.0])) * np.array([1.0, 1.0, 0.0])
        given = self.subject.attributes
        facts: dict[str, object] = {
            "format": f"MVNX {self.subject.version}".strip(),
            "unit": 1.0,
            "unit_name": "m",
            "up": "Z",
            "rest_up": "Z",
            "rest": "t",
            "rest_frame": settled.rest.kind,
            "rest_facing": "X",
            "facing": orientation.nearest_axis(forward),
            "heading_deg": round(float(np.degrees(np.arctan2(forward[0], -forward[1]))), 1),
            "rate": rate,
            "segment_frames": "ISB" if settled.isb else "body",
        }
        if self._missed[2]:
            facts["fk_error_mm"] = {"max": self._missed[0] * 1e3, "mean": self._missed[1] / self._missed[2] * 1e3}
        if missing:
            facts["missing_frames"] = missing
        if settled.finger_frame:
            facts["finger_frame"] = settled.finger_frame
        for key, attribute in (("configuration",) * 2, ("scenario", "userScenario"), ("recorded", "recDate")):
            if given.get(attribute):
                facts[key] = given[attribute]
        if given.get("originalFilename"):
            facts["original"] = PureWindowsPath(given["originalFilename"]).name
        if self.subject.software:
            facts["software"] = f"MVN {self.subject.software}"
        if self._first.get("ms", "").isdigit() and int(self._first["ms"]) > 0:
            facts["start_ms"] = int(self._first["ms"])
        return facts

    def _fit_note(self, facts: dict[str, object]) -> list[str]:
        if not self._missed[2]:
            return ["The file gives no positions; the root stays where the rest pose has it."] if not self._has_places() else []
        most, mean = self._missed[0] * 1e3, self._missed[1] / self._missed[2] * 1e3
        if most <= 5.0:
            return []
        return [f"The file's positions differ from its orientations on constant bones by up to {most:.1f} mm ({mean:.1f} mm on average)."]

    def _has_places(self) -> bool:
        return any(bool(np.isfinite(r).any()) for r in self._roots)

    def _curves(self, notes: list[str]) -> dict[str, Array]:
        width = max((c.shape[1] for c in self._contacts), default=0)
        if not width:
            return {}
        table = np.concatenate([c if c.shape[1] == width else np.full((len(c), width), np.nan) for c in self._contacts])
        if np.isnan(table).any():
            notes.append("Some frames have no foot contacts; the contacts before are held there.")
            table = _held(table)
        labels = self.subject.contacts
        if not labels:
            labels = dict(enumerate(_CONTACTS))
            notes.append("The file does not say which foot contact is which; left heel, left toe, right heel, right toe were taken.")
        return {_contact_name(labels.get(i, str(i))): (table[:, i] > 0.5).astype(np.float64) for i in range(width)}

    def _prop_tracks(self, settled: Settled) -> dict[str, PropTrack]:
        if not self._props:
            return {}
        table = np.concatenate(self._props)
        out: dict[str, PropTrack] = {}
        for k, (name, _) in enumerate(settled.layout.props):
            q, p = table[:, k, :4], table[:, k, 4:]
            if np.isfinite(q).any():
                p = _held(p) if np.isfinite(p).any() else np.zeros_like(p)
                out[name] = PropTrack(quat.continuous(np.asfortranarray(_held(q))), np.asfortranarray(p))
        return out


def _contact_name(label: str) -> str:
    """``LeftFoot_Heel`` -> ``contact_l_heel``."""
    side, _, part = label.partition("Foot_")
    short = {"Left": "l", "Right": "r"}.get(side)
    return f"contact_{short}_{part.lower()}" if short and part else f"contact_{label.lower()}"


def _held(a: Array) -> Array:
    """Rows of ``(F, K)`` with anything not finite become the last good row before, or the first good one."""
    good = np.isfinite(a).all(axis=1)
    if good.all() or not good.any():
        return a
    at = np.maximum.accumulate(np.where(good, np.arange(len(a)), -1))
    return a[np.where(at < 0, int(np.argmax(good)), at)]


def _numbers(texts: list[str]) -> Array:
    """Attributes as numbers; NaN for what is none."""
    try:
        return np.array(texts, dtype=np.float64)
    except ValueError:
        return np.array([_number(text) for text in texts])


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return np.nan
