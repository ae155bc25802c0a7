# SPDX-License-Identifier: GPL-3.0-or-later
"""A take in a file's own axes and units -> the project's: Z up, metres.

What was found goes into ``take.facts``, doubts into ``take.notes``.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..motion import quat
from ..motion.take import Take
from . import landmarks, orientation
from .options import ReadOptions

Array = NDArray[np.float64]


def into_project_axes(take: Take, options: ReadOptions) -> Take:
    """Turn motion and rest pose to Z up, each by its own turn, and scale to metres. The heading is left alone and only reported.

    The take comes with the identity as every joint's rest rotation, and owns its arrays (they are changed in place).
    """
    skeleton = take.skeleton
    marks = landmarks.find(skeleton.names, skeleton.parents)
    rest = skeleton.rest_global_positions
    moving = orientation.sample_positions(take.local_rotations, take.local_translations, skeleton.parents) if take.frames else rest[:0]
    notes: list[str] = []

    kind = orientation.rest_is_body(rest, marks)
    rest_up = orientation.rest_up_axis(rest, marks)
    up, known = orientation.up_axis(moving, marks, options.rest_up or rest_up)
    if options.up is not None:
        up, known = options.up, True
    if not known:
        notes.append("Neither names nor pose tell which way is up; Y up was assumed, say so if it is another axis.")
    elif options.up is None and rest_up not in (None, up):
        notes.append(
            f"The rest pose stands along {rest_up}, the motion along {up}; each was turned by its own axis, say so if one is wrong."
        )
    rest_turn_axis = options.rest_up or rest_up or up
    if kind == "collapsed":
        notes.append("The rest pose is no body (its limbs lie along one line), so a reference pose has to be found.")
    elif kind == "other" and marks.body:
        notes.append("The rest pose does not stand like a body; look at the reference pose.")

    lengths = np.linalg.norm(skeleton.rest_translations, axis=1)
    unit_name, unit, sure = orientation.unit_of(lengths, skeleton.parents, marks, moving if len(moving) else rest[None])
    if options.unit is not None:
        unit_name, unit = "given", options.unit
    elif not sure:
        notes.append(f"The size of the skeleton tells nothing about its unit; {unit_name} was assumed, say so if it is another.")
    elif unit_name == "odd":
        size = f"{orientation.USUAL_HEIGHT:g} m ({100 * unit:.3g} cm a unit)"
        notes.append(f"No usual unit gives the skeleton a human size; it was scaled to {size}.")

    pose = "collapsed" if kind == "collapsed" else "other"
    if kind == "body":
        pose = orientation.arms(rest, marks, skeleton.parents, orientation.axis_vector(rest_turn_axis))
    facts = {
        **take.facts,
        "up": up,
        "rest_up": rest_turn_axis,
        "rest": pose,
        "unit": unit,
        "unit_name": unit_name,
        **_facing_facts(moving, rest, marks, skeleton.parents, orientation.axis_vector(up), orientation.axis_vector(rest_turn_axis), pose),
    }
    turned = _turned(take, orientation.turn_to_z(up), orientation.turn_to_z(rest_turn_axis), unit)
    return replace(turned, facts=facts, notes=(*take.notes, *notes))


def _facing_facts(
    moving: Array, rest: Array, marks: landmarks.Landmarks, parents: NDArray[np.int64], up: Array, rest_up: Array, pose: str
) -> dict[str, object]:
    """The file axis that the rest pose and the first frame face, and the first frame's heading: degrees to the left of the project's -Y."""
    out: dict[str, object] = {"facing": None, "heading_deg": None, "rest_facing": None}
    first = orientation.facing(moving[:1], marks, parents, up) if len(moving) else None
    if first is not None:
        turn = orientation.turn_to_z(orientation.nearest_axis(up))
        x, y, _ = quat.rotate(turn, first[0]).tolist()
        out["facing"] = orientation.nearest_axis(first[0])
        out["heading_deg"] = round(float(np.degrees(np.arctan2(x, -y))), 1)
    at_rest = orientation.facing(rest[None], marks, parents, rest_up) if pose != "collapsed" else None
    if at_rest is not None:
        out["rest_facing"] = orientation.nearest_axis(at_rest[0])
    return out


def _turned(take: Take, turn: Array, rest_turn: Array, unit: float) -> Take:
    """Roots turned (motion by ``turn``, rest by ``rest_turn``), all lengths times ``unit``; the motion's arrays in place."""
    skeleton = take.skeleton
    roots = list(skeleton.roots)
    rotations, translations = take.local_rotations, take.local_translations
    translations *= unit
    for r in roots:
        rotations[:, r] = quat.mul(turn, rotations[:, r])
        translations[:, r] = quat.rotate(turn, translations[:, r])
    rest_r, rest_t = skeleton.rest_rotations.copy(), skeleton.rest_translations * unit
    rest_r[roots], rest_t[roots] = rest_turn, quat.rotate(rest_turn, rest_t[roots])
    skeleton = replace(skeleton, rest_rotations=rest_r, rest_translations=rest_t, ends=skeleton.ends * unit)
    return replace(take, skeleton=skeleton, local_rotations=rotations, local_translations=translations)
