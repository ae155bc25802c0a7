# SPDX-License-Identifier: GPL-3.0-or-later
"""Time code and contacts of a rig's action, read back from the custom properties that hold them."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction

import bpy
import numpy as np
from numpy.typing import NDArray

from ..motion import timecode
from ..motion.take import Take
from . import curves
from .channels import DROP, RATE
from .playing import Playing

Array = NDArray[np.float64]

_PROPERTY = re.compile(r'\["((?:[^"\\]|\\.)*)"\]$')
_CONTACT = "contact_"


def with_time_code(take: Take, chosen: Playing, frames: Array) -> Take:
    """The take with the time code and the foot contacts that its action has at scene frames ``(F,)``."""
    found: dict[str, bpy.types.FCurve] = {}
    for curve in chosen.curves:
        path = _PROPERTY.match(curve.data_path)
        if path is not None:
            found[bpy.utils.unescape_identifier(path[1])] = curve
    contacts = {name: curves.evaluate(curve, frames) for name, curve in found.items() if name.startswith(_CONTACT)}
    take = replace(take, curves={**take.curves, **contacts}) if contacts else take
    coded = {name: curves.evaluate(curve, frames[:1]) for name, curve in found.items() if name.startswith(timecode.PREFIX)}
    if not coded:
        return take
    numerator, denominator = (round(float(coded[name][0])) if name in coded else 0 for name in RATE)
    rate = Fraction(numerator, denominator) if numerator > 0 and denominator > 0 else take.rate
    drop = DROP in coded and bool(coded[DROP][0] > 0.5) and rate is not None and timecode.can_drop(rate)
    return take.with_time_code(timecode.from_curves(coded, rate, drop=drop)) if rate is not None else take
