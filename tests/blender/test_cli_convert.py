# SPDX-License-Identifier: GPL-3.0-or-later
"""``mocap convert`` and ``mocap demo``, from words to files. Blender judges the files: its own BVH importer and its depsgraph."""

from __future__ import annotations

import json
import os
import shutil
import signal
from dataclasses import replace
from pathlib import Path

import bpy
import numpy as np
import pytest

from mocap_addon import cli, rig
from mocap_addon.cli import exports
from tests.paths import ROOT

ZOMBIE = ROOT / "mocap_addon" / "demo" / "zombieWalk1.bvh"
WALK = ROOT / "demo" / "takes" / "cmu_02_01_walk.bvh"
CHARACTER = ROOT / "mocap_addon" / "demo" / "character.glb"

KEYS = {
    *("take", "source", "character", "armature", "action", "frames", "fps", "rate", "duration_s", "mapped", "unmapped", "unmapped_source"),
    *("residual_deg", "warnings", "files", "timing_s"),
}
LIMBS = (("upperarm", "lowerarm"), ("lowerarm", "hand"), ("thigh", "calf"), ("calf", "foot"))
ZOMBIE_LIMBS = {"upperarm": "UpArm", "lowerarm": "LoArm", "hand": "Hand", "thigh": "UpLeg", "calf": "LoLeg", "foot": "Foot"}


def convert(capfd, out: Path, *words, code: int = 0) -> list[dict]:
    capfd.readouterr()
    assert cli.main(["convert", *map(str, words), "--out", str(out), "--json"]) == code
    text, err = capfd.readouterr()
    assert "Traceback" not in text + err
    return [json.loads(line) for line in text.splitlines()]  # raises when Blender's chatter is among them


def armature() -> bpy.types.Object:
    return next(o for o in bpy.data.objects if o.type == "ARMATURE")


def heads(obj: bpy.types.Object, frames) -> dict[str, np.ndarray]:
    """(F, 3) of each bone in the world, as evaluated."""
    out: dict[str, list] = {bone.name: [] for bone in obj.pose.bones}
    for frame in frames:
        bpy.context.scene.frame_set(int(frame))
        seen = obj.evaluated_get(bpy.context.evaluated_depsgraph_get())
        for bone in seen.pose.bones:
            out[bone.name].append(seen.matrix_world @ bone.head)
    return {name: np.array(places) for name, places in out.items()}


def imported(path: Path, forward: str, up: str, scale: float) -> bpy.types.Object:
    """A BVH file through Blender's own importer."""
    bpy.ops.wm.read_factory_settings(use_empty=True)
    bpy.ops.import_anim.bvh(filepath=str(path), axis_forward=forward, axis_up=up, global_scale=scale, update_scene_fps=True)
    return armature()


def directions(places: dict[str, np.ndarray], pairs) -> np.ndarray:
    d = np.stack([places[b] - places[a] for a, b in pairs])
    return d / np.linalg.norm(d, axis=-1, keepdims=True)


def test_files_of_one_take_agree_and_say_what_the_take_says(tmp_path, capfd):
    (r,) = convert(capfd, tmp_path / "out", ZOMBIE, "--character", CHARACTER)
    assert set(r) == KEYS and set(r["timing_s"]) == {"read", "character", "retarget", "write", "export"}
    assert (r["take"], r["frames"], r["fps"], r["rate"], r["duration_s"]) == ("zombieWalk1", 31, 24.0, "24", 1.25)
    assert r["character"] == str(CHARACTER) and r["source"] == str(ZOMBIE)
    assert ["leftUpperArm", "UpArm_L", "upperarm_l"] in r["mapped"] and "Root" in r["unmapped"]
    assert {t for _role, _source, t in r["mapped"]}.isdisjoint(r["unmapped"]) and set(r["residual_deg"]) <= {t for _r, _s, t in r["mapped"]}
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["zombieWalk1.blend", "zombieWalk1.bvh", "zombieWalk1.clip.json"]
    assert sorted(r["files"]) == ["blend", "bvh", "threejs"] and all(Path(f).is_file() for f in r["files"].values())

    frames = [1, 8, 20, 31]
    bpy.ops.wm.open_mainfile(filepath=r["files"]["blend"])
    scene, obj = bpy.context.scene, armature()
    assert (scene.frame_start, scene.frame_end, scene.render.fps, obj.animation_data.action.name) == (1, 31, 24, r["action"])
    blend = heads(obj, frames)
    bvh = heads(imported(Path(r["files"]["bvh"]), "-Z", "Y", 0.01), frames)  # ours are Y up and in centimetres
    assert max(np.abs(blend[name] - bvh[name]).max() for name in bvh) < 1e-4

    # The take is Z up and faces -Y, as Blender is: the two are directly comparable.
    source = heads(imported(ZOMBIE, "Y", "Z", 0.1), frames)
    sides = [(s, S) for s, S in (("_l", "_L"), ("_r", "_R"))]
    ours = directions(blend, [(a + s, b + s) for s, _S in sides for a, b in LIMBS])
    theirs = directions(source, [(ZOMBIE_LIMBS[a] + S, ZOMBIE_LIMBS[b] + S) for _s, S in sides for a, b in LIMBS])
    apart = np.degrees(np.arccos(np.clip(np.sum(ours * theirs, axis=-1), -1, 1)))
    assert apart.max() < 0.1

    (clip,) = json.loads(Path(r["files"]["threejs"]).read_text())
    assert clip["name"] == r["action"] and clip["duration"] == pytest.approx(1.25)
    tracks = {t["name"]: t for t in clip["tracks"]}
    assert len(tracks["upperarm_l.quaternion"]["values"]) == 4 * 31


@pytest.mark.parametrize(
    ("words", "frames", "fps", "base"),
    [([], 69, 24, 1.0), (["--fps", "30"], 86, 30, 1.0), (["--fps", "29.97"], 86, 30, 1.001), (["--fps", "source"], 343, 120, 1.0)],
    ids=["scene", "30", "29.97", "source"],
)
def test_rates(tmp_path, capfd, words, frames, fps, base):
    (r,) = convert(capfd, tmp_path, WALK, "--character", CHARACTER, "--formats", "blend", *words)
    assert r["frames"] == frames and list(r["files"]) == ["blend"]
    bpy.ops.wm.open_mainfile(filepath=r["files"]["blend"])
    scene = bpy.context.scene
    assert (scene.render.fps, scene.frame_end) == (fps, frames) and scene.render.fps_base == pytest.approx(base, abs=1e-6)
    action = armature().animation_data.action
    assert tuple(action.frame_range) == (1.0, float(frames))


def test_a_bad_take_among_good_ones_and_names_of_any_script(tmp_path, capfd):
    folder = tmp_path / "Ordner mit ä 走る"
    folder.mkdir()
    good, twin = folder / "läuft 1.bvh", tmp_path / "läuft 1.bvh"
    shutil.copyfile(ZOMBIE, good)
    shutil.copyfile(ZOMBIE, twin)
    (folder / "bad.bvh").write_text("HIERARCHY\nROOT hips\n{\n")
    (folder / "still.bvh").write_bytes(ZOMBIE.read_bytes().split(b"MOTION")[0] + b"MOTION\nFrames: 0\nFrame Time: 0.04\n")
    hero = folder / "Heldin №1.glb"
    shutil.copyfile(CHARACTER, hero)
    out = folder / "aus gabe" / "neu"
    words = [good, folder / "bad.bvh", folder / "missing.bvh", folder / "still.bvh", twin, "--character", hero, "--formats", "threejs,bvh"]
    records = convert(capfd, out, *words, code=1)
    assert ["error" in r for r in records] == [False, True, True, True, False]
    assert all({"take", "source", "character", "error"} == set(r) for r in records if "error" in r)
    assert sorted(p.name for p in out.iterdir()) == ["läuft 1.bvh", "läuft 1.clip.json", "läuft 1_2.bvh", "läuft 1_2.clip.json"]


def test_every_performer_of_a_file_gets_files_of_its_own(tmp_path, capfd):
    hierarchy, motion = ZOMBIE.read_text().split("MOTION")
    root = hierarchy.replace("HIERARCHY", "").strip()
    count, time, *rows = motion.strip().splitlines()
    two = tmp_path / "duo.bvh"
    second = root.replace("ROOT Root", "ROOT Anna")
    two.write_text("\n".join(["HIERARCHY", root, second, "MOTION", count, time, *(f"{row} {row}" for row in rows)]))
    records = convert(capfd, tmp_path / "out", two, "--character", CHARACTER, "--formats", "bvh")
    assert len(records) == 2 and len({r["files"]["bvh"] for r in records}) == 2 == len(list((tmp_path / "out").iterdir()))
    assert any("Anna" in Path(r["files"]["bvh"]).name for r in records)


def test_a_person_is_told_which_take_failed(tmp_path, capfd):
    words = ["convert", str(ZOMBIE), "--character", str(CHARACTER), "--out", str(tmp_path / "out"), "--reference-frame", "99"]
    assert cli.main(words) == 1
    out, err = capfd.readouterr()
    assert out == "" and err.startswith("zombieWalk1: ") and "99" in err and len(err.splitlines()) == 1


def test_a_blend_character_keeps_its_scene_and_is_not_changed(tmp_path, capfd):
    (first,) = convert(capfd, tmp_path, ZOMBIE, "--character", CHARACTER, "--formats", "blend")
    hero = tmp_path / "hero.blend"
    bpy.ops.wm.open_mainfile(filepath=first["files"]["blend"])
    scene = bpy.context.scene
    scene.render.fps, scene.name = 50, "Bühne"
    bpy.ops.wm.save_as_mainfile(filepath=str(hero), copy=True)
    before = hero.read_bytes()
    take = tmp_path / "hero.bvh"
    shutil.copyfile(ZOMBIE, take)
    # The results lie in the folder of their inputs and are called alike: neither input is written over.
    (r,) = convert(capfd, tmp_path, take, "--character", hero)
    assert hero.read_bytes() == before and take.read_bytes() == ZOMBIE.read_bytes()
    assert sorted(Path(f).name for f in r["files"].values()) == ["hero_2.blend", "hero_2.bvh", "hero_2.clip.json"]
    assert r["fps"] == 50.0 and r["frames"] == 63  # 1.25 s at 50 frames per second
    bpy.ops.wm.open_mainfile(filepath=r["files"]["blend"])
    assert bpy.context.scene.name == "Bühne" and armature().animation_data.action.name == r["action"] != first["action"]


def test_a_table_is_followed(tmp_path, capfd):
    (plain,) = convert(capfd, tmp_path / "a", ZOMBIE, "--character", CHARACTER, "--formats", "blend")
    bpy.ops.wm.open_mainfile(filepath=plain["files"]["blend"])
    was = heads(armature(), [10])
    recipe = json.loads(armature().animation_data.action["mocap_recipe"])
    table = rig.loads(recipe["table"])
    row = table.row("lowerarm_l")
    rig.save_table(table.with_row(replace(row, correction=(0.0, 0.0, 25.0))), tmp_path / "my table.toml")
    (r,) = convert(capfd, tmp_path / "b", ZOMBIE, "--character", CHARACTER, "--formats", "blend", "--table", tmp_path / "my table.toml")
    bpy.ops.wm.open_mainfile(filepath=r["files"]["blend"])
    now = heads(armature(), [10])
    a, b = (directions(h, [("lowerarm_l", "hand_l"), ("lowerarm_r", "hand_r")])[:, 0] for h in (was, now))
    turned = np.degrees(np.arccos(np.clip(np.sum(a * b, axis=-1), -1, 1)))
    assert turned[0] > 5.0 and turned[1] < 1e-3


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("no character", ["--character", "none.glb"]),
        ("a take as character", ["--character", "take.bvh"]),
        ("damaged character", ["--character", "cut.glb"]),
        ("character without bones", ["--character", "bare.gltf"]),
        ("no .blend inside", ["--character", "fake.blend"]),
        ("no table", ["--character", "hero.glb", "--table", "none.toml"]),
        ("no table inside", ["--character", "hero.glb", "--table", "take.bvh"]),
        ("no such armature", ["--character", "hero.glb", "--armature", "Bob"]),
        ("output is a file", ["--character", "hero.glb", "--out", "take.bvh"]),
        ("output below a file", ["--character", "hero.glb", "--out", "take.bvh/x"]),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_what_cannot_start_is_one_sentence(tmp_path, monkeypatch, capfd, what, words):
    monkeypatch.chdir(tmp_path)
    shutil.copyfile(ZOMBIE, "take.bvh")
    shutil.copyfile(CHARACTER, "hero.glb")
    Path("cut.glb").write_bytes(CHARACTER.read_bytes()[:50000])
    Path("bare.gltf").write_text('{"asset": {"version": "2.0"}, "scene": 0, "scenes": [{"nodes": [0]}], "nodes": [{"name": "a"}]}')
    Path("fake.blend").write_bytes(b"BLENDER-v999RENDH" + bytes(100))
    words = words if "--out" in words else [*words, "--out", "out"]
    before = sorted(os.listdir())
    assert cli.main(["convert", "take.bvh", *words]) == 1
    out, err = capfd.readouterr()
    assert out == "" and "program failed" not in err
    assert len(err.strip().splitlines()) == 1 and err.strip().endswith("."), err
    assert set(os.listdir()) - set(before) <= {"out"} and (not Path("out").is_dir() or not os.listdir("out"))


def test_a_fault_in_the_middle_leaves_nothing(tmp_path, monkeypatch, capfd):
    def broken(done, path):
        path.write_text("half")
        raise RuntimeError("injected\nfault")

    monkeypatch.setitem(exports._WRITERS, "bvh", broken)
    (tmp_path / "zombieWalk1.blend").write_text("earlier")
    (r,) = convert(capfd, tmp_path, ZOMBIE, "--character", CHARACTER, code=1)
    assert "injected fault" in r["error"] and "\n" not in r["error"]
    assert [p.name for p in tmp_path.iterdir()] == ["zombieWalk1.blend"] and (tmp_path / "zombieWalk1.blend").read_text() == "earlier"


def test_demo(tmp_path, capfd, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["demo"]) == 0
    out, err = capfd.readouterr()
    assert err == "" and "walk.blend" in out and "mocap convert" in out
    made = sorted(p.name for p in (tmp_path / "mocap-demo").iterdir())
    assert made == ["walk.blend", "walk.character.glb", "walk.clip.json", "walk.png"]
    picture = bpy.data.images.load(str(tmp_path / "mocap-demo" / "walk.png"))
    pixels = np.array(picture.pixels[:]).reshape(*reversed(picture.size), 4)[..., :3]
    # Light background, and seven figures: blueish columns in seven groups at the height of their heads (a fifth from the top).
    row = pixels[int(0.87 * picture.size[1])]
    figure = np.abs(row - np.median(row, axis=0)).max(axis=-1) > 0.03
    assert np.median(pixels) > 0.8 and np.count_nonzero(np.diff(figure.astype(int)) == 1) >= 5
    bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "mocap-demo" / "walk.blend"))
    hips = heads(armature(), [1, 343])["pelvis"]
    assert 2.0 < np.linalg.norm(hips[1, :2] - hips[0, :2]) < 6.0  # 2.85 s of walking


@pytest.mark.skipif(os.name == "nt", reason="Windows has no signal to send to oneself")
def test_ctrl_c_finishes_the_take_at_hand_and_stops(tmp_path, monkeypatch, capfd):
    write = exports._WRITERS["bvh"]

    def pressed(done, path):
        os.kill(os.getpid(), signal.SIGINT)
        return write(done, path)

    monkeypatch.setitem(exports._WRITERS, "bvh", pressed)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        records = convert(capfd, tmp_path, ZOMBIE, WALK, "--character", CHARACTER, "--formats", "bvh", code=130)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert [r.get("take") for r in records] == ["zombieWalk1", None] and records[1]["error"].startswith("Stopped")
    assert [p.name for p in tmp_path.iterdir()] == ["zombieWalk1.bvh"]
