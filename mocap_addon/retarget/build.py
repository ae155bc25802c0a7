# SPDX-License-Identifier: GPL-3.0-or-later
"""Computing the correction table from two skeletons and their roles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..motion import quat
from ..motion.errors import RigError
from ..motion.skeleton import Skeleton
from ..rig.matcher import match
from ..rig.roles import CHAIN_ROLES, FINGERS, HELPER, ROLES, SIDES, RoleMap
from ..rig.table import CorrectionTable, Row
from ..rig.twist import LIMB_NEXT, UPPER, shares
from .align import Body, align
from .chains import beyond, match_chain
from .frames import Pose, rest_pose, snapped_heading, to_character

Array = NDArray[np.float64]

_HINGES = {"LowerArm": ("UpperArm", "LowerArm", "Hand"), "LowerLeg": ("UpperLeg", "LowerLeg", "Foot")}
_BENT = np.radians(5.0)


@dataclass(frozen=True, eq=False)
class Bodies:
    """Source and target in character axes: what both computing and applying a table start from."""

    source: Body
    target: Body
    turns: Mapping[int, Array]

    @classmethod
    def of(cls, source: Pose, target: Pose, target_axes: Array | None = None) -> Bodies:
        """``target_axes (4,)``: the rotation of the target's own space in the world (its object's), identity by default."""
        a, doubt = to_character(source, quat.IDENTITY)
        b, _ = to_character(target, quat.IDENTITY if target_axes is None else target_axes)
        snapped = snapped_heading(a, doubt)
        b = quat.mul(quat.mul(snapped, quat.inv(a)), b)  # the two bodies stay aligned to each other
        s, t = Body(source, snapped), Body(target, b)
        return cls(s, t, align(s, t))


def build_table(
    source: Skeleton,
    source_roles: RoleMap,
    target: Skeleton,
    target_roles: RoleMap,
    *,
    reference: Pose | None = None,
    target_axes: Array | None = None,
) -> CorrectionTable:
    """Which target bone follows which source joint, with alignment and residuals.

    Parameters
    ----------
    source, target : Skeleton
    source_roles, target_roles : RoleMap
        As :func:`mocap_addon.rig.match` gives them.
    reference : Pose, optional
        Another reference pose of the source than its rest pose.
    target_axes : (4,) array, optional
        Rotation of the target's own space in the world.

    Raises
    ------
    RigError
        When hips or left and right cannot be told.
    """
    return table_and_bodies(source, source_roles, target, target_roles, reference=reference, target_axes=target_axes)[0]


def table_and_bodies(
    source: Skeleton,
    source_roles: RoleMap,
    target: Skeleton,
    target_roles: RoleMap,
    *,
    reference: Pose | None = None,
    target_axes: Array | None = None,
) -> tuple[CorrectionTable, Bodies]:
    """:func:`build_table`, and the bodies it was computed from: a retarget that follows need not work them out again.

    The last pairs are remembered: a thousand takes of one suit onto one character need one table.
    """
    axes = quat.IDENTITY if target_axes is None else target_axes
    if reference is not None:
        return _computed(source, source_roles, target, target_roles, reference, axes)
    key = (source.content, target.content, id(source_roles), id(target_roles), axes.tobytes())
    if key not in _computed_before:
        while len(_computed_before) >= _REMEMBERED:
            _computed_before.pop(next(iter(_computed_before)))
        # the role maps are kept so that their ids stay theirs
        _computed_before[key] = (*_computed(source, source_roles, target, target_roles, None, axes), source_roles, target_roles)
    return _computed_before[key][:2]


_REMEMBERED = 16
_computed_before: dict[tuple[object, ...], tuple[CorrectionTable, Bodies, RoleMap, RoleMap]] = {}


def _computed(
    source: Skeleton, source_roles: RoleMap, target: Skeleton, target_roles: RoleMap, reference: Pose | None, target_axes: Array
) -> tuple[CorrectionTable, Bodies]:
    rows: list[Row] = []
    for role in ROLES:
        rows.extend(_rows_of(role, source, source_roles, target, target_roles))
    rows.extend(_helper_rows(rows, source, target))
    rows.extend(_twist_rows(rows, target, target_roles))
    rows.sort(key=lambda row: target.index(row.target))
    if not any(row.role == "hips" for row in rows):
        raise RigError("The hips are not matched on both sides; set the hips bone in the table.")
    table = CorrectionTable(
        rows=tuple(rows),
        source_family=source_roles.family,
        target_family=target_roles.family,
        unmapped_target=_unmapped(target, {row.target for row in rows}),
        unmapped_source=_unmapped(source, {name for row in rows for name in row.source}),
    )
    roles = (source_roles, target_roles)
    bodies = bodies_of(table, source, target, reference=reference, target_axes=target_axes, roles=roles)
    return measured(table, source, target, bodies=bodies), bodies


def measured(
    table: CorrectionTable,
    source: Skeleton,
    target: Skeleton,
    *,
    reference: Pose | None = None,
    target_axes: Array | None = None,
    bodies: Bodies | None = None,
) -> CorrectionTable:
    """The table with alignment, residual and hinge of every row computed anew (after an edit of sources or corrections).

    ``bodies``, where they are known already (:func:`bodies_of`), save working them out.
    """
    bodies = bodies or bodies_of(table, source, target, reference=reference, target_axes=target_axes)
    if not table.rows:
        return table
    turns = np.array([bodies.turns.get(target.index(row.target), quat.IDENTITY) for row in table.rows])
    corrected = quat.mul(corrections_of(table.rows), turns)
    vectors, residuals = np.degrees(quat.log(turns)), _residuals(table.rows, corrected, bodies)
    rows = [
        replace(row, alignment=(float(v[0]), float(v[1]), float(v[2])), residual=float(e), hinge=_hinge_error(row, turn, bodies))
        for row, v, e, turn in zip(table.rows, vectors, residuals, corrected, strict=True)
    ]
    return replace(table, rows=tuple(rows))


def bodies_of(
    table: CorrectionTable,
    source: Skeleton,
    target: Skeleton,
    *,
    reference: Pose | None = None,
    target_axes: Array | None = None,
    roles: tuple[RoleMap, RoleMap] | None = None,
) -> Bodies:
    """Both bodies with the roles that the table's rows give them.

    ``roles`` (source's, target's), as the matcher gave them, add what the table does not carry but shows how a body is built: fingers that
    only one side has say where its hand points, toes where its feet point and how low they stand, neck and head where its spine ends.
    Without them they are matched here. The last bodies are remembered: corrections do not change them.
    """
    if reference is None and roles is not None:
        axes = b"" if target_axes is None else target_axes.tobytes()
        rows = tuple((row.role, row.target, row.source, row.rule) for row in table.rows)
        key = (source.content, target.content, rows, id(roles[0]), id(roles[1]), axes)
        if key not in _bodies_before:
            while len(_bodies_before) >= _REMEMBERED:
                _bodies_before.pop(next(iter(_bodies_before)))
            _bodies_before[key] = (_bodies(table, source, target, None, target_axes, roles), *roles)  # kept, so that their ids stay theirs
        return _bodies_before[key][0]
    return _bodies(table, source, target, reference, target_axes, roles or (match(source), match(target)))


_bodies_before: dict[tuple[object, ...], tuple[Bodies, RoleMap, RoleMap]] = {}


def _bodies(
    table: CorrectionTable,
    source: Skeleton,
    target: Skeleton,
    reference: Pose | None,
    target_axes: Array | None,
    roles: tuple[RoleMap, RoleMap],
) -> Bodies:
    source_roles, target_roles = roles_of(table, source, target)
    found_s, found_t = roles
    source_roles, target_roles = {**_shape(found_s), **source_roles}, {**_shape(found_t), **target_roles}
    pose = rest_pose(source, source_roles) if reference is None else replace(reference, roles=source_roles)
    return Bodies.of(pose, rest_pose(target, target_roles), target_axes)


_SHAPE = (*FINGERS, "Toes", "neck", "head")


def _shape(roles: RoleMap) -> dict[str, tuple[int, ...]]:
    return {role: joints for role, joints in roles.joints.items() if role.endswith(_SHAPE)}


def roles_of(table: CorrectionTable, source: Skeleton, target: Skeleton) -> tuple[dict[str, tuple[int, ...]], dict[str, tuple[int, ...]]]:
    """Role -> joints of both skeletons as the table's rows say. :class:`RigError` names a bone that is not there."""
    source_roles: dict[str, tuple[int, ...]] = {}
    target_roles: dict[str, tuple[int, ...]] = {}
    for row in table.rows:
        if row.target not in target:
            raise RigError(f'The table\'s target bone "{row.target}" is not in the armature; match again or correct the row.')
        for name in row.source:
            if name not in source:
                raise RigError(f'The table\'s source bone "{name}" (for {row.target}) is not in the take; match again or correct the row.')
        target_roles[row.role] = (*target_roles.get(row.role, ()), target.index(row.target))
        if row.rule == "twist":  # it shares what the target does; its source is for a person to read
            continue
        have = source_roles.get(row.role, ())
        source_roles[row.role] = (*have, *(j for j in map(source.index, row.source) if j not in have))
    return source_roles, target_roles


def _rows_of(role: str, source: Skeleton, source_roles: RoleMap, target: Skeleton, target_roles: RoleMap) -> list[Row]:
    chain_s, chain_t = _links(source, source_roles, role), _links(target, target_roles, role)
    if not chain_s or not chain_t or role == "root":
        return []
    confidence = min(source_roles.confidence.get(role, 1.0), target_roles.confidence.get(role, 1.0))
    alike = [source.names[j] for j in chain_s] == [target.names[j] for j in chain_t]
    if role not in CHAIN_ROLES and not alike:
        chain_t = chain_t[:1]  # the first bone turns the whole limb onto its aim; links that only this rig has follow stiffly
    tips = beyond(role, source_roles.joints), beyond(role, target_roles.joints)
    pairs = match_chain(source, chain_s, target, chain_t, tips)
    return [
        Row(
            role=role,
            target=target.names[joint],
            source=tuple(source.names[s] for s in joints),
            rule=rule,
            blend=share,
            movable=role == "hips",
            confidence=round(confidence, 4),
        )
        for joint, (joints, rule, share) in zip(chain_t, pairs, strict=True)
    ]


def _links(skeleton: Skeleton, roles: RoleMap, role: str) -> tuple[int, ...]:
    """The role's joints; for a limb bone that is split in two or more, every link down to the next joint of the limb."""
    chain = roles.chain(role)
    side, part = _side_part(role)
    tip = roles.one(f"{side}{LIMB_NEXT[part]}") if part in LIMB_NEXT else None
    if not chain or tip is None or not skeleton.is_below(tip, chain[0]):
        return chain
    above = skeleton.ancestors(tip)
    return tuple(reversed(above[: above.index(chain[0]) + 1]))


def _helper_rows(rows: list[Row], source: Skeleton, target: Skeleton) -> list[Row]:
    """Rows for joints of one name on both sides, below the hips and without a role: two rigs of one make carry each other's helpers.

    Only where the nearest joints with a role above them play the same role: a common name alone means nothing.
    """
    used_target, used_source = {row.target: row for row in rows}, {name: row for row in rows for name in row.source}
    out: list[Row] = []
    for joint, name in enumerate(target.names):
        if name in used_target or name in used_source or name not in source:
            continue
        above_t = next((used_target[n] for j in target.ancestors(joint) if (n := target.names[j]) in used_target), None)
        above_s = next((used_source[n] for j in source.ancestors(source.index(name)) if (n := source.names[j]) in used_source), None)
        if above_t is not None and above_s is not None and above_t.role == above_s.role:
            out.append(Row(HELPER, name, (name,), confidence=min(above_t.confidence, 0.9)))
    return out


def _twist_rows(rows: list[Row], target: Skeleton, target_roles: RoleMap) -> list[Row]:
    """Rows for the target's twist bones that have none, on limbs of which the rows move both ends."""
    by_role: dict[str, Row] = {}
    for row in rows:
        by_role.setdefault(row.role, row)
    moved = {row.target for row in rows}
    out: list[Row] = []
    for role in sorted(set(target_roles.twists.values()), key=ROLES.index):
        side, part = _side_part(role)
        limb, tip = by_role.get(role), by_role.get(f"{side}{LIMB_NEXT[part]}")
        found = sorted(joint for joint, of in target_roles.twists.items() if of == role)
        if limb is None or tip is None or any(target.names[joint] in moved for joint in found):
            continue
        start, end = target.index(limb.target), target.index(tip.target)
        if not target.is_below(end, start):
            continue
        giver = limb if part in UPPER else tip
        share = shares(target, role, start, end, found)
        sure = min(giver.confidence, 0.9)
        out.extend(Row(HELPER, target.names[j], giver.source[:1], "twist", share[j], confidence=sure) for j in found)
    return out


def _unmapped(skeleton: Skeleton, mapped: set[str]) -> tuple[str, ...]:
    return tuple(name for name in skeleton.names if name not in mapped)


def _directions(row: Row, bodies: Bodies) -> tuple[Array, Array] | None:
    """The bone's direction at rest and the one it should have, or None where a direction means nothing."""
    side, part = _side_part(row.role)
    if part in LIMB_NEXT:
        d = bodies.target.direction(row.role, f"{side}{LIMB_NEXT[part]}")
        s = bodies.source.direction(row.role, f"{side}{LIMB_NEXT[part]}")
    elif part == "Foot":
        d, s = bodies.target.foot_heading(side), bodies.source.foot_heading(side)
    else:
        return None
    return None if d is None or s is None else (d, s)


def _residuals(rows: tuple[Row, ...], turns: Array, bodies: Bodies) -> Array:
    """(n,): degrees between where each row's bone points and where its source does; feet by heading; NaN where it means nothing."""
    pairs = [_directions(row, bodies) for row in rows]
    nothing = np.full(3, np.nan)
    d = quat.rotate(turns, np.array([nothing if pair is None else pair[0] for pair in pairs]).reshape(-1, 3))
    s = np.array([nothing if pair is None else pair[1] for pair in pairs]).reshape(-1, 3)
    feet = np.array([row.role.endswith("Foot") for row in rows], dtype=bool)
    d[feet, 2] = 0.0
    with np.errstate(invalid="ignore"):
        d = d / np.linalg.norm(d, axis=-1, keepdims=True)
    return np.degrees(2.0 * np.arctan2(np.linalg.norm(d - s, axis=-1), np.linalg.norm(d + s, axis=-1)))


def _hinge_error(row: Row, turn: Array, bodies: Bodies) -> float:
    """Degrees between the two hinge axes of a bent elbow or knee at the reference pose; NaN where either is straight."""
    side, part = _side_part(row.role)
    if part not in _HINGES:
        return float("nan")
    near, far, tip = (f"{side}{p}" for p in _HINGES[part])
    axes: list[Array] = []
    for body in (bodies.target, bodies.source):
        u, v = body.direction(near, far), body.direction(far, tip)
        if u is None or v is None or float(np.linalg.norm(np.cross(u, v))) < np.sin(_BENT):
            return float("nan")
        axes.append(np.cross(u, v))
    return float(np.degrees(quat.angle(quat.between(quat.rotate(turn, axes[0]), axes[1]), quat.IDENTITY)))


def corrections_of(rows: Sequence[Row]) -> Array:
    """(n, 4): the rows' corrections as rotations in character axes."""
    return quat.from_euler(np.radians(np.array([row.correction for row in rows], dtype=np.float64).reshape(-1, 3)), "XYZ")


def correction_of(row: Row) -> Array:
    """(4,): one row's correction as a rotation in character axes."""
    return corrections_of((row,))[0]


def passed_rolls(all_rows: Sequence[Row], target: Skeleton, bodies: Bodies) -> dict[int, Array]:
    """Target joint -> roll ``(4,)`` handed down to it: a roll of the forearm turns hand and fingers, a roll of the hand turns the
    fingers."""
    out: dict[int, Array] = {}
    rows = {row.role: row for row in all_rows if any(row.correction)}
    if not rows:
        return out
    for side in SIDES:
        fingers = [j for finger in FINGERS for j in bodies.target.pose.roles.get(f"{side}{finger}", ())]
        hands = list(bodies.target.pose.roles.get(f"{side}Hand", ()))
        middle = next((f"{side}{f}" for f in ("Middle", "Index", "Ring") if bodies.target.pose.one(f"{side}{f}") is not None), None)
        for part, tip, joints in (("LowerArm", f"{side}Hand", hands + fingers), ("Hand", middle, fingers)):
            row = rows.get(f"{side}{part}")
            if row is None or tip is None:
                continue
            d = bodies.target.direction(f"{side}{part}", tip)
            if d is None or not d.any():
                continue
            axis = quat.rotate(bodies.turns.get(target.index(row.target), quat.IDENTITY), d)
            roll = quat.swing_twist(correction_of(row), axis)[1]
            for joint in joints:
                out[joint] = quat.mul(roll, out[joint]) if joint in out else roll
    return out


def _side_part(role: str) -> tuple[str, str]:
    for side in SIDES:
        if role.startswith(side):
            return side, role[len(side) :]
    return "", role
