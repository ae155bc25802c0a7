# SPDX-License-Identifier: GPL-3.0-or-later
"""One motion as BVH, FBX, GLB, VRM animation, Blender rig and MVNX gives the same action on the same character.

No file is written by us: BVH, VRMA and MVNX by small writers of the tests from one set of SciPy rotations, the rest by Blender from the rig
that its BVH importer makes. What is compared is what Blender evaluates of the action.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import bpy
import numpy as np
import pytest

from mocap_addon import rig
from mocap_addon.blender import characters, scenes, sources
from mocap_addon.blender.job import JobOptions, retarget_onto
from mocap_addon.blender.takes import read_takes
from mocap_addon.motion import quat
from mocap_addon.motion.take import Take
from tests.blender import take_makers as make
from tests.blender.fidelity import Evaluated, evaluated
from tests.formats.gltf_writer import Gltf
from tests.paths import ROOT

Rotation = pytest.importorskip("scipy.spatial.transform", reason="needs SciPy").Rotation
mvnx_writer = pytest.importorskip("tests.formats.mvnx_writer", reason="needs SciPy")
BODY, TIPS, Made = mvnx_writer.BODY, mvnx_writer.TIPS, mvnx_writer.Made

CHARACTER = ROOT / "mocap_addon" / "demo" / "character.glb"
Y_UP = Rotation.from_euler("x", -90, degrees=True)
"""Z up to Y up: (x, y, z) -> (x, z, -y)."""

VRM = {
    **{"hips": "Pelvis", "spine": "L5", "chest": "T12", "upperChest": "T8", "neck": "Neck", "head": "Head"},
    **{f"{side}{role}": f"{side.title()}{segment}" for side in ("left", "right") for role, segment in (
        *(("Shoulder", "Shoulder"), ("UpperArm", "UpperArm"), ("LowerArm", "ForeArm"), ("Hand", "Hand")),
        *(("UpperLeg", "UpperLeg"), ("LowerLeg", "LowerLeg"), ("Foot", "Foot"), ("Toes", "Toe")),
    )},
}  # fmt: skip


class Body:
    """A made-up motion: global rotations away from the T-pose, and places, with Y up; the T-pose's places."""

    def __init__(self, made: Made) -> None:
        self.made = made
        rest_r, rest_p = made.tpose()
        self.parents = {name: parent for name, (parent, _, _) in BODY.items()}
        self.rest = {name: Y_UP.apply(place) for name, place in rest_p.items()}
        self.tips = {name: Y_UP.apply(rest_r[name].apply(tip)) for name, (_, tip) in TIPS.items()}
        self.turned = {n: Y_UP * made.rotations[n] * rest_r[n].inv() * Y_UP.inv() for n in BODY}
        self.hips = Y_UP.apply(made.places["Pelvis"])

    def local(self, name: str) -> Rotation:
        parent = self.parents[name]
        return self.turned[parent].inv() * self.turned[name] if parent else self.turned[name]

    def offset(self, name: str) -> np.ndarray:
        parent = self.parents[name]
        return self.rest[name] - self.rest[parent] if parent else self.rest[name]

    def bvh(self, path: Path) -> Path:
        """In centimetres."""
        lines, order = ["HIERARCHY"], []

        def joint(name: str, depth: int) -> None:
            pad = "  " * depth
            order.append(name)
            where = "Xposition Yposition Zposition " if depth == 0 else ""
            lines.extend([f"{pad}{'JOINT' if depth else 'ROOT'} {name}", f"{pad}{{", f"{pad}  OFFSET {words(self.offset(name) * 100)}"])
            lines.append(f"{pad}  CHANNELS {6 if where else 3} {where}Zrotation Xrotation Yrotation")
            for child in (n for n, p in self.parents.items() if p == name):
                joint(child, depth + 1)
            if name in self.tips:
                lines.extend([f"{pad}  End Site", f"{pad}  {{", f"{pad}    OFFSET {words(self.tips[name] * 100)}", f"{pad}  }}"])
            lines.append(f"{pad}}}")

        joint("Pelvis", 0)
        rate = float(self.made.rate)
        lines += ["MOTION", f"Frames: {self.made.frames}", f"Frame Time: {1 / rate:.7f}"]
        turns = {name: self.local(name).as_euler("ZXY", degrees=True) for name in order}
        for f in range(self.made.frames):
            lines.append(" ".join([words(self.hips[f] * 100), *(words(turns[name][f]) for name in order)]))
        path.write_text("\n".join(lines) + "\n")
        return path

    def vrma(self, path: Path) -> Path:
        g = Gltf()
        nodes: dict[str, int] = {}
        for name, parent in self.parents.items():
            nodes[name] = g.node(name, nodes.get(parent), translation=self.offset(name))
        animation = g.animation()
        times = np.arange(self.made.frames) / float(self.made.rate)
        for name in BODY:
            g.channel(animation, nodes[name], "rotation", times, self.local(name).as_quat())
        g.channel(animation, nodes["Pelvis"], "translation", times, self.hips)
        g.humanoid({role: nodes[segment] for role, segment in VRM.items()})
        return g.save(path)


def words(numbers: np.ndarray) -> str:
    return " ".join(f"{v:.6f}" for v in numbers)


def action(take: Take) -> tuple[Evaluated, set[str]]:
    """What the character does with the take, and which of its bones have keys."""
    bpy.ops.wm.read_factory_settings(use_empty=True)
    scenes.set_rate(bpy.context.scene, take.rate)
    obj = characters.bring_in(CHARACTER).armature
    result = retarget_onto(obj, take, options=JobOptions(frame_start=1.0))
    names = {result.target.skeleton.names[k] for k in result.motion.bones}
    return evaluated(obj, np.unique(np.linspace(1, take.frames, 7).round())), names


def assert_same(take: Take, truth: tuple[Evaluated, set[str]]) -> None:
    found, keyed = action(take)
    assert keyed == truth[1]
    assert np.linalg.norm(found.positions - truth[0].positions, axis=-1).max() < 1e-3
    assert np.degrees(quat.angle(found.rotations, truth[0].rotations)).max() < 0.1


@pytest.fixture(scope="module")
def made_up(tmp_path_factory) -> dict[str, Path]:
    """The same motion in every kind of file."""
    folder = tmp_path_factory.mktemp("same")
    body = Body(Made(frames=40, rate=Fraction(60)))
    out = {"mvnx": body.made.write(folder / "a.mvnx"), "bvh": body.bvh(folder / "b.bvh"), "vrma": body.vrma(folder / "c.vrma")}
    return {**out, **through_blender(out["bvh"], 0.01, folder)}


def through_blender(bvh: Path, scale: float, folder: Path) -> dict[str, Path]:
    bpy.ops.wm.read_factory_settings(use_empty=True)
    make.skin(make.bvh_rig(bvh, scale))
    return {
        "fbx": make.save_fbx(folder / "d.fbx"),
        "glb": make.save_glb(folder / "e.glb"),
        "blend": make.save_blend(folder / "f.blend"),
    }


@pytest.fixture(scope="module")
def truth(made_up):
    (take,) = read_takes(made_up["mvnx"])
    return action(take)


@pytest.mark.parametrize("kind", ["bvh", "vrma", "fbx", "glb", "blend"])
def test_a_made_up_motion(made_up, truth, kind):
    (take,) = read_takes(made_up[kind])
    assert (take.frames, take.rate) == (40, 60)
    assert set(rig.match(take.skeleton).joints) == set(rig.match(read_takes(made_up["mvnx"])[0].skeleton).joints)
    assert_same(take, truth)


def test_the_rig_in_the_scene(made_up, truth):
    bpy.ops.wm.read_factory_settings(use_empty=True)
    obj = make.bvh_rig(made_up["bvh"], 0.01)
    for method in ("curves", "depsgraph"):
        obj = bpy.data.objects.get("Source") or make.bvh_rig(made_up["bvh"], 0.01)
        assert_same(sources.read_rig(obj, method=method), truth)


def test_the_motion_moves_the_character(truth):
    """The comparison above is of something: limbs turn by tens of degrees."""
    found, keyed = truth
    assert len(keyed) > 15
    turned = np.degrees(quat.angle(found.rotations, found.rotations[:1])).max(axis=0)
    assert np.median(turned) > 30


@pytest.fixture(scope="module")
def walk(tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("walk")
    return through_blender(make.WALK, make.CMU_UNIT, folder)


@pytest.mark.parametrize("kind", ["fbx", "glb", "blend"])
def test_a_real_walk(walk, kind):
    expected = action(read_takes(make.WALK)[0])
    (take,) = read_takes(walk[kind])
    assert (take.frames, take.rate) == (60, 120)
    assert_same(take, expected)
