# SPDX-License-Identifier: GPL-3.0-or-later
"""How an action was made, kept in the action itself."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import bpy

RECIPE = "mocap_recipe"
"""The action's custom property with the recipe, as JSON text."""

PLACE = "mocap_place"
"""The action's custom property with a :class:`Place`, as JSON text, where it has no recipe."""


@dataclass(frozen=True)
class Place:
    """What an action's object held before the action moves it: ``location`` and, where it is turned too, its ``rotation`` (wxyz)."""

    location: tuple[float, ...]
    rotation: tuple[float, ...] | None = None

    def as_dict(self) -> dict[str, object]:
        """As plain data, for JSON."""
        return asdict(self)


def store_recipe(action: bpy.types.Action, recipe: Mapping[str, object]) -> None:
    """Keep with an action how it was made."""
    action[RECIPE] = json.dumps(recipe, ensure_ascii=False, default=str)


def recipe_of(action: bpy.types.Action) -> dict[str, object] | None:
    """The recipe an action of ours carries, or None."""
    return _stored(action, RECIPE)


def store_place(action: bpy.types.Action, place: Place) -> None:
    """Keep with an action without a recipe where its object stood before."""
    action[PLACE] = json.dumps(place.as_dict())


def place_of(action: bpy.types.Action) -> Place | None:
    """Where the object of an action of ours stood before the action moves it; None when it does not."""
    recipe, place = (text if isinstance(text := action.get(name), str) else "" for name in (RECIPE, PLACE))
    return _place_in(recipe) or _place_in(place, whole=True)


@functools.lru_cache(maxsize=16)  # a recipe is long, and asked for its place again and again
def _place_in(text: str, *, whole: bool = False) -> Place | None:
    """The place that a recipe's text tells, or that a text is (``whole``)."""
    found = _parsed(text)
    stored = found if whole or found is None else found.get("place")
    if not isinstance(stored, dict):
        return None
    location, rotation = _numbers(stored.get("location"), 3), _numbers(stored.get("rotation"), 4)
    return Place(location, rotation) if location is not None else None


def _numbers(value: Any, count: int) -> tuple[float, ...] | None:
    good = isinstance(value, list) and len(value) == count and all(isinstance(x, int | float) for x in value)
    return tuple(float(x) for x in value) if good else None


def _stored(action: bpy.types.Action, name: str) -> dict[str, object] | None:
    return _parsed(action.get(name))


def _parsed(text: object) -> dict[str, object] | None:
    if not isinstance(text, str):
        return None
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
