# SPDX-License-Identifier: GPL-3.0-or-later
"""The node tree of a glTF file (``.glb``, ``.gltf``, ``.vrm``), and the names three.js gives its nodes.

A clip finds a node by the name that three's ``GLTFLoader`` made of the name in the file: characters of its track grammar are removed, and
a name that was used before gets ``_1``, ``_2``. One counter serves scenes, nodes, cameras and lights, so that the order in which the loader
meets them decides. :func:`loader_names` repeats that order (three r187), and :func:`found_by_name` says which nodes a track really reaches.
"""

from __future__ import annotations

import json
import re
import struct
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ..motion import quat
from ..motion.errors import FileError

Array = NDArray[np.float64]
Json = Mapping[str, Any]

# What JavaScript's \s matches; Python's \s differs in U+FEFF, U+0085 and U+001C..1F.
_SPACE = re.compile("[\t\n\v\f\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff]")
_RESERVED = re.compile(r"[\[\].:/]")
# The loader keeps its used names in a plain object, so these count as used from the start, with a counter that is not a number.
_INHERITED = frozenset(
    [
        "constructor",
        "hasOwnProperty",
        "isPrototypeOf",
        "propertyIsEnumerable",
        "toLocaleString",
        "toString",
        "valueOf",
        "__proto__",
        "__defineGetter__",
        "__defineSetter__",
        "__lookupGetter__",
        "__lookupSetter__",
    ]
)


@dataclass(frozen=True, eq=False)
class NodeTree:
    """The nodes of a glTF file with their transforms as the file gives them, metres, Y up.

    Parameters
    ----------
    names : tuple of str
        As the file writes them; empty for a node without a name.
    parents : (N,) int array
        -1 for a root. Any order.
    translations, rotations, scales : (N, 3), (N, 4) wxyz, (N, 3) arrays
        In the parent's frame.
    loader_names : tuple of str
        As three's ``GLTFLoader`` names them.
    found : (N,) bool array
        Whether a track with the loader's name reaches this node, with the file's scene as the mixer's root.
    joints : frozenset of int
        Nodes that skins use.
    """

    names: tuple[str, ...]
    parents: NDArray[np.int64]
    translations: Array
    rotations: Array
    scales: Array
    loader_names: tuple[str, ...]
    found: NDArray[np.bool_]
    joints: frozenset[int] = frozenset()

    def __len__(self) -> int:
        return len(self.names)

    def ancestors(self, node: int) -> Iterator[int]:
        """From ``node``'s parent up to its root."""
        node = int(self.parents[node])
        while node >= 0:
            yield node
            node = int(self.parents[node])

    @cached_property
    def order(self) -> tuple[int, ...]:
        """All nodes, parents first."""
        parents = self.parents.tolist()
        depth: dict[int, int] = {-1: -1}
        for n in range(len(parents)):
            way: list[int] = []
            while n not in depth:
                way.append(n)
                n = parents[n]
            for k, m in enumerate(reversed(way), depth[n] + 1):
                depth[m] = k
        return tuple(sorted(range(len(parents)), key=depth.__getitem__))

    @cached_property
    def local_matrices(self) -> Array:
        """(N, 4, 4): nodes in their parents' frames."""
        out = np.zeros((len(self), 4, 4))
        out[:, :3, :3] = quat.to_matrix(self.rotations) * self.scales[:, None, :]
        out[:, :3, 3] = self.translations
        out[:, 3, 3] = 1.0
        return out

    @cached_property
    def global_matrices(self) -> Array:
        """(N, 4, 4): nodes in the scene as the file places them."""
        out = self.local_matrices.copy()
        for n in self.order:
            if self.parents[n] >= 0:
                out[n] = out[self.parents[n]] @ out[n]
        return out


def read_tree(path: str | Path) -> NodeTree:
    """The node tree of a ``.glb``, ``.vrm`` or ``.gltf`` file; :class:`FileError` if it is none. No mesh or texture is read."""
    path = Path(path)
    return tree(read_json(path), path)


def read_json(path: str | Path) -> dict[str, Any]:
    """The JSON part of a glTF file, binary (told by its first four bytes) or text."""
    path = Path(path)
    try:
        with path.open("rb") as file:
            head = file.read(20)
            if head[:4] == b"glTF":
                if len(head) < 20 or head[16:20] != b"JSON":
                    raise FileError("This binary glTF file is cut off or of version 1; export the character again as glTF 2.0.", path)
                text = file.read(struct.unpack("<I", head[12:16])[0])
            else:
                text = head + file.read()
    except OSError as error:
        raise FileError(f"The file cannot be read ({error.strerror}).", path) from None
    try:
        data: object = json.loads(text.decode("utf-8-sig"))
    except (UnicodeDecodeError, ValueError, RecursionError):
        raise FileError("This is not a glTF file, or it is damaged; give a .glb, .gltf or .vrm file.", path) from None
    if not isinstance(data, dict) or not isinstance(cast("dict[str, Any]", data).get("asset"), dict):
        raise FileError('This is not a glTF file (it has no "asset"); give a .glb, .gltf or .vrm file.', path)
    return cast("dict[str, Any]", data)


def tree(data: Json, path: Path | None = None) -> NodeTree:
    """The node tree of parsed glTF JSON; :class:`FileError` where its nodes make no sense."""
    try:
        nodes: list[Json] = list(data.get("nodes") or [])
        n = len(nodes)
        parents = np.full(n, -1, dtype=np.int64)
        for i, node in enumerate(nodes):
            for child in node.get("children") or ():
                if child < 0 or parents[child] >= 0:
                    raise IndexError
                parents[child] = i
        translations, rotations, scales = _transforms(nodes)
        _check_no_loop(parents.tolist())
        scene_names, names = _loader_names(data)
        found = _found_by_name(data, scene_names, names)
        joints = frozenset(int(j) for skin in data.get("skins") or () for j in skin["joints"])
        if joints and not 0 <= min(joints) <= max(joints) < n:
            raise IndexError
    except (IndexError, KeyError, TypeError, ValueError, AttributeError):
        raise FileError("The nodes of this glTF file are damaged; export the character again.", path) from None
    return NodeTree(tuple(str(node.get("name") or "") for node in nodes), parents, translations, rotations, scales, names, found, joints)


def sanitize(name: str) -> str:
    """A node's name as three.js' track grammar allows it (``PropertyBinding.sanitizeNodeName``)."""
    return _RESERVED.sub("", _SPACE.sub("_", name))


def loader_names(data: Json) -> tuple[str, ...]:
    """The names that three's ``GLTFLoader`` gives the nodes, in the file's order of nodes; empty for nodes without a name.

    Scenes come first, each with its name before its nodes. A node's own name is taken when it is first met: from the scene downwards, but a
    skin names all its joints, in its own order, after the children of the skinned node. Cameras and lights take theirs with their node.
    """
    return _loader_names(data)[1]


def _loader_names(data: Json) -> tuple[list[str], tuple[str, ...]]:
    """The names of the scenes, and those of the nodes."""
    nodes: list[Json] = list(data.get("nodes") or [])
    skins: list[Json] = list(data.get("skins") or [])
    cameras: list[Json] = list(data.get("cameras") or [])
    lights: list[Json] = list(_light_extension(data).get("lights") or [])
    used: dict[str, int] = {}
    names: dict[int, str] = {}
    loaded: set[tuple[str, int]] = set()

    def unique(name: str) -> str:
        name = sanitize(name)
        if name in _INHERITED:
            return f"{name}_NaN"
        if name in used:
            used[name] += 1
            return f"{name}_{used[name]}"
        used[name] = 0
        return name

    def first_time(kind: str, index: int) -> bool:
        new = (kind, index) not in loaded
        loaded.add((kind, index))
        return new

    def shallow(i: int) -> None:
        if i in names:
            return
        node = nodes[i]
        names[i] = unique(node["name"]) if node.get("name") else ""
        camera: int | None = node.get("camera")
        light: int | None = _light_extension(node).get("light")
        if camera is not None and first_time("camera", camera) and cameras[camera].get("name"):
            unique(cameras[camera]["name"])
        if light is not None and first_time("light", light):
            unique(lights[light].get("name") or f"light_{light}")

    def load(i: int) -> None:
        stack: list[tuple[str, int]] = [("node", i)]
        while stack:
            kind, k = stack.pop()
            if not first_time(kind, k):
                continue
            if kind == "skin":
                for joint in skins[k]["joints"]:
                    shallow(joint)
                continue
            shallow(k)
            if nodes[k].get("skin") is not None:
                stack.append(("skin", nodes[k]["skin"]))
            stack.extend(("node", child) for child in reversed(nodes[k].get("children") or []))

    scene_names: list[str] = []
    for scene in data.get("scenes") or ():
        scene_names.append(unique(scene["name"]) if scene.get("name") else "")
        for i in scene.get("nodes") or ():
            load(i)
    for animation in data.get("animations") or ():
        for channel in animation["channels"]:
            if channel.get("target", {}).get("node") is not None:
                load(channel["target"]["node"])
    return scene_names, tuple(names.get(i, "") for i in range(len(nodes)))


def found_by_name(data: Json) -> NDArray[np.bool_]:
    """(N,): whether a track called after a node reaches that node: in the shown scene, and first under its name, depth first.

    Two nodes can still share a name (``a``, ``a`` and a literal ``a_1``); the second is out of reach. Objects that hang below a node beside
    its children (the parts of a mesh, a mesh and a light on one node, a camera on a joint) are called after mesh, camera or light, with a
    number; in which order the loader numbers them is not certain, so a node that such an object could hide counts as hidden.
    """
    return _found_by_name(data, *_loader_names(data))


def _found_by_name(data: Json, scene_names: Sequence[str], names: Sequence[str]) -> NDArray[np.bool_]:
    nodes: list[Json] = list(data.get("nodes") or [])
    scenes: list[Json] = list(data.get("scenes") or [])
    found = np.zeros(len(nodes), dtype=bool)
    if not scenes:
        return found
    shown: int = data.get("scene") or 0
    scene = scenes[shown]
    own = [_own_objects(data, node) for node in nodes]
    given = Counter(sanitize(node.get("name") or "") for node in nodes)
    uses = given + Counter(base for bases in own for base in bases)
    joints = {joint for skin in data.get("skins") or () for joint in skin["joints"]}
    taken = {"", scene_names[shown]}
    stack: list[int] = list(reversed(scene.get("nodes") or []))
    while stack:
        i = stack.pop()
        found[i] = names[i] not in taken
        taken.add(names[i])
        if len(own[i]) > 1 or not names[i] or i in joints:
            taken.update(f"{base}_{k}" for base in own[i] for k in (*range(1, uses[base] + 1), "NaN"))
            # nodes are named before meshes, but a camera or light may come before a node of the same name
            taken.update(base for base in own[i] if base not in given or nodes[i].get("mesh") is None or len(set(own[i])) > 1)
        stack.extend(reversed(nodes[i].get("children") or []))
    return found


def _own_objects(data: Json, node: Json) -> list[str]:
    """The names, before numbering, of the objects three makes of one node's parts of a mesh, camera and light."""
    out: list[str] = []
    mesh: int | None = node.get("mesh")
    if mesh is not None:
        definition: Json = data["meshes"][mesh]
        out += [sanitize(definition.get("name") or f"mesh_{mesh}")] * len(definition.get("primitives") or ())
    camera: int | None = node.get("camera")
    if camera is not None:
        out.append(sanitize(data["cameras"][camera].get("name") or ""))
    light: int | None = _light_extension(node).get("light")
    if light is not None:
        out.append(sanitize(_light_extension(data)["lights"][light].get("name") or f"light_{light}"))
    return out


def _transforms(nodes: Sequence[Json]) -> tuple[Array, Array, Array]:
    """Translations (N, 3), rotations (N, 4) wxyz and scales (N, 3), from the nodes' parts or from their matrices."""
    parts = (("translation", (0.0, 0.0, 0.0)), ("rotation", (0.0, 0.0, 0.0, 1.0)), ("scale", (1.0, 1.0, 1.0)))
    translations, rotations, scales = (
        np.array([node.get(key) or rest for node in nodes], dtype=np.float64).reshape(len(nodes), len(rest)) for key, rest in parts
    )
    rotations = quat.normalize(rotations[:, [3, 0, 1, 2]])
    for i, node in enumerate(nodes):
        if node.get("matrix") is not None:
            translations[i], rotations[i], scales[i] = _taken_apart(node)
    return translations, rotations, scales


def _taken_apart(node: Json) -> tuple[Array, Array, Array]:
    """Translation, rotation and scale of a node with a matrix (column by column)."""
    m = np.array(node["matrix"], dtype=np.float64).reshape(4, 4).T
    scale = np.sqrt(np.einsum("ij,ij->j", m[:3, :3], m[:3, :3]))
    if np.linalg.det(m[:3, :3]) < 0.0:
        scale[0] = -scale[0]  # as three's Matrix4.decompose does
    return m[:3, 3], quat.from_matrix(m[:3, :3] / scale), scale


def _light_extension(data: Json) -> Json:
    extensions: Json = data.get("extensions") or {}
    return extensions.get("KHR_lights_punctual") or {}


def _check_no_loop(parents: Sequence[int]) -> None:
    """Raise where nodes hang on each other in a circle: from each one upwards to one that is known to hang on a root."""
    known: set[int] = {-1}
    for node in range(len(parents)):
        way: dict[int, None] = {}
        while node not in known:
            if node in way:
                raise ValueError
            way[node] = None
            node = parents[node]
        known.update(way)
