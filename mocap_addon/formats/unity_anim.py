# SPDX-License-Identifier: GPL-3.0-or-later
"""Unity animation clips (``.anim``) to takes.

The skeleton is made of the paths of the animated transforms. A clip holds no rest pose: offsets that it does not animate are unknown
(zero), and every joint's rest rotation is none; what its rotations are counted from is found from the motion, or said by a person.
Humanoid clips hold muscles instead of bones; they are kept as curves.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..motion import quat, timeline
from ..motion.skeleton import Skeleton
from ..motion.take import Take
from . import landmarks, orientation, unity_clip, unity_pose
from .options import Axis, ReadOptions
from .unity_clip import ANIMATOR, UnityClip
from .unity_pose import Sampled

Array = NDArray[np.float64]

ROOT = "root"
"""What the animated object itself is called: its name is not in the file."""
_STILL = 1e-5
_NO_LENGTHS = (
    "The clip turns bones and does not say where they are, so their lengths are unknown and it cannot be put onto another character; "
    "write it straight to three.js for the character it was made for, or bake it in Unity with positions of all bones."
)


def read(path: str | Path, options: ReadOptions | None = None) -> list[Take]:
    """Read a Unity clip.

    Parameters
    ----------
    path : path
    options : ReadOptions, optional
        ``rate``: the curves are sampled so often a second (by default as the clip says); ``up``, ``rest_up`` replace Y, ``unit`` the metre.

    Returns
    -------
    list of Take
        One a clip. Blend shapes are curves under their own names (1 is Unity's 100), muscles and other values under Unity's.

    Raises
    ------
    FileError
        No Unity text file, none with a clip, or a damaged one: then with the line.
    """
    return [to_take(clip, options) for clip in unity_clip.read_clips(path)]


def to_take(clip: UnityClip, options: ReadOptions | None = None) -> Take:
    """A clip as a take, sampled on every frame."""
    options = options or ReadOptions()
    rate = options.rate or clip.rate
    found = unity_pose.sample(clip, clip.times(rate))
    notes = [*clip.notes, *found.notes]
    unfit = ""
    if clip.muscles:
        unfit = _muscle_note(clip)
        notes.append(unfit)
    skeleton, rotations, translations, unsure = _skeleton(found, notes)
    if not unfit and len(skeleton) > 1 and not _has_lengths(skeleton, translations):
        unfit = _NO_LENGTHS
        notes.append(unfit)
    take = Take(
        clip.name,
        skeleton,
        timeline.uniform_times(len(found.times), rate),
        rotations,
        translations,
        rate=rate,
        curves=_curves(found),
        events=tuple((seconds - clip.start, name) for seconds, name in clip.events),
    )
    facts: dict[str, object] = {"format": "Unity humanoid clip" if clip.muscles else "Unity clip", "frames": take.frames, "rate": rate}
    facts |= {"joints": len(skeleton), "loop": clip.loop}
    if unfit:
        facts["unfit"] = unfit
    if clip.events:
        facts["events"] = [[seconds - clip.start, name] for seconds, name in clip.events]
    return _settled(replace(take, facts=facts), options, unsure, notes)


def _has_lengths(skeleton: Skeleton, translations: Array) -> bool:
    """Whether half of the bones or more have a place in their parent's frame; hips alone are no body."""
    below = np.flatnonzero(skeleton.parents >= 0)
    away = np.abs(translations[:, below]).max(axis=(0, 2)) > _STILL
    return bool(2 * np.count_nonzero(away) >= len(below))


def _muscle_note(clip: UnityClip) -> str:
    count = sum(c.class_id == ANIMATOR for c in clip.curves)
    return (
        f"This is a humanoid clip: {count} muscle and root curves and no bones. What a muscle turns, and how far, is in the avatar of the "
        "character, which the file does not hold; bake the clip onto a character in Unity (as a generic clip, FBX or glTF) to get bones. "
        "The muscles are kept as curves."
    )


def _skeleton(found: Sampled, notes: list[str]) -> tuple[Skeleton, Array, Array, bool]:
    """Skeleton, local rotations ``(F, J, 4)``, local translations ``(F, J, 3)``; whether an unknown turn stands above the body."""
    paths = unity_pose.paths(found.transforms)
    if not paths:
        still = Skeleton((ROOT,), np.array([-1]), np.zeros((1, 3)))
        return still, quat.identity(len(found.times))[:, None], np.zeros((1, 1, 3)), False
    index = {path: j for j, path in enumerate(paths)}
    top = index.get("", -1)
    parents = np.array([-1 if not p else index.get(unity_pose.parent(p), top) for p in paths])
    count = len(found.times)
    rotations, translations = np.empty((count, len(paths), 4), order="F"), np.zeros((count, len(paths), 3), order="F")
    units, scaled = _units(paths, parents, found)
    for j, path in enumerate(paths):
        one = found.transforms.get(path, unity_pose.Transform())
        rotations[:, j] = quat.IDENTITY if one.rotations is None else one.rotations
        if one.translations is not None:
            translations[:, j] = one.translations * units[j]
    if scaled:
        notes.append(f"The scale of {unity_pose.listed(scaled)} is animated or uneven; it was left out.")
    rest = translations[0] if count else np.zeros((len(paths), 3))
    if np.all(np.ptp(translations, axis=0) < _STILL):
        translations = translations[:1]
    turned = {j for j, p in enumerate(paths) if p in found.transforms and found.transforms[p].rotations is not None}
    unsure = any(j not in turned for j in range(len(paths)) if parents[j] < 0)
    return Skeleton(_names(paths), parents, rest), rotations, translations, unsure


def _units(paths: list[str], parents: NDArray[np.int64], found: Sampled) -> tuple[Array, list[str]]:
    """(J,): the product of the scales above each transform, for its offset; and those whose scale was not followed."""
    out, below = np.ones(len(paths)), np.ones(len(paths))
    left: list[str] = []
    for j, path in enumerate(paths):
        one = found.transforms.get(path)
        p = int(parents[j])
        out[j] = below[j] = 1.0 if p < 0 else below[p]
        if one is None or one.scales is None:
            continue
        size = float(np.sort(np.abs(one.scales[0]))[1])
        if size <= 1e-9 or float(np.abs(one.scales - size).max()) > 1e-3 * max(size, 1.0):
            left.append(path.rpartition("/")[2] or ROOT)
        if size > 1e-9:
            below[j] = out[j] * size
    return out, left


def _names(paths: list[str]) -> tuple[str, ...]:
    """The transforms' own names; with their path where a name occurs twice."""
    own = [p.rpartition("/")[2] or ROOT for p in paths]
    out: list[str] = []
    for path, name in zip(paths, own, strict=True):
        name = name if name not in out else path
        while name in out:
            name += "_"
        out.append(name)
    return tuple(out)


def _curves(found: Sampled) -> dict[str, Array]:
    """Blend shapes of equal names (a face and its teeth) are one curve where they move alike."""
    out: dict[str, Array] = {}
    for (path, name), values in found.morphs.items():
        if name in out and not np.array_equal(out[name], values):
            name = f"{path.rpartition('/')[2]}.{name}"
        out[name] = values
    return {**found.floats, **out}


def _settled(take: Take, options: ReadOptions, unsure: bool, notes: list[str]) -> Take:
    """Turned to Z up and scaled to metres. Unity has Y up and metres; a character under a turned or scaled object of its own shows it."""
    skeleton = take.skeleton
    marks = landmarks.find(skeleton.names, skeleton.parents)
    up: Axis = options.up or "Y"
    unit, name = options.unit or 1.0, "m" if options.unit is None else "given"
    if take.frames and (marks.body or unsure):
        moving = orientation.sample_positions(take.local_rotations, take.local_translations, skeleton.parents)
        if unsure and options.up is None:
            seen, known = orientation.up_axis(moving, marks, None)
            if known and seen != "Y":
                up = seen
                notes.append(f"The body stands along {up}: something above it is turned that the clip does not hold; {up} was taken as up.")
        if options.unit is None and marks.body:
            found, size, sure = orientation.unit_of(np.linalg.norm(skeleton.rest_translations, axis=1), skeleton.parents, marks, moving)
            if sure and found != "m":
                unit, name = size, found
                notes.append(f"The body is not of a human size in metres; one unit was taken as {unit:g} m.")
    turn, rest_turn = orientation.turn_to_z(up), orientation.turn_to_z(options.rest_up or up)
    roots = list(skeleton.roots)
    rest_r, rest_t = skeleton.rest_rotations.copy(), skeleton.rest_translations.copy()
    rest_r[roots], rest_t[roots] = quat.mul(rest_turn, rest_r[roots]), quat.rotate(rest_turn, rest_t[roots])
    out = take.rerooted(lambda q: quat.mul(turn, q), lambda v: quat.rotate(turn, v), rest=False)
    out = replace(out, skeleton=skeleton.with_rest(rest_r, rest_t), local_rotations=quat.continuous(out.local_rotations))
    facts = {**take.facts, "up": up, "rest_up": options.rest_up or up, "unit": unit, "unit_name": name}
    return replace(out if unit == 1.0 else out.scaled(unit), facts=facts, notes=tuple(notes))
