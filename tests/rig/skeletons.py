# SPDX-License-Identifier: GPL-3.0-or-later
"""Skeletons for tests, read by code of the tests' own: BVH hierarchies, glTF nodes, MVNX segments, and rigs written as indented text."""

from __future__ import annotations

import json
import re
import struct
from pathlib import Path

import numpy as np

from mocap_addon.motion.skeleton import Skeleton

Y_UP = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]])  # (x, y, z) of a Y-up file -> Z up, facing -Y


def load(path: Path) -> Skeleton:
    """The rest skeleton of a file, told by its ending."""
    return {".bvh": bvh, ".mvnx": mvnx}.get(path.suffix, gltf)(path)


def bvh(path: Path) -> Skeleton:
    """Names, hierarchy, offsets and end sites; nothing of the motion. Offsets are taken as they are (no axis is turned)."""
    names: list[str] = []
    parents: list[int] = []
    offsets: list[list[float]] = []
    ends: list[list[float]] = []
    stack: list[int] = []
    pending = -1
    for line in path.read_text(encoding="utf-8-sig", errors="replace").splitlines():
        fields = line.split()
        if not fields:
            continue
        if fields[0] == "MOTION":
            break
        if fields[0] in ("ROOT", "JOINT"):
            names.append(line.strip().split(None, 1)[1].strip())
            parents.append(stack[-1] if stack else -1)
            offsets.append([0.0] * 3)
            ends.append([np.nan] * 3)
            pending = len(names) - 1
        elif fields[0] == "End":
            pending = -1
        elif fields[0] == "{":
            stack.append(pending)
        elif fields[0] == "}":
            stack.pop()
        elif fields[0] == "OFFSET":
            value = [0.01 * float(f) for f in fields[1:4]]
            if stack[-1] >= 0:
                offsets[stack[-1]] = value
            else:
                ends[stack[-2]] = value
    return Skeleton(tuple(names), np.array(parents), np.array(offsets), ends=np.array(ends))


def gltf_json(path: Path) -> dict:
    """The JSON of a .gltf, .glb, .vrm or .vrma file."""
    data = path.read_bytes()
    if data[:4] != b"glTF":
        return json.loads(data)
    return json.loads(data[20 : 20 + struct.unpack("<I", data[12:16])[0]])


def gltf(path: Path) -> Skeleton:
    """The skin's joints (VRMA: the humanoid's nodes) at their places in the world, Z up, with axes of the world."""
    data = gltf_json(path)
    nodes = data["nodes"]
    above = {child: i for i, node in enumerate(nodes) for child in node.get("children", [])}
    joints = {j for skin in data.get("skins", []) for j in skin["joints"]}
    if not joints:
        joints = {bone["node"] for bone in data["extensions"]["VRMC_vrm_animation"]["humanoid"]["humanBones"].values()}
    world: dict[int, np.ndarray] = {}

    def matrix(i: int) -> np.ndarray:
        if i not in world:
            node = nodes[i]
            x, y, z, w = node.get("rotation", (0.0, 0.0, 0.0, 1.0))
            own = np.eye(4)
            own[:3, :3] = np.array(
                [
                    [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
                    [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
                    [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
                ]
            ) * np.array(node.get("scale", (1.0, 1.0, 1.0)))
            own[:3, 3] = node.get("translation", (0.0, 0.0, 0.0))
            world[i] = matrix(above[i]) @ own if i in above else own
        return world[i]

    order: list[int] = []

    def walk(i: int) -> None:
        if i in joints:
            order.append(i)
        for child in nodes[i].get("children", []):
            walk(child)

    for i in range(len(nodes)):
        if i not in above:
            walk(i)
    index = {node: k for k, node in enumerate(order)}
    parents = []
    for node in order:
        p = above.get(node)
        while p is not None and p not in index:
            p = above.get(p)
        parents.append(-1 if p is None else index[p])
    return placed([nodes[i]["name"] for i in order], parents, np.array([Y_UP @ matrix(i)[:3, 3] for i in order]))


MVN_PARENTS = {"L5": "Pelvis", "L3": "L5", "T12": "L3", "T8": "T12", "Neck": "T8", "Head": "Neck"} | {
    side + part: above if above in ("T8", "Pelvis") else side + above
    for side in ("Left", "Right")
    for part, above in (
        ("Shoulder", "T8"),
        ("UpperArm", "Shoulder"),
        ("ForeArm", "UpperArm"),
        ("Hand", "ForeArm"),
        ("UpperLeg", "Pelvis"),
        ("LowerLeg", "UpperLeg"),
        ("Foot", "LowerLeg"),
        ("Toe", "Foot"),
    )
}


def mvnx(path: Path) -> Skeleton:
    """The segments with their places in the T-pose frame."""
    text = path.read_text(encoding="utf-8")
    names = re.findall(r'<segment label="([^"]*)"', text)
    frame = text[re.search(r'<frame[^>]*type="tpose"', text).start() :]
    places = np.array(re.search(r"<position>([^<]*)</position>", frame).group(1).split(), dtype=float).reshape(-1, 3)
    return placed(names, [names.index(MVN_PARENTS[n]) if n in MVN_PARENTS else -1 for n in names], places)


def placed(names: list[str], parents: list[int], places: np.ndarray) -> Skeleton:
    """A skeleton from places in the world."""
    above = np.array(parents)
    offsets = places - np.where(above[:, None] >= 0, places[above], 0.0)
    return Skeleton(tuple(names), above, offsets)


def written(text: str, step: tuple[float, float, float] = (0.1, 0.0, 0.0)) -> tuple[Skeleton, dict[str, tuple[str, ...]]]:
    """A rig written as indented lines ``name`` or ``name = role`` -> skeleton (every bone ``step`` long: a pose that says nothing), truth.

    A line of a left bone that ends in ``*`` stands for the right one too, with everything below it.
    """
    rows = [
        (len(line) - len(line.lstrip()), *(part.strip() for part in line.partition(" = ")[::2]))
        for line in text.splitlines()
        if line.strip()
    ]
    above = [next((i for i in range(k - 1, -1, -1) if rows[i][0] < row[0]), -1) for k, row in enumerate(rows)]
    names: list[str] = []
    parents: list[int] = []
    truth: dict[str, tuple[str, ...]] = {}

    def put(k: int, parent: int, mirror: bool) -> None:
        name, role = rows[k][1].removesuffix("*"), rows[k][2]
        if mirror:
            name, role = other_side(name), role.replace("left", "right")
        names.append(name)
        parents.append(parent)
        me = len(names) - 1
        if role:
            truth[role] = (*truth.get(role, ()), name)
        put_all(k, me, mirror)

    def put_all(under: int, parent: int, mirror: bool) -> None:
        for k, row in enumerate(rows):
            if above[k] == under:
                put(k, parent, mirror)
                if row[1].endswith("*"):
                    put(k, parent, True)

    put_all(-1, -1, False)
    return Skeleton(tuple(names), np.array(parents), np.tile(step, (len(names), 1))), truth


_SIDES = (
    ("_L_", "_R_"),
    ("Left", "Right"),
    ("left", "right"),
    ("左", "右"),
    (".L", ".R"),
    ("_L", "_R"),
    ("_l", "_r"),
    (".l", ".r"),
    (" L ", " R "),
    ("L_", "R_"),
    ("l_", "r_"),
)


def other_side(name: str) -> str:
    """The right bone's name, by the spelling of the left one."""
    for left, right in _SIDES:
        if left in name:
            return name.replace(left, right)
    if name.startswith("l"):
        return "r" + name[1:]
    if name.startswith("L"):
        return "R" + name[1:]
    raise AssertionError(f"{name} has no side")
