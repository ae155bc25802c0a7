# SPDX-License-Identifier: GPL-3.0-or-later
"""Who carries the character over the ground: the settings, and their form for the core."""

# pyright: reportInvalidTypeForm=false
from __future__ import annotations

from typing import Any

import bpy
from bpy.props import EnumProperty, FloatProperty

from ..retarget.root_motion import CHOICES, RootMotion

NAMES = tuple(f"root_{name}" for name in ("source", "destination", "axes", "heading", "height", "origin", "smoothing"))
"""Names of the settings."""


def _changed(self: bpy.types.bpy_struct, context: bpy.types.Context) -> None:
    if isinstance(self, bpy.types.PropertyGroup):
        from . import run

        run.settings_changed(self.id_data)


def _identifier(choice: str) -> str:
    return choice.upper().replace("-", "_")


def _choice(name: str, label: str, description: str) -> EnumProperty:
    items = tuple((_identifier(value), words, sentence) for value, words, sentence in CHOICES[name])
    return EnumProperty(name=label, description=description, items=items, update=_changed, options={"SKIP_SAVE"})


class RootSettings:
    """Root motion."""

    root_destination: _choice("destination", "Carried By", "What carries the character over the ground")
    root_source: _choice("source", "Taken From", "What the path over the ground is taken from")
    root_axes: EnumProperty(
        name="Axes",
        description="Which directions of the path are taken off the hips. Z is the height",
        items=(
            ("X", "X", "To the sides of the scene", 1),
            ("Y", "Y", "Forwards and backwards in the scene", 2),
            ("Z", "Z", "Up and down: jumps and stairs", 4),
        ),
        default={"X", "Y"},
        update=_changed,
        options={"ENUM_FLAG", "SKIP_SAVE"},
    )
    root_heading: _choice("heading", "Turned By", "What turns when the character walks a curve")
    root_smoothing: FloatProperty(
        name="Smoothing",
        description="Sways shorter than this stay in the hips, and the path becomes smoother. 0: the path follows every sway",
        subtype="TIME_ABSOLUTE",
        unit="TIME_ABSOLUTE",
        min=0.0,
        soft_max=3.0,
        max=1000.0,
        update=_changed,
        options={"SKIP_SAVE"},
    )
    root_height: _choice("height", "Height", "How high the hips go")
    root_origin: _choice("origin", "Start", "Where the first frame stands")


def motion(owner: Any) -> RootMotion:
    """The settings in the form of the core."""
    found = {name: _value(name, getattr(owner, f"root_{name}")) for name in CHOICES}
    axes = "".join(sorted(owner.root_axes)).lower()
    return RootMotion(axes=axes, smoothing=round(float(owner.root_smoothing), 4), **found)


def show(owner: Any, policy: RootMotion) -> None:
    """The reverse: a policy onto the panel."""
    for name in CHOICES:
        setattr(owner, f"root_{name}", _identifier(getattr(policy, name)))
    owner.root_axes = set(policy.axes.upper())
    owner.root_smoothing = policy.smoothing


def _value(name: str, identifier: str) -> Any:
    return next(value for value, _words, _sentence in CHOICES[name] if _identifier(value) == identifier)
