# SPDX-License-Identifier: GPL-3.0-or-later
"""A scene of its own in which ground is evaluated. No window shows it, so nothing is written back to the objects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager

import bpy
import numpy as np
from numpy.typing import NDArray

from .ground_objects import SOLID_TYPES

Array = NDArray[np.float64]


@contextmanager
def evaluating(objects: Iterable[bpy.types.Object]) -> Iterator[bpy.types.Scene]:
    """A scene with nothing but the objects and what they need, which is gone afterwards."""
    scene = bpy.data.scenes.new("Mocap")
    try:
        for obj in objects:
            scene.collection.objects.link(obj)
        yield scene
    finally:
        bpy.data.scenes.remove(scene)


def placed(
    graph: bpy.types.Depsgraph, owners: Mapping[bpy.types.Object, int], allowed: Callable[[bpy.types.Object], bool]
) -> Iterator[tuple[bpy.types.Object, bpy.types.Object, bool, Array]]:
    """Everything with a surface that belongs to ``owners``: whose it is, the evaluated object (good until the next one is asked for),
    whether it is an instance, and its world matrix. Of instances only what is ``allowed``."""
    for instance in graph.object_instances:
        ready, is_instance = instance.object, instance.is_instance and instance.parent is not None
        owner = instance.parent.original if is_instance else ready.original
        if owner not in owners or ready.type not in SOLID_TYPES or ready.data is None:
            continue
        if is_instance and ready.original != owner and not allowed(ready.original):
            continue
        yield owner, ready, is_instance, np.array(instance.matrix_world, dtype=np.float64)
