# SPDX-License-Identifier: GPL-3.0-or-later
"""The page for the browser: what is in the file, and what Chromium makes of it from ``file://``."""

from __future__ import annotations

import base64
import html
import json
import re
import shutil
import subprocess
import tempfile
from fractions import Fraction

import numpy as np
import pytest

from mocap_addon import formats
from mocap_addon.formats import gltf_clips, viewer_page
from mocap_addon.formats.clip_reduce import compact
from mocap_addon.formats.gltf_clips import GlbWriting
from mocap_addon.formats.node_metric import Body
from mocap_addon.formats.viewer_page import Before, Shown
from mocap_addon.motion.errors import FileError, MocapError
from tests import browser, node
from tests.paths import ROOT, SHARED, need

from .test_transform_map import CHARACTER, character, made_up

DATA = re.compile(r'<script type="application/json" id="mocap-data">(.*?)</script>', re.S)


def page(folder, **more):
    tree, joints = character()
    clips = [made_up(tree, joints, "walk </script> & <b>run</b>", 31, 1, wide=0.3), made_up(tree, joints, "wave", 16, 2)]
    body = Body(tree, joints)
    glb = gltf_clips.character(CHARACTER, [compact(clip, body, 1e-4, GlbWriting()) for clip in clips]).glb()
    (take,) = formats.read(need(SHARED / "cmu" / "asf_02_01_walk.bvh"))
    before = Before("recorded", viewer_page.skeleton_of(take))
    shown = [
        Shown(clips[0].name, Fraction(30), before, error=2.5e-5, notes=("A note.",)),
        Shown("wave", Fraction(30), contacts={"left": [(0.1, 0.3)]}),
    ]
    path = folder / "page.html"
    size = viewer_page.write(
        path, glb, shown, title="Hero", character="hero", feet={"left": ["foot_l", "ball_l"], "right": ["foot_r", "ball_r"]}, **more
    )
    assert size == path.stat().st_size
    return path, glb


def test_the_data_is_in_the_page_and_cannot_break_out(tmp_path):
    path, glb = page(tmp_path)
    found = DATA.findall(path.read_text(encoding="utf-8"))
    data = json.loads(found[0])
    assert len(found) == 1 and data["clips"][0]["name"] == "walk </script> & <b>run</b>"
    assert base64.b64decode(data["character"]["glb"]) == glb and data["clips"][0]["error_mm"] == 0.025
    assert (
        data["clips"][0]["before"] == 0
        and data["sources"][0]["name"] == "recorded"
        and data["clips"][1]["contacts"] == {"left": [[0.1, 0.3]]}
    )
    assert not re.search(r'(src|href)="http', path.read_text(encoding="utf-8"))


def test_the_page_is_small_and_says_whose_it_is():
    text = viewer_page.PAGE.read_text(encoding="utf-8")
    assert len(text.encode()) < 1_500_000 and "three.js authors" in text and "GPL-3.0-or-later" in text
    licences = (viewer_page.PAGE.parent / "LICENSES.md").read_text()
    assert "MIT License" in licences and "three.js" in licences


def test_what_is_shown_of_a_take_is_that_take(tmp_path):
    (take,) = formats.read(need(SHARED / "cmu" / "asf_02_01_walk.bvh"))
    path = tmp_path / "take.glb"
    path.write_bytes(viewer_page.skeleton_of(take))
    (back,) = formats.read(path)
    at = np.arange(0, 340, 20)
    places = {name: back.global_positions[:, j] for j, name in enumerate(back.skeleton.names)}
    for j, name in enumerate(take.skeleton.names):
        if name in places:  # 120 frames a second were halved
            np.testing.assert_allclose(places[name][at // 2], take.global_positions[at, j], atol=6e-4)
    with pytest.raises(MocapError, match="no frames"):
        viewer_page.skeleton_of(take.block(0, 0))


def test_a_page_that_cannot_be_written_leaves_nothing(tmp_path, monkeypatch):
    with pytest.raises(FileError):
        page(tmp_path / "missing")
    monkeypatch.setattr(viewer_page, "PAGE", tmp_path / "none.html")
    with pytest.raises(FileError, match="viewer"):
        page(tmp_path)
    assert not list(tmp_path.iterdir())


DRIVER = """
<script>
window.said = [];
for (const kind of ["error", "warn"]) {
  const own = console[kind];
  console[kind] = (...words) => (said.push(kind + ": " + words.join(" ")), own.apply(console, words));
}
addEventListener("error", (e) => said.push("uncaught: " + e.message));
addEventListener("unhandledrejection", (e) => said.push("unhandled: " + e.reason));
const key = (name) => dispatchEvent(new KeyboardEvent("keydown", { key: name }));
const all = (what) => [...document.querySelectorAll(what)];
addEventListener("load", async () => {
  const out = {};
  try {
    const v = mocapViewer;
    await v.ready;
    const hand = () => v.actor.joints.find((j) => j.name === "hand_l").matrixWorld.elements.slice(12, 15).map((x) => x.toFixed(4));
    out.names = all(".clip .name").map((e) => e.textContent);
    out.title = document.title;
    v.play(false);
    v.seek(0);
    out.at0 = hand();
    v.seek(0.5);
    out.at5 = hand();
    out.beforeShown = v.source.group.visible;
    out.beforeX = v.source.group.position.x;
    out.afterX = v.actor.group.position.x;
    out.tags = all(".tag").map((e) => !e.hidden);
    out.contacts = v.source.study(0).feet.left.contacts.length; // of the recorded walk
    out.feet = Object.keys(v.found.feet);
    out.top = v.plot.top;
    all('[data-key="off"]')[0].click();
    out.off = v.source.group.visible;
    all('[data-key="over"]')[0].click();
    out.over = [v.source.group.visible, v.actor.group.position.x];
    all(".clip")[1].click();
    out.fading = v.from && v.from.clip;
    out.known = v.found.feet.left.contacts;
    out.compareHidden = v.el.compareSection.hidden;
    v.play(true);
    for (let i = 0; i < 8; i++) v._tick(0.05);
    out.faded = v.from === null;
    out.moved = v.state.time > 0;
    key(" ");
    out.paused = !v.state.playing;
    key("m");
    out.meshHidden = v.actor.meshes.every((m) => !m.visible) && v.actor.bones.visible;
    key("1");
    out.first = v.state.clip;
    await v.open([new File(["{}"], "x.json")]);
    out.toast = all(".toast").length === 1;
    out.drawn = v.stage.renderer.info.render.calls > 0;
    out.wide = document.documentElement.scrollWidth <= innerWidth;
  } catch (error) {
    out.failed = String(error.stack);
  }
  const found = document.createElement("pre");
  found.id = "found";
  found.textContent = JSON.stringify({ ...out, said });
  document.body.append(found);
});
</script>
"""


@pytest.mark.parametrize("size", ["1280,800", pytest.param("500,844", marks=pytest.mark.thorough)])
def test_chromium_plays_it_from_a_file(tmp_path, size):
    program = browser.browser()
    path, _ = page(tmp_path)
    path.write_text(path.read_text(encoding="utf-8").replace("<body>", "<body>" + DRIVER), encoding="utf-8")
    with tempfile.TemporaryDirectory(prefix="mocap-browser-", ignore_cleanup_errors=True) as profile:
        flags = [*browser.FLAGS, f"--user-data-dir={profile}", "--enable-logging=stderr", f"--window-size={size}"]
        done = subprocess.run(
            [program, *flags, "--virtual-time-budget=20000", "--dump-dom", path.as_uri()], capture_output=True, timeout=120, check=False
        )
    text = done.stdout.decode("utf-8", "replace")
    found = re.search(r'<pre id="found">(.*?)</pre>', text, re.S)
    assert found, done.stderr.decode("utf-8", "replace")[-2000:]
    out = json.loads(html.unescape(found[1]))
    assert "failed" not in out, out["failed"]
    assert out["said"] == []  # no errors, no warnings
    assert out["names"] == ["walk </script> & <b>run</b>", "wave"] and out["title"] == "Hero \u2013 Mocap"
    assert out["at0"] != out["at5"] and out["drawn"] and out["wide"]
    assert out["beforeShown"] and out["beforeX"] < 0 < out["afterX"] and out["tags"] == [True, True]
    assert out["off"] is False and out["over"] == [True, 0]
    assert out["contacts"] > 0 and sorted(out["feet"]) == ["left", "right"] and out["top"] > 0
    assert out["fading"] == 0 and out["faded"] and out["moved"] and out["known"] == [[0.1, 0.3]] and out["compareHidden"]
    assert out["paused"] and out["meshHidden"] and out["first"] == 0 and out["toast"]


@pytest.mark.thorough
def test_the_recipe_makes_the_page_that_is_shipped(tmp_path):
    source = ROOT / "viewer-src"
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        pytest.skip("npm is not installed, so the viewer cannot be built")
    node._ready()
    copied = tmp_path / "viewer-src"
    shutil.copytree(source, copied, ignore=shutil.ignore_patterns("node_modules"))
    if (source / "node_modules").is_dir():
        (copied / "node_modules").symlink_to(source / "node_modules")
    elif subprocess.run([npm, "ci", "--no-audit", "--no-fund"], cwd=copied, capture_output=True, timeout=300, check=False).returncode:
        pytest.skip("the viewer's packages could not be fetched by npm (is there a network?)")
    subprocess.run(["node", "build.mjs", str(tmp_path / "viewer.html")], cwd=copied, check=True, capture_output=True, timeout=120)
    assert (tmp_path / "viewer.html").read_bytes() == viewer_page.PAGE.read_bytes()
