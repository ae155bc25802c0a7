# SPDX-License-Identifier: GPL-3.0-or-later
"""Animations of glTF files (``.glb``, ``.gltf``, ``.vrma``) to takes, one for each animation and body. No mesh or picture is read.

glTF is in metres with Y up. Nodes keep their own axes; only the roots are turned, and everything above them is folded in. A scale above a
joint makes its offset longer: that is multiplied in, so that bones have none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..motion import grid, quat, timeline
from ..motion.errors import FileError
from ..motion.skeleton import Skeleton
from ..motion.take import Take
from . import gltf_morphs, orientation
from .gltf_body import GltfBody, bodies, humanoid_nodes
from .gltf_buffers import Buffers, finite
from .gltf_nodes import NodeTree, read_json, tree
from .gltf_samplers import Sampler, snapped
from .options import ReadOptions

Array = NDArray[np.float64]
Json = Mapping[str, Any]

_WIDTH = {"rotation": 4, "translation": 3, "scale": 3}
_DENSE = Fraction(60)
"""Samples a second for curved keys that lie on no common frame rate."""
_UNEVEN = 1e-3


@dataclass(frozen=True, eq=False)
class Animation:
    """The curves of one animation: (node, "rotation" / "translation" / "scale") -> sampler; and those of morphs."""

    name: str
    samplers: Mapping[tuple[int, str], Sampler]
    morphs: list[gltf_morphs.Named]


def read(path: str | Path, options: ReadOptions | None = None) -> list[Take]:
    """Read a glTF file.

    Parameters
    ----------
    path : path
    options : ReadOptions, optional
        ``rate`` is the rate that the samples are played at, ``up`` and ``rest_up`` replace Y, ``unit`` the metre.

    Returns
    -------
    list of Take
        The key times are kept where they are evenly spaced, or lie on the frames of a common rate. Joints of a VRM animation are called
        after the humanoid's bones. Morph weights and expressions are curves; ``facts["morphs"]`` names them.

    Raises
    ------
    FileError
        No glTF file, a damaged one, or one in which nothing moves a skeleton.
    """
    path, options = Path(path), options or ReadOptions()
    data = read_json(path)
    nodes = tree(data, path)
    buffers = Buffers(data, path)
    try:
        found = _animations(data, buffers, path)
        if not found:
            raise FileError("There is no animation in this glTF file; it can be a character, not a take.", path)
        groups = bodies(data, nodes, buffers)
        takes = [take for animation in found for take in _takes(animation, groups, nodes, data, options, path)]
    except FileError as error:
        raise error if error.path is not None else FileError(str(error), path) from None
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, np.linalg.LinAlgError):
        raise FileError("The animations of this glTF file are damaged; export it again.", path) from None
    if not takes:
        raise FileError("No animation in this glTF file moves a skeleton.", path)
    return _named_apart(takes)


def _animations(data: Json, buffers: Buffers, path: Path) -> list[Animation]:
    out: list[Animation] = []
    items: list[Json] = list(data.get("animations") or ())
    for k, item in enumerate(items):
        definitions: list[Json] = list(item["samplers"])
        samplers: dict[tuple[int, str], Sampler] = {}
        for channel in item["channels"]:
            target: Json = channel.get("target") or {}
            node, what = target.get("node"), str(target.get("path"))
            if node is not None and what in _WIDTH:
                samplers[int(node), what] = _sampler(definitions[int(channel["sampler"])], what, buffers)
        name = str(item.get("name") or "") or (path.stem if len(items) == 1 else f"{path.stem} {k + 1}")
        morphs = [*gltf_morphs.weights(data, item, buffers), *gltf_morphs.expressions(data, samplers)]
        out.append(Animation(name, samplers, morphs))
    return out


def _sampler(item: Json, what: str, buffers: Buffers) -> Sampler:
    times, values = buffers.array(int(item["input"]))[:, 0], buffers.array(int(item["output"]))
    kind = str(item.get("interpolation") or "LINEAR")
    if kind not in ("LINEAR", "STEP", "CUBICSPLINE") or not len(times) or not finite(times) or not finite(values):
        raise ValueError
    per_key = 3 if kind == "CUBICSPLINE" else 1
    if values.shape != (len(times) * per_key, _WIDTH[what]):
        raise ValueError
    if what == "rotation":
        values = values[:, [3, 0, 1, 2]]
    if per_key == 3:
        values = values.reshape(-1, 3, _WIDTH[what])
    keep = np.concatenate([np.diff(times) != 0.0, [True]])  # of two keys at one time the later counts
    times, values = times[keep], values[keep]
    if np.any(np.diff(times) <= 0.0):
        raise ValueError
    if what == "rotation":
        middle = values[:, 1] if per_key == 3 else values
        none = np.sum(middle * middle, axis=1) < 1e-12
        middle[none] = quat.IDENTITY
    return Sampler(times, values, kind, what == "rotation")


def _takes(animation: Animation, groups: list[GltfBody], nodes: NodeTree, data: Json, options: ReadOptions, path: Path) -> list[Take]:
    out: list[Take] = []
    for body in groups:
        if any(node in body.nodes and what != "scale" for node, what in animation.samplers):
            name = animation.name if not out else f"{animation.name} {body.names[0]}"
            out.append(_take(name, animation, body, nodes, data, options, path))
    return out


def _take(name: str, animation: Animation, body: GltfBody, nodes: NodeTree, data: Json, options: ReadOptions, path: Path) -> Take:
    relevant = {*body.nodes, *body.above}
    samplers = {key: sampler for key, sampler in animation.samplers.items() if key[0] in relevant}
    at, rate, notes = _time_axis([*samplers.values(), *(sampler for _, sampler in animation.morphs)])
    joints = _Nodes(nodes, samplers, at)
    units, scaled = joints.units(body)
    moved = joints.scales(body)
    left = [name for name in scaled if name not in {f'"{body.names[j]}"' for j in moved}]
    if left:
        notes.append(f"The scale of {', '.join(left[:5])} is animated or uneven; it was left out.")
    if moved:
        names = ", ".join(f'"{body.names[j]}"' for j in list(moved)[:5])
        notes.append(f"The scale of {names} is animated; it is taken where Scale is on, and moves what hangs on it.")
    rotations, translations = np.empty((len(at), len(body.nodes), 4), order="F"), np.empty((len(at), len(body.nodes), 3), order="F")
    for j, n in enumerate(body.nodes):
        rotations[:, j] = joints.rotation(n)
        translations[:, j] = joints.translation(n) * units[j]
        for a in _above(body.parents.tolist(), j):
            if a in moved:
                translations[:, j] *= moved[a]
    base_r, base_t, rest_r, rest_t = joints.above(body.above)
    skeleton_r, skeleton_t = body.rest_rotations.copy(), body.rest_translations * units[:, None]
    for j in np.flatnonzero(body.parents < 0).tolist():
        rotations[:, j], translations[:, j] = quat.mul(base_r, rotations[:, j]), base_t + quat.rotate(base_r, translations[:, j])
        skeleton_r[j], skeleton_t[j] = quat.mul(rest_r, skeleton_r[j]), rest_t + quat.rotate(rest_r, skeleton_t[j])
    skeleton = Skeleton(body.names, body.parents, skeleton_t, skeleton_r)
    times, rate = (timeline.uniform_times(len(at), options.rate), options.rate) if options.rate else (at - at[0], rate)
    if rate is not None:
        times = timeline.uniform_times(len(at), rate)
    kind = "VRM animation" if humanoid_nodes(data) else "glTF"
    curves = gltf_morphs.curves(animation.morphs, at, joints.reach)
    stretched = {body.names[j]: values for j, values in moved.items()}
    take = Take(name, skeleton, times, rotations, translations, rate=rate, notes=tuple(notes), curves=curves, scales=stretched)
    take = _into_project_axes(take, options, kind)
    return replace(take, facts={**take.facts, "morphs": tuple(curves)}) if curves else take


def _into_project_axes(take: Take, options: ReadOptions, kind: str) -> Take:
    up, rest_up, unit = options.up or "Y", options.rest_up or options.up or "Y", options.unit or 1.0
    turn, rest_turn = orientation.turn_to_z(up), orientation.turn_to_z(rest_up)
    skeleton, roots = take.skeleton, list(take.skeleton.roots)
    rest_r, rest_t = skeleton.rest_rotations.copy(), skeleton.rest_translations.copy()
    rest_r[roots], rest_t[roots] = quat.mul(rest_turn, rest_r[roots]), quat.rotate(rest_turn, rest_t[roots])
    turned = take.rerooted(lambda q: quat.mul(turn, q), lambda v: quat.rotate(turn, v), rest=False)
    turned = replace(turned, skeleton=skeleton.with_rest(rest_r, rest_t), local_rotations=quat.continuous(turned.local_rotations))
    facts: dict[str, object] = {"format": kind, "frames": take.frames, "rate": take.rate, "joints": len(skeleton)}
    facts |= {"up": up, "rest_up": rest_up, "unit": unit, "unit_name": "m" if unit == 1.0 else "given"}
    return replace(turned if unit == 1.0 else turned.scaled(unit), facts=facts)


def _time_axis(samplers: Sequence[Sampler]) -> tuple[Array, Fraction | None, list[str]]:
    """The sample times ``(F,)`` in seconds of the file, their rate, and notes."""
    keys = grid.distinct(np.concatenate([sampler.times for sampler in samplers]))
    if len(keys) == 1:
        return keys, Fraction(30), []
    rate = grid.fitting_rate(keys)
    if rate is None and all(sampler.interpolation == "LINEAR" for sampler in samplers):
        return keys, None, ["The keys lie at uneven times, which were kept."]
    notes = [] if rate is not None else [f"The keys lie at uneven times; the curves were sampled {_DENSE} times a second."]
    rate = rate or _DENSE
    count = int(np.floor(float(keys[-1] - keys[0]) * float(rate) + 1e-3)) + 1
    return timeline.uniform_times(count, rate, float(keys[0])), rate, notes


class _Nodes:
    """The local transforms of nodes at the sample times: from their curves, else as the file has them."""

    def __init__(self, nodes: NodeTree, samplers: Mapping[tuple[int, str], Sampler], at: Array) -> None:
        self.nodes, self.samplers = nodes, samplers
        # half a sample, but no more than rounding can be
        reach = 2e-5 + 2.4e-7 * float(np.abs(at).max())
        self.at, self.reach = at, reach

    def _values(self, node: int, what: str, standing: Array) -> Array:
        sampler = self.samplers.get((node, what))
        return standing[None] if sampler is None else sampler.at(snapped(self.at, sampler.times, self.reach))

    def rotation(self, node: int) -> Array:
        """(F, 4) or (1, 4)."""
        return self._values(node, "rotation", self.nodes.rotations[node])

    def translation(self, node: int) -> Array:
        """(F, 3) or (1, 3)."""
        return self._values(node, "translation", self.nodes.translations[node])

    def above(self, path: tuple[int, ...]) -> tuple[Array, Array, Array, Array]:
        """The frame that hangs on ``path``: rotation and place in the scene, ``(F, ...)`` or ``(1, ...)``, and both as the nodes stand."""
        q, t = quat.identity(1), np.zeros((1, 3))
        q0, t0 = quat.identity(1), np.zeros((1, 3))
        unit = 1.0
        for n in path:
            t = t + quat.rotate(q, self.translation(n) * unit)
            q = quat.mul(q, self.rotation(n))
            t0 = t0 + quat.rotate(q0, self.nodes.translations[n][None] * unit)
            q0 = quat.mul(q0, self.nodes.rotations[n][None])
            unit *= self._even(n)[0]
        return q, t, q0[0], t0[0]

    def units(self, body: GltfBody) -> tuple[Array, list[str]]:
        """(J,): the product of the scales above each joint, for its offset; and names of nodes whose own scale was not followed."""
        unit = 1.0
        left: list[str] = []
        for n in body.above:
            scale, even = self._even(n)
            unit *= scale
            left += [] if even else [f'"{self.nodes.names[n]}"']
        out = np.empty(len(body.nodes))
        below = np.empty(len(body.nodes))
        for j, (n, p) in enumerate(zip(body.nodes, body.parents.tolist(), strict=True)):
            scale, even = self._even(n)
            left += [] if even else [f'"{body.names[j]}"']
            out[j] = unit if p < 0 else below[p]
            below[j] = out[j] * scale
        return out, left

    def scales(self, body: GltfBody) -> dict[int, Array]:
        """Joint -> how its node is scaled over what it stands at ``(F, 3)``, for joints whose scale moves."""
        out: dict[int, Array] = {}
        for j, n in enumerate(body.nodes):
            if (n, "scale") in self.samplers:
                values = np.broadcast_to(self._values(n, "scale", self.nodes.scales[n]) / self.nodes.scales[n], (len(self.at), 3))
                if np.abs(values - 1.0).max() > 10.0 * _UNEVEN:
                    out[j] = values
        return out

    def _even(self, node: int) -> tuple[float, bool]:
        """A node's uniform scale, and whether that is the whole truth."""
        scale = self.nodes.scales[node]
        volume = float(scale[0] * scale[1] * scale[2])
        if volume <= 0.0:
            raise FileError(f'The node "{self.nodes.names[node]}" is mirrored or scaled to nothing; apply its scale and export again.')
        size = float(np.cbrt(volume))
        moved = self._values(node, "scale", scale)
        return size, float(np.abs(moved / size - 1.0).max()) < 10.0 * _UNEVEN


def _above(parents: list[int], joint: int) -> list[int]:
    out: list[int] = []
    while (joint := parents[joint]) >= 0:
        out.append(joint)
    return out


def _named_apart(takes: list[Take]) -> list[Take]:
    used: dict[str, int] = {}
    out: list[Take] = []
    for take in takes:
        used[take.name] = used.get(take.name, 0) + 1
        out.append(take if used[take.name] == 1 else replace(take, name=f"{take.name} {used[take.name]}"))
    return out
