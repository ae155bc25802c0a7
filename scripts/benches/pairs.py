# SPDX-License-Identifier: GPL-3.0-or-later
"""Pairs: one master body and motion drawn to every naming family under declared operators, every ordered pair carried over and held against
its truth (``tests/retarget/pairs``). Needs no Blender.

(a) joints that both have: rotation away from the reference, roll included; (b) pairs with the same moving links: all joints against the
target's own forward kinematics; (c) pairs where a link is missing on one side: against the chain rule, hips and legs still against the
target's own. Places are measured at the master's size (1.8 m).
"""

from __future__ import annotations

import sys
from collections import Counter

from support.figures import Figure

from tests.retarget.pairs.compare import CHAIN, OWN, STATIC, compare, mismatch
from tests.retarget.pairs.standards import bodies

DEGREES, MILLIMETRES = 0.01, 0.1


def measure() -> list[Figure]:
    """Every figure; pairs that fall short are named on standard error."""
    standards = bodies()
    count = len(standards)
    matched = [mismatch(body) for body in standards]
    pairs = [compare(source, target) for source in standards for target in standards]
    for pair in pairs:
        if pair.degrees.max() > DEGREES or 1000.0 * max(pair.metres.max(), pair.legs) > MILLIMETRES:
            print(pair.named(), file=sys.stderr)
    joints = Counter(rule for pair in pairs for rule in pair.rules)
    alike, other = [p for p in pairs if p.alike], [p for p in pairs if not p.alike]

    def worst(rule: str) -> float:
        return max(pair.worst(rule) for pair in pairs)

    def furthest(some: list) -> float:
        return 1000.0 * max(float(pair.metres.max()) for pair in some)

    return [
        Figure("standards", count, "", 24, "higher"),
        Figure("joints matched to a wrong role, or to none", sum(len(m.roles) for m in matched), "", 0),
        Figure("families recognised", sum(m.known for m in matched), "", count, "higher"),
        Figure("ordered pairs", len(pairs), "", count * count, "higher"),
        Figure("(a) joints in both", joints[OWN], ""),
        Figure("(a) rotation away from the reference, worst", worst(OWN), "deg", DEGREES),
        Figure("(b) pairs with the same moving links", len(alike), ""),
        Figure("(b) joints against the target's own, worst", furthest(alike), "mm", MILLIMETRES),
        Figure("(c) pairs with a link missing on one side", len(other), ""),
        Figure("(c) joints by the chain rule", joints[CHAIN], ""),
        Figure("(c) rotation by the chain rule, worst", worst(CHAIN), "deg", DEGREES),
        Figure("(c) joints that the source lacks, at rest to their parent", joints[STATIC], ""),
        Figure("(c) rotation of these, worst", worst(STATIC), "deg", DEGREES),
        Figure("(c) joints against the chain rule, worst", furthest(other), "mm", MILLIMETRES),
        Figure("hips and legs of all pairs against the target's own, worst", 1000.0 * max(p.legs for p in pairs), "mm", MILLIMETRES),
    ]
