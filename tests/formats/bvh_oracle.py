# SPDX-License-Identifier: GPL-3.0-or-later
"""A second BVH reader that shares nothing with the product: line by line, number by number, rotations by SciPy.

It knows only well-formed files. Positions are in the file's own axes and units.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation


@dataclass
class Node:
    name: str
    parent: int
    offset: list[float] = field(default_factory=list)
    channels: list[str] = field(default_factory=list)
    ends: list[list[float]] = field(default_factory=list)


@dataclass
class Bvh:
    nodes: list[Node]
    declared: int
    frame_time: float
    rows: list[list[float]]


def read(path: Path) -> Bvh:
    """Parse a well-formed file."""
    lines = path.read_text(encoding="utf-8").splitlines()
    nodes: list[Node] = []
    open_nodes: list[int] = []
    at = 0
    while lines[at].strip() != "MOTION":
        words = lines[at].split()
        at += 1
        if not words or words[0] == "HIERARCHY":
            continue
        if words[0] in ("ROOT", "JOINT"):
            nodes.append(Node(" ".join(words[1:]), open_nodes[-1] if open_nodes else -1))
            open_nodes.append(len(nodes) - 1)
        elif words[:2] == ["End", "Site"]:
            open_nodes.append(-1)
        elif words[0] == "OFFSET":
            values = [float(w) for w in words[1:4]]
            if open_nodes[-1] == -1:
                nodes[open_nodes[-2]].ends.append(values)
            else:
                nodes[open_nodes[-1]].offset = values
        elif words[0] == "CHANNELS":
            nodes[open_nodes[-1]].channels = words[2:]
            assert len(words) - 2 == int(words[1])
        elif words[0] == "}":
            open_nodes.pop()
    declared = int(lines[at + 1].split()[-1])
    frame_time = float(lines[at + 2].split()[-1])
    rows = [[float(w) for w in line.split()] for line in lines[at + 3 :] if line.strip()]
    return Bvh(nodes, declared, frame_time, rows)


def pose(bvh: Bvh, row: int, relative: bool = False) -> tuple[np.ndarray, list[Rotation]]:
    """Global positions ``(J, 3)`` and rotations of one row; ``relative``: position channels are added to the offset."""
    values = iter(bvh.rows[row])
    places: list[np.ndarray] = []
    turns: list[Rotation] = []
    for node in bvh.nodes:
        place = np.array(node.offset)
        turn = Rotation.identity()
        for channel in node.channels:
            value = next(values)
            axis = "XYZ".index(channel[0])
            if channel.endswith("position"):
                place[axis] = node.offset[axis] + value if relative and node.parent >= 0 else value
            else:
                turn = turn * Rotation.from_euler(channel[0], value, degrees=True)
        if node.parent < 0:
            places.append(place)
            turns.append(turn)
        else:
            places.append(places[node.parent] + turns[node.parent].apply(place))
            turns.append(turns[node.parent] * turn)
    return np.array(places), turns
