# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes made-up MVNX files: a body of round numbers whose motion, places and contacts are known in closed form.

Everything is computed here with SciPy and plain loops, independent of the reader.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

# segment: (parent, joint, place of the joint in the parent). Metres, X forward, Y left, Z up.
BODY: dict[str, tuple[str, str, tuple[float, float, float]]] = {
    "Pelvis": ("", "", (0.0, 0.0, 0.0)),
    "L5": ("Pelvis", "jL5S1", (0.0, 0.0, 0.1)),
    "L3": ("L5", "jL4L3", (0.0, 0.0, 0.1)),
    "T12": ("L3", "jL1T12", (0.0, 0.0, 0.1)),
    "T8": ("T12", "jT9T8", (0.0, 0.0, 0.1)),
    "Neck": ("T8", "jT1C7", (0.0, 0.0, 0.12)),
    "Head": ("Neck", "jC1Head", (0.01, 0.0, 0.08)),
    "RightShoulder": ("T8", "jRightT4Shoulder", (0.0, -0.03, 0.07)),
    "RightUpperArm": ("RightShoulder", "jRightShoulder", (0.0, -0.14, 0.0)),
    "RightForeArm": ("RightUpperArm", "jRightElbow", (0.0, -0.3, 0.0)),
    "RightHand": ("RightForeArm", "jRightWrist", (0.0, -0.25, 0.0)),
    "LeftShoulder": ("T8", "jLeftT4Shoulder", (0.0, 0.03, 0.07)),
    "LeftUpperArm": ("LeftShoulder", "jLeftShoulder", (0.0, 0.14, 0.0)),
    "LeftForeArm": ("LeftUpperArm", "jLeftElbow", (0.0, 0.3, 0.0)),
    "LeftHand": ("LeftForeArm", "jLeftWrist", (0.0, 0.25, 0.0)),
    "RightUpperLeg": ("Pelvis", "jRightHip", (0.0, -0.1, 0.0)),
    "RightLowerLeg": ("RightUpperLeg", "jRightKnee", (0.0, 0.0, -0.4)),
    "RightFoot": ("RightLowerLeg", "jRightAnkle", (0.0, 0.0, -0.4)),
    "RightToe": ("RightFoot", "jRightBallFoot", (0.15, 0.0, -0.08)),
    "LeftUpperLeg": ("Pelvis", "jLeftHip", (0.0, 0.1, 0.0)),
    "LeftLowerLeg": ("LeftUpperLeg", "jLeftKnee", (0.0, 0.0, -0.4)),
    "LeftFoot": ("LeftLowerLeg", "jLeftAnkle", (0.0, 0.0, -0.4)),
    "LeftToe": ("LeftFoot", "jLeftBallFoot", (0.15, 0.0, -0.08)),
}
TIPS: dict[str, tuple[str, tuple[float, float, float]]] = {
    "Head": ("pTopOfHead", (0.0, 0.0, 0.17)),
    "RightHand": ("pRightTopOfHand", (0.0, -0.17, 0.0)),
    "LeftHand": ("pLeftTopOfHand", (0.0, 0.17, 0.0)),
    "RightToe": ("pRightToe", (0.06, 0.0, -0.02)),
    "LeftToe": ("pLeftToe", (0.06, 0.0, -0.02)),
}
TPOSE_TILT: dict[str, float] = {"Pelvis": -5.83, "L5": 5.29, "Neck": 12.67, "Head": 13.24, "RightUpperLeg": 2.75, "LeftUpperLeg": 2.75}
"""Degrees about Y (the body's left): MVN's T-pose is not quite straight."""
# The ISB frames differ from the body frames by a constant turn; as wxyz, from the T-pose frames of a real file.
H = 0.5**0.5
ISB: dict[str, tuple[float, float, float, float]] = {
    "RightUpperArm": (H, -H, 0.0, 0.0),
    "RightForeArm": (0.5, -0.5, 0.5, 0.5),
    "RightHand": (0.5, -0.5, 0.5, 0.5),
    "LeftUpperArm": (H, H, 0.0, 0.0),
    "LeftForeArm": (0.5, 0.5, 0.5, -0.5),
    "LeftHand": (0.5, 0.5, 0.5, -0.5),
}
_FINGERS = {"First": ("MC", "PP", "DP"), **{f: ("MC", "PP", "MP", "DP") for f in ("Second", "Third", "Fourth", "Fifth")}}


def fingers(side: str) -> dict[str, tuple[str, str, tuple[float, float, float]]]:
    """The 20 segments of one hand, in MVN's order."""
    sign = 1.0 if side == "Left" else -1.0
    out: dict[str, tuple[str, str, tuple[float, float, float]]] = {f"{side}Carpus": (f"{side}Hand", f"j{side}Wrist", (0.0, 0.0, 0.0))}
    for i, (finger, parts) in enumerate(_FINGERS.items()):
        parent = f"{side}Carpus"
        for k, part in enumerate(parts):
            place = (0.04 - 0.02 * i, sign * 0.02, 0.0) if k == 0 else (0.0, sign * 0.03, 0.0)
            out[f"{side}{finger}{part}"] = (parent, f"j{side}{finger}{k}", place)
            parent = f"{side}{finger}{part}"
    return out


@dataclass
class Made:
    """What to write. Rotations are global, of the body frames."""

    frames: int = 40
    rate: Fraction = Fraction(60)
    version: str = "4"
    label: str = "Suit A"
    seed: int = 1
    isb: bool = False
    poses: tuple[str, ...] = ("identity", "tpose", "tpose-isb")
    with_fingers: bool = False
    fingers_in: str = "world"
    finger_joints: bool = True
    props: int = 0
    contacts: bool = True
    contact_definition: bool = True
    position: bool = True
    joints: bool = True
    segments: bool = True
    points: str = "pos_b"
    attributes: tuple[str, ...] = ("time", "index", "tc", "ms")
    frame_rate: bool = True
    extra_tags: bool = True
    numbers: list[int] | None = None
    random_signs: bool = False
    prefix: str = ""
    rotations: dict[str, Rotation] = field(default_factory=dict)
    places: dict[str, np.ndarray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        rng = np.random.default_rng(self.seed)
        t = np.arange(self.frames) / max(self.frames - 1, 1)
        all_segments = dict(BODY)
        if self.with_fingers:
            all_segments |= fingers("Left") | fingers("Right")
        self.parents = all_segments
        for name, (parent, _, place) in all_segments.items():
            axis = rng.normal(size=3)
            axis *= rng.uniform(0.2, 0.9) / np.linalg.norm(axis)
            own = Rotation.from_rotvec(np.sin(2.0 * np.pi * t + rng.uniform(0.0, 6.0))[:, None] * axis)
            if name == "Pelvis":  # turns round more than once
                self.rotations[name] = Rotation.from_euler("z", 9.0 * t[:, None]) * own
                self.places[name] = np.stack([2.0 * t, np.cos(6.0 * t), 0.9 + 0.05 * np.sin(20.0 * t)], axis=1)
            else:
                self.rotations[name] = self.rotations[parent] * own
                self.places[name] = self.places[parent] + self.rotations[parent].apply(place)
        self.contact_values = (rng.random((self.frames, 4)) > 0.5).astype(int)
        self.signs = rng.choice([-1.0, 1.0], (self.frames, 23)) if self.random_signs else np.ones((self.frames, 23))
        self.prop_rotations = [Rotation.random(self.frames, random_state=10 + k) for k in range(self.props)]
        self.prop_places = [rng.normal(size=(self.frames, 3)) for _ in range(self.props)]

    def tpose(self) -> tuple[dict[str, Rotation], dict[str, np.ndarray]]:
        """Rotations and places of the T-pose frame."""
        rotations, places = {}, {}
        for name, (parent, _, place) in self.parents.items():
            rotations[name] = Rotation.from_euler("y", TPOSE_TILT.get(name, 0.0), degrees=True)
            places[name] = places[parent] + rotations[parent].apply(place) if parent else np.array([0.0, 0.0, 0.96])
        return rotations, places

    def text(self) -> str:
        """The file."""
        p = self.prefix
        xmlns = f"xmlns:{p[:-1]}" if p else "xmlns"
        return "\n".join(
            [
                '<?xml version="1.0" encoding="UTF-8"?>',
                f'<{p}mvnx {xmlns}="http://www.xsens.com/mvn/mvnx" version="{self.version}">',
                f'<{p}mvn version="2022.0.0" build="x"/>',
                f"<{p}comment>a &lt;frames&gt; of words</{p}comment>",
                *self.subject(),
                f'<{p}securityCode code="0"/>',
                f"</{p}mvnx>",
                "",
            ]
        )

    def write(self, path: Path) -> Path:
        """Write the file."""
        path.write_text(self.text(), encoding="utf-8", newline="\n")
        return path

    def subject(self) -> list[str]:
        """The lines of one subject."""
        p = self.prefix
        rate = f' frameRate="{float(self.rate):g}"' if self.frame_rate else ""
        out = [
            f'<{p}subject label="{self.label}" torsoColor="#e96417"{rate} segmentCount="23" recDate="Tue Nov 13" configuration="FullBody">'
        ]
        hands = {s: fingers(s) for s in ("Left", "Right")} if self.with_fingers else {}
        prop_names = [f"Prop{k + 1}" for k in range(self.props)]
        if self.segments:
            out += self._segments("segments", {**BODY, **{n: ("", "", (0, 0, 0)) for n in prop_names}})
            for side, part in hands.items():
                out += self._segments(f"fingerTrackingSegments{side}", part)
        if self.joints:
            out += self._joints("joints", BODY)
            for side, part in hands.items():
                if self.finger_joints:
                    out += self._joints(f"fingerTrackingJoints{side}", {n: v for n, v in part.items() if not n.endswith("Carpus")})
        if self.contact_definition:
            labels = ("LeftFoot_Heel", "LeftFoot_Toe", "RightFoot_Heel", "RightFoot_Toe")
            out.append(f"<{p}footContactDefinition>")
            out += [f'<{p}contactDefinition label="{label}" index="{i}"/>' for i, label in enumerate(labels)]
            out.append(f"</{p}footContactDefinition>")
        out.append(f'<{p}frames segmentCount="23" sensorCount="17" jointCount="22">')
        out += [line for kind in self.poses for line in self._pose(kind)]
        out += [line for i in range(self.frames) for line in self._frame(i)]
        return [*out, f"</{p}frames>", f"</{p}subject>"]

    def _segments(self, tag: str, part: dict) -> list[str]:
        p = self.prefix
        out = [f"<{p}{tag}>"]
        for i, (name, (parent, joint, _)) in enumerate(part.items()):
            out.append(f'<{p}segment label="{name}" id="{i + 1}"><{p}points>')
            points = {joint: (0.0, 0.0, 0.0)} if parent else {"pHipOrigin": (0.0, 0.0, 0.0)}
            points |= {j: place for child, (above, j, place) in self.parents.items() if above == name and not child.endswith("Carpus")}
            if name in TIPS:
                points[TIPS[name][0]] = TIPS[name][1]
            if name.endswith("DP"):
                points[f"p{name[:-2]}Tip"] = (0.0, 0.02 if name.startswith("Left") else -0.02, 0.0)
            points["pSomewhere"] = (-0.2, 0.1, 0.1)  # farther out than any tip
            out += [
                f'<{p}point label="{k}"><{p}{self.points}>{v[0]:.6f} {v[1]:.6f} {v[2]:.6f}</{p}{self.points}></{p}point>'
                for k, v in points.items()
            ]
            out.append(f"</{p}points></{p}segment>")
        return [*out, f"</{p}{tag}>"]

    def _joints(self, tag: str, part: dict) -> list[str]:
        p = self.prefix
        out = [f"<{p}{tag}>"]
        for name, (parent, joint, _) in part.items():
            if parent:
                ends = f"<{p}connector1>{parent}/{joint}</{p}connector1><{p}connector2>{name}/{joint}</{p}connector2>"
                out.append(f'<{p}joint label="{joint}">{ends}</{p}joint>')
        return [*out, f"</{p}{tag}>"]

    def _pose(self, kind: str) -> list[str]:
        rotations, places = self.tpose()
        if kind == "identity":
            rotations = {n: Rotation.identity() for n in rotations}
            for name, (parent, _, place) in self.parents.items():
                places[name] = places[parent] + place if parent else np.array([0.0, 0.0, 0.97])
        isb = self.isb or kind.endswith("isb")
        out = [f'<{self.prefix}frame time="0" index="-1" tc="00:00:00:00" ms="0" type="{kind}">']
        out += self._values("orientation", [_wxyz(_isb(n, rotations[n], isb)) for n in BODY], self.props * [(1.0, 0.0, 0.0, 0.0)])
        out += self._values("position", [places[n] for n in BODY], self.props * [(0.0, 0.0, 0.0)])
        return [*out, f"</{self.prefix}frame>"]

    def _frame(self, i: int) -> list[str]:
        p = self.prefix
        n = self.numbers[i] if self.numbers else i
        whole = {
            "time": str(int(1000 * n / float(self.rate))),
            "index": str(n),
            "tc": f"10:20:30:{n % 60:02d}",
            "ms": str(1_600_000_000_000 + int(1000 * n / float(self.rate))),
        }
        attributes = " ".join(f'{k}="{whole[k]}"' for k in self.attributes)
        out = [f'<{p}frame {attributes} type="normal">']
        out += self._values(
            "orientation",
            [self.signs[i, k] * _wxyz(_isb(s, self.rotations[s][i], self.isb)) for k, s in enumerate(BODY)],
            [_wxyz(r[i]) for r in self.prop_rotations],
        )
        if self.position:
            out += self._values("position", [self.places[s][i] for s in BODY], [v[i] for v in self.prop_places])
        if self.extra_tags:
            out += self._values("velocity", np.zeros((23, 3)), [])
        if self.with_fingers:
            for side in ("Left", "Right"):
                names, back, origin = list(fingers(side)), Rotation.identity(), np.zeros(3)
                if self.fingers_in == "hand":
                    back, origin = self.rotations[f"{side}Hand"][i].inv(), self.places[f"{side}Hand"][i]
                out += self._values(f"orientationFingers{side}", [_wxyz(back * self.rotations[s][i]) for s in names], [])
                out += self._values(f"positionFingers{side}", [back.apply(self.places[s][i] - origin) for s in names], [])
        if self.contacts:
            out.append(f"<{p}footContacts>{' '.join(map(str, self.contact_values[i]))}</{p}footContacts>")
        return [*out, f"</{p}frame>"]

    def _values(self, tag: str, rows, more) -> list[str]:
        words = " ".join(f"{v:.6f}" for row in [*rows, *more] for v in row)
        return [f"<{self.prefix}{tag}>{words}</{self.prefix}{tag}>"]


def _wxyz(r: Rotation) -> np.ndarray:
    return np.roll(r.as_quat(), 1)


def _isb(name: str, r: Rotation, isb: bool) -> Rotation:
    if not isb or name not in ISB:
        return r
    w, x, y, z = ISB[name]
    return r * Rotation.from_quat([x, y, z, w])
