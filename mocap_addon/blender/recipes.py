# SPDX-License-Identifier: GPL-3.0-or-later
"""How an action was made, kept in the action itself."""

from __future__ import annotations

import json
from collections.abc import Mapping

import bpy

RECIPE = "mocap_recipe"
"""The action's custom property with the recipe, as JSON text."""


def store_recipe(action: bpy.types.Action, recipe: Mapping[str, object]) -> None:
    """Keep with an action how it was made."""
    action[RECIPE] = json.dumps(recipe, ensure_ascii=False, default=str)


def recipe_of(action: bpy.types.Action) -> dict[str, object] | None:
    """The recipe an action of ours carries, or None."""
    text = action.get(RECIPE)
    if not isinstance(text, str):
        return None
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
