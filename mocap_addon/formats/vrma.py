# SPDX-License-Identifier: GPL-3.0-or-later
"""Takes to VRM animations (``VRMC_vrm_animation`` 1.0): humanoid rotations, the hips' way and expressions, for any VRM character.

Source: VRM Consortium, *VRMC_vrm_animation-1.0*. The file's own rest pose is the T-pose that motion is counted from. Here its bones have
identity rotations in it: with ``G`` a joint's global rotation, ``G0`` at rest and ``D`` the turn that brings a rest pose with hanging arms
to a T-pose (1 where it is one), the bone's global rotation is ``N = A G G0^-1 D^-1 A^-1``, ``A`` the turn about the vertical that makes the
character face the format's front. What lies between two humanoid bones is multiplied in. The weight of an expression is the x of a node's
place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..motion import quat
from ..motion.errors import FileError, RigError
from ..motion.skeleton import Skeleton
from ..motion.take import Take
from . import gltf_clips, gltf_nodes, node_clip
from .clip_reduce import Compact, compact
from .gltf_clips import GlbWriting
from .gltf_write import GltfFile, save
from .node_clip import Channel, NodeClip
from .node_metric import Body
from .node_pose import TO_GLTF

Array = NDArray[np.float64]
Chains = Mapping[str, tuple[int, ...]]
Expressions = Mapping[tuple[str, str], Array]
"""Kind ("preset" or "custom") and name of an expression -> its weights ``(F,)``."""

_VOWELS, _MOODS = ("aa", "ih", "ou", "ee", "oh"), ("happy", "angry", "sad", "relaxed", "surprised", "neutral")
PRESETS = (*_MOODS, *_VOWELS, "blink", "blinkLeft", "blinkRight")
"""Expressions that the format knows by name; those of the gaze are no expressions in it."""

SIDES = ("left", "right")
_CHAIN_NAMES: dict[str, tuple[str, ...]] = {
    "spine": ("spine", "chest", "upperChest"),
    "neck": ("neck",),
    "Thumb": ("ThumbMetacarpal", "ThumbProximal", "ThumbDistal"),
    **{finger: (f"{finger}Proximal", f"{finger}Intermediate", f"{finger}Distal") for finger in ("Index", "Middle", "Ring", "Little")},
}
_LIMBS = ("UpperArm", "LowerArm", "Hand", "UpperLeg", "LowerLeg", "Foot")
_SINGLE = ("hips", "head", "jaw", *(f"{side}{part}" for side in SIDES for part in (*_LIMBS, "Shoulder", "Toes")))
_NEEDED = ("hips", "spine", "head", *(f"{side}{part}" for side in SIDES for part in _LIMBS))
_IS_T_POSE = np.radians(15.0)


def write(path: str | Path, take: Take, roles: Chains, *, bound: float | None = None, expressions: Expressions | None = None) -> Compact:
    """Write a take as a ``.vrma`` file.

    Parameters
    ----------
    path : path
    take : Take
        The world's axes, metres.
    roles : mapping of role to joints
        Which joint of the take is which, see :class:`~mocap_addon.rig.roles.RoleMap`.
    bound : float, optional
        Metres: keys are left out and numbers shortened as far as that allows; weights of expressions count as metres.
    expressions : mapping of (kind, name) to (F,) array, optional
        Weights at the take's samples.

    Returns
    -------
    Compact
        What was written and its measured error.

    Raises
    ------
    RigError
        Bones that the format asks for are missing.
    FileError
        The file cannot be written.
    """
    bones = humanoid_bones(roles)
    missing = [name for name in _NEEDED if name not in bones]
    if missing:
        raise RigError(f"A VRM animation needs the bone {missing[0]}, which this character does not have; match its bones first.")
    if take.frames == 0:
        raise FileError("The take has no frames; there is nothing to write.", path)
    data, clip = _clip(take, bones)
    if expressions:
        clip = _with_expressions(data, clip, expressions)
    tree = gltf_nodes.tree(data)
    out = compact(clip, Body(tree, range(len(tree))), bound, GlbWriting())
    file = GltfFile(data, bytearray())
    gltf_clips.add_clips(file, [out])
    save(path, file.glb())
    return out


def humanoid_bones(roles: Chains) -> dict[str, int]:
    """VRM's names of bones and the joints that play them.

    Chains with more links than VRM has bones are spread over: first and last link, and what lies evenly between.
    """
    out: dict[str, int] = {}
    for role, joints in roles.items():
        side = next((s for s in ("left", "right") if role.startswith(s)), "")
        names = _CHAIN_NAMES.get(role[len(side) :])
        if role in _SINGLE and joints:
            out[role] = joints[0]
        elif names is not None and joints:
            count = min(len(names), len(joints))
            at = np.unique(np.round(np.linspace(0, len(joints) - 1, count)).astype(int))
            for name, k in zip(names, at.tolist(), strict=False):
                out[f"{side}{name}"] = joints[k]
    return out


def _clip(take: Take, bones: Mapping[str, int]) -> tuple[dict[str, Any], NodeClip]:
    skeleton = take.skeleton
    order = sorted(bones, key=lambda name: bones[name])  # a parent's joint stands before its children's
    joint_to_node = {bones[name]: k for k, name in enumerate(order)}
    parents = [next((joint_to_node[a] for a in skeleton.ancestors(bones[name]) if a in joint_to_node), -1) for name in order]
    joints = [bones[name] for name in order]
    straight, places = _t_pose(skeleton, bones)
    front = _front(skeleton, bones)
    rest = quat.mul(straight, skeleton.rest_global_rotations)
    turns = quat.mul(take.global_rotations[:, joints], quat.inv(rest[joints]))
    turns = quat.mul(quat.mul(front, turns), quat.inv(front))
    turns = quat.mul(quat.mul(TO_GLTF, turns), quat.inv(TO_GLTF))
    at = quat.rotate(TO_GLTF, quat.rotate(front, places[joints]))
    hips = quat.rotate(TO_GLTF, quat.rotate(front, take.global_positions[:, bones["hips"]]))
    times = take.times - take.times[0]
    nodes: list[dict[str, Any]] = []
    channels: list[Channel] = []
    for k, (name, p) in enumerate(zip(order, parents, strict=True)):
        offset = at[k] - (at[p] if p >= 0 else 0.0)
        nodes.append({"name": name, "translation": gltf_clips.singles(offset)})
        if p >= 0:
            nodes[p].setdefault("children", []).append(k)
        local = turns[:, k] if p < 0 else quat.mul(quat.inv(turns[:, p]), turns[:, k])
        channels.append(node_clip.channel(k, "rotation", times, local))
    channels.append(node_clip.channel(order.index("hips"), "translation", times, hips))
    data: dict[str, Any] = {
        "asset": {"version": "2.0", "generator": "Mocap for Blender"},
        "scene": 0,
        "scenes": [{"nodes": [k for k, p in enumerate(parents) if p < 0]}],
        "nodes": nodes,
        "extensionsUsed": ["VRMC_vrm_animation"],
        "extensions": {
            "VRMC_vrm_animation": {"specVersion": "1.0", "humanoid": {"humanBones": {name: {"node": k} for k, name in enumerate(order)}}}
        },
    }
    return data, NodeClip(take.name, times, tuple(channels), take.rate)


def _with_expressions(data: dict[str, Any], clip: NodeClip, expressions: Expressions) -> NodeClip:
    """A node for each expression, and its channel."""
    channels = list(clip.channels)
    groups: dict[str, dict[str, Any]] = {}
    for (kind, name), weights in expressions.items():
        node = len(data["nodes"])
        data["nodes"].append({"name": f"expression {name}"})
        data["scenes"][0]["nodes"].append(node)
        groups.setdefault(kind, {})[name] = {"node": node}
        places = np.zeros((len(weights), 3))
        places[:, 0] = weights
        channels.append(node_clip.channel(node, "translation", clip.times, places))
    data["extensions"]["VRMC_vrm_animation"]["expressions"] = groups
    return replace(clip, channels=tuple(channels))


def _t_pose(skeleton: Skeleton, bones: Mapping[str, int]) -> tuple[Array, Array]:
    """(J, 4): turns in the world from the rest pose to a T-pose; (J, 3): the joints' places in that."""
    places = skeleton.rest_global_positions
    out = quat.identity(len(skeleton))
    left = places[bones["leftUpperArm"]] - places[bones["rightUpperArm"]]
    left = left * (1.0, 1.0, 0.0)
    left = left / max(float(np.linalg.norm(left)), 1e-12)
    for side, across in (("left", left), ("right", -left)):
        upper, lower, hand = (bones[f"{side}{part}"] for part in ("UpperArm", "LowerArm", "Hand"))
        first, second = places[lower] - places[upper], places[hand] - places[lower]
        if max(_angle(first, across), _angle(second, across)) < _IS_T_POSE:
            continue
        turn = quat.between(first, across)
        out[upper] = turn
        out[lower] = quat.mul(quat.between(quat.rotate(turn, second), across), turn)
    for j, p in enumerate(skeleton.parents.tolist()):
        if p >= 0 and float(np.abs(out[j] - quat.IDENTITY).max()) == 0.0:
            out[j] = out[p]  # what hangs on a straightened bone goes with it
    moved = places.copy()
    for j, p in enumerate(skeleton.parents.tolist()):
        if p >= 0:
            moved[j] = moved[p] + quat.rotate(out[p], places[j] - places[p])
    return out, moved


def _front(skeleton: Skeleton, bones: Mapping[str, int]) -> Array:
    """(4,): the turn about the vertical that brings the character's left to +X."""
    places = skeleton.rest_global_positions
    left = places[bones["leftUpperArm"]] - places[bones["rightUpperArm"]]
    angle = -float(np.arctan2(left[1], left[0]))
    return quat.from_axis_angle(np.array([0.0, 0.0, 1.0]), 0.0 if abs(angle) < np.radians(3.0) else angle)


def _angle(a: Array, b: Array) -> float:
    return float(np.arctan2(np.linalg.norm(np.cross(a, b)), float(a @ b)))
