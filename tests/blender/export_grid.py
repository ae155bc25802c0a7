# SPDX-License-Identifier: GPL-3.0-or-later
"""One action in every format that three.js plays, where Node and Chromium put its joints, and how far that is from Blender."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import bpy
import numpy as np

from mocap_addon.blender import export, node_clips
from mocap_addon.blender.export import ExportOptions
from tests import browser
from tests.blender.export_helpers import C, halfway, shown
from tests.node import HERE, run
from tests.paths import ROOT

KINDS = ("JSON", "GLB", "map")
Pose = Mapping[str, np.ndarray]
"""Bone in three's name -> its head in glTF's axes."""


@dataclass(frozen=True)
class Case:
    """An action as one kind of file: ``times`` (seconds), where Blender (or the slerp of its neighbours) has the bones at them, and how
    long the clip should be."""

    kind: str
    label: str
    folder: Path
    character: str
    file: str
    clip: str
    times: Sequence[float]
    meant: Sequence[Pose]
    duration: float
    keys: int
    """So many of the times are keys; the others lie between."""


@dataclass(frozen=True)
class Found:
    """Metres and seconds."""

    keys: float
    between: float
    duration: float


def cases(
    obj: bpy.types.Object,
    action: str,
    folder: Path,
    original: Path,
    rate: float,
    count: int,
    *,
    bound: float | None = None,
    looks: int = 10,
    label: str = "",
    kinds: Sequence[str] = KINDS,
) -> list[Case]:
    """Export an action that begins on frame 1 and has ``count`` keys, one a frame; keys and the middles after them are looked at."""
    picked = np.unique(np.linspace(0, count - 2, looks).astype(int))
    needed = sorted({*picked.tolist(), *(picked + 1).tolist()})
    poses = dict(zip(needed, shown(obj, [1 + f for f in needed]), strict=True))
    meant = [*(poses[f] for f in picked), *(halfway(obj, poses[f], poses[f + 1]) for f in picked)]
    times = [float((f + share) / rate) for share in (0.0, 0.5) for f in picked]
    return written(
        obj, action, folder, original, times, meant, (count - 1) / rate, len(picked), ExportOptions(bound=bound), label=label, kinds=kinds
    )


def written(
    obj: bpy.types.Object,
    action: str,
    folder: Path,
    original: Path,
    times: Sequence[float],
    poses: Sequence[Mapping[str, np.ndarray]],
    duration: float,
    keys: int,
    options: ExportOptions,
    *,
    label: str = "",
    kinds: Sequence[str] = KINDS,
) -> list[Case]:
    """The files of an action, with what is meant at the times."""
    folder.mkdir(parents=True, exist_ok=True)
    formats = {"JSON": ("threejs", "glb"), "GLB": ("glb",), "map": ("map",)}
    wanted = tuple(dict.fromkeys(name for kind in kinds for name in formats[kind]))
    # the map moves the character's original file: in a file of one export both are the same to the byte but for the clips
    report = export.export_actions(obj, [action], folder, replace(options, formats=wanted, manifest=False), character=original)
    (folder / original.name).write_bytes(original.read_bytes())
    files = {one.path.name.partition(".")[2]: one.path.name for one in report.files}
    on = node_clips.stage(obj, original)
    names = {bone: on.tree.loader_names[n] for bone, n in zip(on.target.skeleton.names, on.nodes.tolist(), strict=True) if n >= 0}
    meant = [{names[bone]: C @ m[:3, 3] for bone, m in pose.items() if bone in names} for pose in poses]
    glb = next((name for name in files.values() if name.endswith(".glb")), original.name)
    file_of = {"JSON": files.get("clip.json", ""), "GLB": glb, "map": files.get("map.json", "")}
    return [
        Case(kind, label, folder, original.name if kind == "map" else glb, file_of[kind], action, times, meant, duration, keys)
        for kind in kinds
    ]


def in_node(some: Sequence[Case]) -> list[Found]:
    """three.js in Node: animation mixers, and the player of maps on the main thread."""
    clips = [one for one in some if one.kind != "map"]
    maps = [one for one in some if one.kind == "map"]
    asked = [
        {"character": str(one.folder / one.character), "times": list(one.times), "clip": one.clip}
        | ({"clips": str(one.folder / one.file)} if one.kind == "JSON" else {})
        for one in clips
    ]
    played = run("play_clips.mjs", asked) if asked else []
    for one in played:
        assert one["playing"] == [] and one["loading"] == [] and one["valid"]
        assert -1 not in one["bound"].values(), one["bound"]
    by_clip = [
        _found(one, [{out["three"][int(i)]: at[:3] for i, at in frame["places"].items()} for frame in out["frames"]], out["duration"])
        for one, out in zip(clips, played, strict=True)
    ]
    asked = [{"map": str(one.folder / one.file), "clip": one.clip, "times": list(one.times)} for one in maps]
    rows = run("play_map.mjs", asked) if asked else []
    by_map = [_found(one, out["frames"], out["duration"]) for one, out in zip(maps, rows, strict=True)]
    order = {id(one): found for one, found in zip([*clips, *maps], [*by_clip, *by_map], strict=True)}
    return [order[id(one)] for one in some]


def in_chromium(some: Sequence[Case], folder: Path, timeout: float = 300.0) -> list[Found]:
    """A page in Chromium; maps are played by the vertex shader. All cases' files must lie below ``folder``."""

    def address(one: Case, name: str) -> str:
        return f"/case/{(one.folder / name).relative_to(folder).as_posix()}"

    asked = []
    for one in some:
        key = {"JSON": "clips", "map": "map"}.get(one.kind)
        more = {key: address(one, one.file)} if key else {}
        asked.append({"character": address(one, one.character), "clip": one.clip, "times": list(one.times), **more})
    (folder / "request.json").write_text(json.dumps(asked))
    roots = {"page": ROOT / "tests" / "browser", "three": HERE / "node_modules" / "three"}
    found = browser.ask("page/grid.html", {**roots, "viewer": ROOT / "mocap_addon" / "viewer", "case": folder}, timeout)
    assert "error" not in found, found
    assert found["said"] == []
    return [_found(one, out["frames"], out["duration"]) for one, out in zip(some, found["cases"], strict=True)]


def _found(one: Case, frames: Sequence[Mapping[str, Sequence[float]]], duration: float) -> Found:
    apart = []
    for meant, got in zip(one.meant, frames, strict=True):
        both = sorted(meant.keys() & got.keys())
        # a map holds what moves the skin; a clip's character holds all bones
        assert len(both) >= (0.6 if one.kind == "map" else 1.0) * len(meant), f"{one.kind}: {len(both)} of {len(meant)} bones"
        apart.append(max(float(np.linalg.norm(np.array(got[name]) - meant[name])) for name in both))
    return Found(max(apart[: one.keys], default=0.0), max(apart[one.keys :], default=0.0), abs(duration - one.duration))
