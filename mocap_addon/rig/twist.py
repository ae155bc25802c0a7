# SPDX-License-Identifier: GPL-3.0-or-later
"""Twist bones: bones along a limb that only share its roll about its own axis, so that the skin does not wring at one joint.

Two kinds are known. *Beside* the limb: bones that hang on the limb's bone, lie on its line, and carry nothing of the body
(``lowerarm_twist_01_l``). *In* the limb: links between its bone and the next joint (``lForearmTwist``). A bone is one only when its name
says so, by its family's list ``twist`` or by a word; place alone decides nothing, and a name without its place does not either.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from ..motion.skeleton import Skeleton
from .families import Family
from .names import words
from .roles import SIDES

LIMB_NEXT: dict[str, str] = {"UpperArm": "LowerArm", "LowerArm": "Hand", "UpperLeg": "LowerLeg", "LowerLeg": "Foot"}
"""Limb bones, and the part that each reaches to."""

UPPER: tuple[str, ...] = ("UpperArm", "UpperLeg")
"""Limbs whose roll comes from their own joint; that of the others comes from what hangs on their end."""

_OTHER = frozenset(
    {"ik", "fk", "ctrl", "control", "pole", "target", "mch", "org", "end", "nub", "cor", "corrective", "offset", "ref", "helper"}
)
_ASIDE = 0.15
_BEYOND = 0.05
_USELESS = 0.1


def says_twist(name: str, family: Family | None = None) -> bool:
    """Whether a name is that of a twist bone, for its family or by its words."""
    if family is not None and family.is_twist(name):
        return True
    found = words(name)
    return any("twist" in w or w.endswith("roll") for w in found) and _OTHER.isdisjoint(found)


def find_twists(skeleton: Skeleton, joints: Mapping[str, Sequence[int]], family: Family | None = None) -> dict[int, str]:
    """Twist bones of the four limbs.

    Parameters
    ----------
    skeleton : Skeleton
    joints : mapping from role to joints
    family : Family, optional
        The one that explains the names.

    Returns
    -------
    dict of int to str
        Joint -> role of the limb bone that it belongs to (``leftLowerArm``): links of the limb, and bones beside it.
    """
    taken = {j for found in joints.values() for j in found}
    out: dict[int, str] = {}
    for side in SIDES:
        for part, following in LIMB_NEXT.items():
            limb, tip = joints.get(side + part), joints.get(side + following)
            if not limb or not tip or not skeleton.is_below(tip[0], limb[0]):
                continue
            links = [j for j in links_between(skeleton, limb[0], tip[0]) if j not in taken and says_twist(skeleton.names[j], family)]
            out |= dict.fromkeys([*links, *_beside(skeleton, limb[0], tip[0], links, taken, family)], side + part)
    return out


def links_between(skeleton: Skeleton, limb: int, tip: int) -> list[int]:
    """The joints on the way from ``limb`` down to ``tip``, without these two."""
    above = skeleton.ancestors(tip)
    return above[: above.index(limb)][::-1]


def along(skeleton: Skeleton, limb: int, tip: int, joint: int) -> tuple[float, float]:
    """Where a joint lies at rest on the way from ``limb`` (0) to ``tip`` (1), and how far beside it in lengths of the limb."""
    places = skeleton.rest_global_positions
    way, own = places[tip] - places[limb], places[joint] - places[limb]
    length = float(np.linalg.norm(way))
    if length < 1e-9:
        return 0.0, np.inf
    u = float(own @ way) / length**2
    return u, float(np.linalg.norm(own - u * way)) / length


def _beside(skeleton: Skeleton, limb: int, tip: int, links: Sequence[int], taken: set[int], family: Family | None) -> list[int]:
    """Bones that hang on the limb's bone, on its links or on another such bone, and lie on its line; nothing of the body hangs on them."""
    out: list[int] = []
    waiting = [j for link in (limb, *links) for j in skeleton.children[link] if j not in links]
    while waiting:
        joint = waiting.pop(0)
        if (
            joint in taken
            or joint == tip
            or any(skeleton.is_below(j, joint) for j in taken)
            or not says_twist(skeleton.names[joint], family)
        ):
            continue
        u, aside = along(skeleton, limb, tip, joint)
        if -_BEYOND <= u <= 1.0 + _BEYOND and aside <= _ASIDE:
            out.append(joint)
            waiting += skeleton.children[joint]
    return out


def shares(skeleton: Skeleton, role: str, limb: int, tip: int, found: Sequence[int]) -> dict[int, float]:
    """Twist bone of one limb -> its share of the roll, by its place.

    Beside a forearm or shin a bone *takes on* a share of what hand or foot turn about the limb's axis: none at the elbow, all at the wrist.
    Beside an upper arm or thigh it *takes back* a share of what the limb itself turns: all at the shoulder, none at the elbow.

    In a limb a link's share is what is done between the link before and itself: of a forearm as much as that link is long, of an upper arm
    as much as it is long itself, so that elbow and knee keep their hinge and the rest is done at wrist and shoulder.
    """
    links = [j for j in links_between(skeleton, limb, tip) if j in found]
    upper = role.endswith(UPPER)
    out = _shares_of_links(skeleton, role, [limb, *links, tip]) if links else {}
    for joint in (j for j in found if j not in links):
        u = min(max(along(skeleton, limb, tip, joint)[0], 0.0), 1.0)
        out[joint] = round(1.0 - u if upper else u, 4) + 0.0
    if (
        not links and max(out.values(), default=1.0) < _USELESS
    ):  # the only bone begins where there is nothing to share: it stands for the whole limb
        out = dict.fromkeys(out, 0.5)
    return out


def _shares_of_links(skeleton: Skeleton, role: str, chain: list[int]) -> dict[int, float]:
    places = skeleton.rest_global_positions
    lengths = [float(np.linalg.norm(places[b] - places[a])) for a, b in pairwise(chain)]
    total = max(sum(lengths), 1e-12)
    own = 1 if role.endswith(UPPER) else 0
    return {joint: round(lengths[k + own] / total, 4) for k, joint in enumerate(chain[1:-1])}
