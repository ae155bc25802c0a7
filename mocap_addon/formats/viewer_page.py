# SPDX-License-Identifier: GPL-3.0-or-later
"""Results as a page: one HTML file that shows a character and its clips in any browser, without a server or a network.

The page is ``viewer/viewer.html``, built from ``viewer-src``; what it shows is written into it as JSON, glTF files in base64.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..motion import quat
from ..motion.errors import FileError, MocapError
from ..motion.take import Take
from . import clip_reduce, gltf_clips, gltf_nodes, gltf_write, node_clip
from .gltf_clips import GlbWriting
from .node_clip import NodeClip
from .node_metric import Body
from .node_pose import TO_GLTF

Array = NDArray[np.float64]
Feet = Mapping[str, Sequence[str]]
"""``left`` and ``right`` -> the names of ankle and toes in the glTF file, as three's loader has them."""

PAGE = Path(__file__).resolve().parent.parent / "viewer" / "viewer.html"
SUFFIX = ".html"
_PLACE = '<script type="application/json" id="mocap-data"></script>'
_MOST_RATE = Fraction(60)  # of what is only looked at
_BOUND = 5e-4


@dataclass(frozen=True, eq=False)
class Before:
    """What a clip was made of: a skeleton with that motion as a glTF file (see :func:`skeleton_of`)."""

    name: str
    glb: bytes
    feet: Feet | None = None


@dataclass(frozen=True, eq=False)
class Shown:
    """A clip on the page, by the name it has in the character's file.

    Parameters
    ----------
    name : str
    rate : Fraction or None
    before : Before or None
    contacts : mapping of "left" and "right" to (start, end) seconds
        Empty: found by the page.
    error : float or None
        Metres.
    notes : sequence of str
    """

    name: str
    rate: Fraction | None = None
    before: Before | None = None
    contacts: Mapping[str, Sequence[tuple[float, float]]] = field(default_factory=dict[str, Sequence[tuple[float, float]]])
    error: float | None = None
    notes: Sequence[str] = ()


def write(path: str | Path, glb: bytes, clips: Sequence[Shown], *, title: str, character: str, feet: Feet | None = None) -> int:
    """Write the page; its size in bytes.

    Parameters
    ----------
    path : path
    glb : bytes
        The character with its clips.
    clips : sequence of Shown
        What is known of them; in any order.
    title, character : str
    feet : mapping, optional
        Names of the feet's nodes; by default the page goes by names.

    Raises
    ------
    FileError
        The page cannot be written, or this copy of the add-on has none.
    """
    befores: list[Before] = []
    for clip in clips:
        if clip.before is not None and not any(one is clip.before for one in befores):
            befores.append(clip.before)
    data = {
        "version": 1,
        "title": title,
        "character": {"name": character, "glb": _text(glb)},
        "clips": [_clip(clip, befores) for clip in clips],
        "sources": [{"name": one.name, "glb": _text(one.glb), "feet": _feet(one.feet)} for one in befores],
        "feet": _feet(feet),
    }
    try:
        page = PAGE.read_text(encoding="utf-8")
    except OSError as error:
        raise FileError(f"The viewer of the add-on cannot be read ({error.strerror}); install the add-on again.", PAGE) from None
    if page.count(_PLACE) != 1:
        raise FileError("The viewer of the add-on is damaged; install the add-on again.", PAGE)
    # inside a script element nothing but its own end has a meaning
    text = json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return gltf_write.save(path, page.replace(_PLACE, _PLACE.replace("></", f">{text}</")).encode("utf-8"))


def skeleton_of(take: Take) -> bytes:
    """A take as a glTF file of bare nodes, Y up, at most 60 frames a second and 0.5 mm off: to be looked at."""
    if take.frames == 0:
        raise MocapError(f'The take "{take.name}" has no frames; there is nothing to show.')
    if take.frames > 1 and (take.rate is None or take.rate > _MOST_RATE):
        take = take.resampled(_MOST_RATE)
    skeleton = take.skeleton
    nodes: list[dict[str, object]] = []
    children: list[list[int]] = [list(c) for c in skeleton.children]
    times: Array = take.times - take.times[0]
    channels: list[node_clip.Channel] = []
    for j, name in enumerate(skeleton.names):
        q, t = take.local_rotations[:, j], take.local_translations[:, j]
        if skeleton.parents[j] < 0:
            q, t = quat.mul(TO_GLTF, q), quat.rotate(TO_GLTF, t)
        node: dict[str, object] = {"name": name, "translation": t[0].tolist(), "rotation": q[0, [1, 2, 3, 0]].tolist()}
        if children[j]:
            node["children"] = children[j]
        nodes.append(node)
        channels.append(node_clip.channel(j, "rotation", times, q))
        if len(t) > 1 and float(np.ptp(t, axis=0).max()) > 1e-6:
            channels.append(node_clip.channel(j, "translation", times, t))
    tree = gltf_nodes.tree({"scenes": [{"nodes": list(skeleton.roots)}], "nodes": nodes})
    joints = range(len(skeleton))
    clip = NodeClip(take.name, times, tuple(channels), take.rate)
    compact = clip_reduce.compact(clip, Body(tree, joints), _BOUND, GlbWriting(), thin=False)
    return gltf_clips.skeleton(tree, [compact], joints).glb()


def _clip(clip: Shown, befores: list[Before]) -> dict[str, object]:
    out: dict[str, object] = {"name": clip.name, "notes": list(clip.notes)}
    if clip.rate is not None:
        out["rate"] = float(clip.rate)
    if clip.before is not None:
        out["before"] = next(i for i, one in enumerate(befores) if one is clip.before)
    if clip.contacts:
        out["contacts"] = {side: [[round(a, 4), round(b, 4)] for a, b in spans] for side, spans in clip.contacts.items()}
    if clip.error is not None:
        out["error_mm"] = round(1000.0 * clip.error, 4)
    return out


def _feet(feet: Feet | None) -> dict[str, list[str]] | None:
    return None if not feet else {side: list(names) for side, names in feet.items()}


def _text(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")
