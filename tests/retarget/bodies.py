# SPDX-License-Identifier: GPL-3.0-or-later
"""Humanoids made from a list of joint places, with any bone orientations: nothing of the product's own rules is used."""

from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

from mocap_addon.motion.skeleton import Skeleton
from mocap_addon.motion.take import Take
from mocap_addon.rig.roles import RoleMap

# name: (role, parent, place) in character axes (left +X, back +Y, up +Z), metres, T-pose
PLACES: dict[str, tuple[str, str | None, tuple[float, float, float]]] = {
    "hips": ("hips", None, (0.0, 0.0, 1.0)),
    "spine1": ("spine", "hips", (0.0, 0.0, 1.1)),
    "spine2": ("spine", "spine1", (0.0, 0.02, 1.25)),
    "spine3": ("spine", "spine2", (0.0, 0.03, 1.4)),
    "neck": ("neck", "spine3", (0.0, 0.0, 1.55)),
    "head": ("head", "neck", (0.0, -0.02, 1.65)),
}
for _side, _x in (("left", 1.0), ("right", -1.0)):
    PLACES |= {
        f"{_side}Shoulder": (f"{_side}Shoulder", "spine3", (0.03 * _x, 0.0, 1.5)),
        f"{_side}UpperArm": (f"{_side}UpperArm", f"{_side}Shoulder", (0.18 * _x, 0.0, 1.5)),
        f"{_side}LowerArm": (f"{_side}LowerArm", f"{_side}UpperArm", (0.46 * _x, 0.0, 1.5)),
        f"{_side}Hand": (f"{_side}Hand", f"{_side}LowerArm", (0.72 * _x, 0.0, 1.5)),
        f"{_side}Index": (f"{_side}Index", f"{_side}Hand", (0.81 * _x, -0.03, 1.5)),
        f"{_side}Index2": (f"{_side}Index", f"{_side}Index", (0.85 * _x, -0.03, 1.5)),
        f"{_side}Index3": (f"{_side}Index", f"{_side}Index2", (0.88 * _x, -0.03, 1.5)),
        f"{_side}Little": (f"{_side}Little", f"{_side}Hand", (0.80 * _x, 0.03, 1.5)),
        f"{_side}Little2": (f"{_side}Little", f"{_side}Little", (0.83 * _x, 0.03, 1.5)),
        f"{_side}Little3": (f"{_side}Little", f"{_side}Little2", (0.85 * _x, 0.03, 1.5)),
        f"{_side}UpperLeg": (f"{_side}UpperLeg", "hips", (0.1 * _x, 0.0, 0.95)),
        f"{_side}LowerLeg": (f"{_side}LowerLeg", f"{_side}UpperLeg", (0.1 * _x, -0.01, 0.52)),
        f"{_side}Foot": (f"{_side}Foot", f"{_side}LowerLeg", (0.1 * _x, 0.02, 0.08)),
        f"{_side}Toes": (f"{_side}Toes", f"{_side}Foot", (0.1 * _x, -0.12, 0.02)),
    }


def q(rotation: Rotation) -> np.ndarray:
    """SciPy rotation -> wxyz."""
    return rotation.as_quat()[..., [3, 0, 1, 2]]


def r(quaternion: np.ndarray) -> Rotation:
    """wxyz -> SciPy rotation (leading axes flattened)."""
    return Rotation.from_quat(np.asarray(quaternion).reshape(-1, 4)[:, [1, 2, 3, 0]])


def swung(places: dict[str, np.ndarray], parents: dict[str, str | None], joint: str, turn: Rotation) -> dict[str, np.ndarray]:
    """Everything below ``joint`` turned about it."""
    out = dict(places)
    for name in places:
        above: str | None = name
        while above is not None and above != joint:
            above = parents[above]
        if above is not None:
            out[name] = places[joint] + turn.apply(places[name] - places[joint])
    return out


def a_pose(degrees: float) -> dict[str, np.ndarray]:
    """Joint places with both arms lowered by ``degrees``."""
    places = {name: np.array(place) for name, (_, _, place) in PLACES.items()}
    parents = {name: parent for name, (_, parent, _) in PLACES.items()}
    places = swung(places, parents, "leftUpperArm", Rotation.from_euler("y", degrees, degrees=True))
    return swung(places, parents, "rightUpperArm", Rotation.from_euler("y", -degrees, degrees=True))


def body(
    places: dict[str, np.ndarray] | None = None,
    *,
    orientations: dict[str, Rotation] | None = None,
    world: Rotation | None = None,
    scale: float = 1.0,
    without: tuple[str, ...] = (),
) -> tuple[Skeleton, RoleMap]:
    """A skeleton and its roles; joint frames are ``orientations`` (identity by default), the whole is turned by ``world``."""
    places = places or {name: np.array(place) for name, (_, _, place) in PLACES.items()}
    world = world or Rotation.identity()
    names = [name for name in PLACES if name not in without]
    frames = {name: world * (orientations or {}).get(name, Rotation.identity()) for name in names}
    parents, translations, rotations = [], [], []
    for name in names:
        parent = PLACES[name][1]
        while parent in without:
            parent = PLACES[parent][1]
        parents.append(-1 if parent is None else names.index(parent))
        if parent is None:
            translations.append(world.apply(places[name] * scale))
            rotations.append(q(frames[name]))
        else:
            translations.append(frames[parent].inv().apply(world.apply((places[name] - places[parent]) * scale)))
            rotations.append(q(frames[parent].inv() * frames[name]))
    roles: dict[str, tuple[int, ...]] = {}
    for i, name in enumerate(names):
        roles[PLACES[name][0]] = (*roles.get(PLACES[name][0], ()), i)
    skeleton = Skeleton(tuple(names), np.array(parents), np.array(translations), np.array(rotations))
    return skeleton, RoleMap(roles, family="test")


def random_orientations(seed: int) -> dict[str, Rotation]:
    """A random frame for every joint: bone roll and axis at will."""
    return dict(zip(PLACES, Rotation.random(len(PLACES), random_state=seed), strict=True))


def random_take(skeleton: Skeleton, frames: int = 40, seed: int = 0, amount: float = 0.6) -> Take:
    """Smooth random rotations about the rest pose, and travel of the root."""
    rng = np.random.default_rng(seed)
    t = np.linspace(0.0, 3.0, frames)[:, None, None]
    n = len(skeleton)
    vectors = amount * np.sin(t * rng.uniform(0.5, 2.0, (1, n, 3)) + rng.uniform(0.0, 6.0, (1, n, 3)))
    turns = Rotation.from_rotvec(vectors.reshape(-1, 3))
    rest = r(np.broadcast_to(skeleton.rest_rotations, (frames, n, 4)))
    local = q(rest * turns).reshape(frames, n, 4)
    translations = np.broadcast_to(skeleton.rest_translations, (frames, n, 3)).copy()
    root = list(skeleton.roots)
    translations[:, root] += np.concatenate([t, 0.3 * t, 0.05 * np.sin(4 * t)], axis=2)
    return Take("random", skeleton, np.arange(frames) / 30.0, local, translations)
