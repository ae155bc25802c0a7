# SPDX-License-Identifier: GPL-3.0-or-later
"""``mocap info`` on real files, and on what is none. The literal truths were read off the files by eye."""

from __future__ import annotations

import json
import os
import random
import shutil
import struct
import subprocess
import sys

import pytest

from mocap_addon import cli
from tests.paths import ROOT, SHARED, need

ZOMBIE = ROOT / "mocap_addon" / "demo" / "zombieWalk1.bvh"
WALK = ROOT / "demo" / "takes" / "cmu_02_01_walk.bvh"
CHARACTER = ROOT / "mocap_addon" / "demo" / "character.glb"

KEYS = {
    *("file", "kind", "take", "format", "frames", "fps", "rate", "duration_s", "unit_m", "up", "facing", "rest_pose", "joints", "family"),
    *("roles", "missing", "doubtful", "performer", "timecode", "curves", "props", "warnings", "facts", "reference"),
}


def info(capfd, *words):
    code = cli.main(["info", *map(str, words), "--json"])
    out, err = capfd.readouterr()
    assert err == ""
    return code, [json.loads(line) for line in out.splitlines()]


def test_a_real_walk(capfd):
    code, (r,) = info(capfd, WALK)
    assert code == 0 and set(r) == KEYS
    assert (r["kind"], r["take"], r["format"], r["frames"], r["fps"], r["rate"], r["joints"]) == (
        "take",
        "cmu_02_01_walk",
        "BVH",
        343,
        120.0,
        "120",
        31,
    )
    assert r["duration_s"] == pytest.approx(342 / 120)
    assert r["unit_m"] == pytest.approx(0.05644, rel=0.15)  # 1/0.45 inch; guessed from the body
    assert r["up"] == "Y" and r["rest_pose"] == "T" and r["missing"] == []
    assert r["roles"]["hips"] == ["Hips"] and r["roles"]["leftUpperArm"] == ["lhumerus"] and r["roles"]["rightLowerLeg"] == ["rtibia"]


def test_a_z_up_loop(capfd):
    code, (r,) = info(capfd, ZOMBIE)
    assert code == 0
    assert (r["frames"], r["fps"], r["up"], r["rest_pose"], r["unit_m"]) == (31, 24.0, "Z", "T", pytest.approx(0.1, rel=0.2))


def test_overrides(capfd):
    code, (r,) = info(capfd, WALK, "--unit", "cm", "--take-fps", "29.97")
    assert code == 0 and r["unit_m"] == 0.01 and r["rate"] == "30000/1001" and r["duration_s"] == pytest.approx(342 * 1001 / 30000)


@pytest.mark.parametrize(("name", "words"), [("tpose", "A, arms"), ("walk1", "T")])
def test_rest_poses_of_makehuman(capfd, name, words):
    _code, (r,) = info(capfd, need(SHARED / "makehuman" / f"{name}.bvh"))
    assert r["rest_pose"].startswith(words)


def test_a_zero_pose_that_is_no_body(capfd):
    _code, (r,) = info(capfd, need(SHARED / "bandai_nc" / "dataset-1_run_normal_001.bvh"))
    assert r["rest_pose"].startswith("not a body")
    assert r["reference"]["how"] == "family" and r["reference"]["frame"] is None and 0.8 < r["reference"]["confidence"] <= 1.0
    assert any("Bandai-Namco motion dataset" in note for note in r["warnings"])


def test_a_rest_pose_that_is_a_body_is_the_reference(capfd):
    _code, (r,) = info(capfd, WALK)
    assert r["reference"] == {"how": "rest", "frame": None, "confidence": 1.0}


def test_as_text(capfd):
    assert cli.main(["info", str(WALK), str(CHARACTER)]) == 0
    out, err = capfd.readouterr()
    assert err == "" and "343 frames at 120 fps, 2.85 s" in out and "rest pose: T" in out
    assert "character.glb: a glTF file with 53 bones, 1 mesh, 0 animations: a character file; use it with --character" in out


def test_a_character_file(capfd):
    code, (r,) = info(capfd, CHARACTER)
    assert code == 0
    assert {k: r[k] for k in ("kind", "format", "bones", "meshes", "animations", "vrm")} == {
        **{"kind": "character", "format": "glTF", "bones": 53, "meshes": 1, "animations": [], "vrm": False}
    }


def test_one_bad_file_among_good_ones(tmp_path, capfd):
    bad = tmp_path / "läuft nicht.bvh"
    bad.write_text("HIERARCHY\nROOT hips\n{")
    code, records = info(capfd, ZOMBIE, bad, tmp_path / "missing.bvh", tmp_path, WALK)
    assert code == 1 and ["error" in r for r in records] == [False, True, True, True, False]
    assert records[1]["file"] == str(bad) and "läuft nicht.bvh" in records[1]["error"]
    assert "folder" in records[3]["error"]


def test_the_same_file_twice_is_told_once(capfd):
    code, records = info(capfd, ZOMBIE, ZOMBIE)
    assert code == 0 and len(records) == 1


def test_patterns_that_the_shell_left(tmp_path, capfd):
    for name in ("b 1.bvh", "a 走.bvh"):
        shutil.copyfile(ZOMBIE, tmp_path / name)
    shutil.copyfile(ZOMBIE, tmp_path / "[x].bvh")
    code, records = info(capfd, tmp_path / "? *.bvh", tmp_path / "[x].bvh", tmp_path / "none*.bvh")
    assert code == 1 and [r.get("take") for r in records] == ["a 走", "b 1", "[x]", None]


def _hostile(folder):
    rng = random.Random(7)
    glb = CHARACTER.read_bytes()
    walk = ZOMBIE.read_bytes()
    made = {
        "empty.bvh": b"",
        "zeros.bvh": bytes(5000),
        "noise.bvh": rng.randbytes(20000),
        "cut.bvh": walk[: len(walk) // 2],
        "binary in.bvh": walk[:3000] + rng.randbytes(500) + walk[3500:],
        "billion.bvh": walk.replace(b"Frames: 31", b"Frames: 1000000000"),
        "deep.bvh": b"HIERARCHY\nROOT a\n{\n" + b"JOINT b\n{\n" * 5000,
        "utf16.bvh": walk.decode("latin-1").encode("utf-16"),
        "empty.glb": b"",
        "head.glb": glb[:11],
        "cut.glb": glb[:3000],
        "huge.glb": b"glTF" + struct.pack("<III", 2, 0xFFFFFFFF, 0xFFFFFFFF) + b"JSON{}",
        "noise.glb": rng.randbytes(4000),
        "deep.gltf": b"[" * 200000,
        "list.gltf": b"[1, 2]",
        "wrong.gltf": b'{"asset": {}, "nodes": 5, "skins": "x", "animations": {"a": 1}, "extensions": []}',
        "loop.gltf": b'{"asset": {}, "nodes": [{"children": [0]}]}',
        "no.blend": b"BLENDE",
        "no.fbx": b"Kaydara",
        "no.vrm": b"\xff\xfe",
        "what.xyz": b"hello",
        "no extension": walk,
    }
    for name, data in made.items():
        (folder / name).write_bytes(data)
    return sorted(made)


def test_hostile_files_never_end_in_a_traceback(tmp_path):
    names = _hostile(tmp_path)
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "mocap_addon.cli", "info", *names, "--json"]
    done = subprocess.run(command, capture_output=True, cwd=tmp_path, env=env, timeout=100)
    records = [json.loads(line) for line in done.stdout.decode().splitlines()]
    assert done.returncode == 1 and b"Traceback" not in done.stdout + done.stderr
    assert {r["file"] for r in records} == set(names)
    for r in records:
        assert "error" not in r or ("\n" not in r["error"] and "program failed" not in r["error"]), r
    failed = {r["file"] for r in records if "error" in r}
    assert failed >= {n for n in names if n.split(".")[0] in ("empty", "zeros", "noise", "head", "huge", "deep", "list", "no", "what")}
    assert "no extension" not in failed  # told by its content


def test_info_never_imports_blender(tmp_path):
    (tmp_path / "bpy.py").write_text("raise SystemExit('bpy was imported')")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join((str(tmp_path), str(ROOT)))}
    command = [sys.executable, "-m", "mocap_addon.cli", "info", str(ZOMBIE), str(CHARACTER)]
    done = subprocess.run(command, capture_output=True, env=env, timeout=60)
    assert done.returncode == 0, done.stderr
