# SPDX-License-Identifier: GPL-3.0-or-later
"""A take on the body that a live protocol sends."""

from __future__ import annotations

from dataclasses import replace

from ..motion.take import Take
from ..rig import match
from ..stream.frame import Decoder
from .build import build_table
from .neutral import source_reference
from .transfer import RetargetOptions, retarget


def on_protocol(take: Take, decoder: Decoder) -> Take:
    """A take on the joints that a protocol sends: as it is where it has them, else carried over to the protocol's own body."""
    standard = decoder.standard(take.skeleton.names)
    if set(take.skeleton.names) <= set(standard.names):
        return take
    reference = source_reference(take, None)
    table = build_table(take.skeleton, match(take.skeleton), standard, match(standard), reference=reference)
    carried = retarget(take, table, standard, RetargetOptions(reference=reference)).to_take(standard)
    return replace(carried, name=take.name, performer=take.performer or take.name, props=take.props, curves=take.curves, rate=take.rate)
