# SPDX-License-Identifier: GPL-3.0-or-later
"""A Unity clip straight to a three.js clip: the same transforms, sampled on every frame, right-handed.

For characters that came out of the file that Unity's did (its FBX, or a glTF export of it): Unity mirrors such a file in x, which is undone
here, so bones have the file's own axes again. Onto any other character a clip goes as a take.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ..motion import timeline
from ..motion.errors import MocapError
from . import threejs, unity_pose
from .gltf_nodes import NodeTree, sanitize
from .unity_clip import UnityClip

Array = NDArray[np.float64]


def to_clip(
    clip: UnityClip, *, rate: Fraction | None = None, tree: NodeTree | None = None, unit: float = 1.0
) -> tuple[threejs.Clip, list[str]]:
    """The clip, ready to be written, and what was left out.

    Parameters
    ----------
    clip : UnityClip
    rate : Fraction, optional
        Frames a second; the clip's own by default.
    tree : NodeTree, optional
        The character's nodes, for the names three's loader gives them. Without it the transforms' own names, as the loader writes them.
    unit : float
        Positions are multiplied by it (100 where the character is in centimetres).

    Raises
    ------
    MocapError
        It is a humanoid clip, moves nothing that three.js has, or names one of several nodes of the same name.
    """
    if clip.muscles:
        raise MocapError(
            f'"{clip.name}" is a humanoid clip: it moves muscles, and what they turn is in the avatar of its character, which the file '
            "does not hold; bake it onto a character in Unity (as a generic clip, FBX or glTF) and convert that."
        )
    rate = rate or clip.rate
    found = unity_pose.sample(clip, clip.times(rate))
    notes = [*clip.notes, *found.notes]
    names = _names([*found.transforms, *(path for path, _ in found.morphs)], tree, clip.name)
    tracks: list[threejs.Track] = []
    for path, one in found.transforms.items():
        if path not in names:
            notes.append(f'The character has no node "{path}"; its curves were left out.')
            continue
        node = names[path]
        if one.rotations is not None:
            tracks.append(threejs.Track(node, "quaternion", one.rotations[:, [1, 2, 3, 0]], of_root=not node))
        if one.translations is not None:
            tracks.append(threejs.Track(node, "position", one.translations * unit, 6, of_root=not node))
        if one.scales is not None and node:
            tracks.append(threejs.Track(node, "scale", one.scales, 6))
        elif one.scales is not None:
            notes.append("The scale of the animated object itself was left out.")
    for (path, name), values in found.morphs.items():
        if "]" in name or path not in names:
            notes.append(f'The blend shape "{name}" cannot be reached in three.js; its curve was left out.')
            continue
        node = names[path]
        tracks.append(threejs.Track(node, f"morphTargetInfluences[{name}]", values[:, None], 6, of_root=not node))
    if found.floats:
        notes.append(f"Curves that three.js has no place for were left out: {unity_pose.listed(list(found.floats))}.")
    data: dict[str, object] = {"loop": clip.loop}
    if clip.events:
        data["events"] = [[round(seconds - clip.start, 6), name] for seconds, name in clip.events]
    if not tracks:
        raise MocapError(f'"{clip.name}" moves nothing that three.js has a place for.')
    return threejs.clip(clip.name, timeline.uniform_times(len(found.times), rate), tracks, rate=rate, user_data=data), notes


def _names(paths: Sequence[str], tree: NodeTree | None, clip_name: str) -> Mapping[str, str]:
    """Path -> the name its node has in three.js; the animated object itself is what the mixer is made for."""
    return _own_names(paths, clip_name) if tree is None else _tree_names(paths, tree)


def _own_names(paths: Sequence[str], clip_name: str) -> dict[str, str]:
    out: dict[str, str] = {}
    owner: dict[str, str] = {}
    for path in paths:
        name = sanitize(path.rpartition("/")[2])
        if path and not name:
            raise MocapError(f'In "{clip_name}" the transform "{path}" has no name that three.js can find; rename it.')
        if owner.setdefault(name, path) != path:
            raise MocapError(
                f'In "{clip_name}" two transforms are called "{name}" ({owner[name]} and {path}); three.js would move the first twice, '
                "so give the character's glTF file."
            )
        out[path] = name
    return out


def _tree_names(paths: Sequence[str], tree: NodeTree) -> dict[str, str]:
    """The nodes whose names, upwards, agree with a path for the longest way."""
    out: dict[str, str] = {"": ""} if "" in paths else {}
    for path in paths:
        steps = path.split("/")
        best, node = 0, -1
        for n in tree.order:
            agree = 0
            for step, above in zip(reversed(steps), [n, *tree.ancestors(n)], strict=False):
                if tree.names[above] != step:
                    break
                agree += 1
            if agree > best and tree.found[n]:
                best, node = agree, n
        if node >= 0:
            out[path] = tree.loader_names[node]
    return out
