# SPDX-License-Identifier: GPL-3.0-or-later
"""What a bake of feet is asked for, as plain data: kept with the action, so that it can be made again after the scene has moved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, cast

import bpy

from ..feet.body import Sole
from ..feet.ground import Ground, Plane
from ..feet.settings import FeetSettings
from ..motion.errors import MocapError
from .control_rig import Controls
from .ground import scene_ground
from .ground_objects import ground_objects, in_collection, in_scene
from .recipes import recipe_of

FEET = "feet"
"""The recipe's entry."""

Kind = Literal["scene", "collection", "objects", "plane", "floor"]


@dataclass(frozen=True)
class GroundChoice:
    """What is ground.

    Parameters
    ----------
    kind : str
        ``scene``: all that can be seen and is no character; ``collection`` and ``objects``: those named; ``plane``: level, at ``height``;
        ``floor``: level, where the feet of the motion are lowest.
    names : tuple of str
    height : float
        Metres.
    """

    kind: Kind = "scene"
    names: tuple[str, ...] = ()
    height: float = 0.0

    @classmethod
    def of(cls, *things: bpy.types.Object | bpy.types.Collection) -> GroundChoice:
        """The choice of a collection, or of objects."""
        if len(things) == 1 and isinstance(things[0], bpy.types.Collection):
            return cls("collection", (things[0].name,))
        return cls("objects", tuple(thing.name for thing in things))

    def objects(self, scene: bpy.types.Scene) -> list[bpy.types.Object]:
        """The objects that are meant, whether they are ground or not.

        Raises
        ------
        MocapError
            There is no such collection or object.
        """
        if self.kind == "collection":
            found = [bpy.data.collections.get(name) for name in self.names]
            self._all_there(found, "collection")
            return [obj for one in found if one is not None for obj in in_collection(one)]
        if self.kind == "objects":
            picked = [bpy.data.objects.get(name) for name in self.names]
            self._all_there(picked, "object")
            return [obj for obj in picked if obj is not None]
        return in_scene(scene) if self.kind == "scene" else []

    def _all_there(self, found: Sequence[object], what: str) -> None:
        if not found:
            raise MocapError(f"No {what} is chosen as ground; choose one, or another kind of ground.")
        for name, one in zip(self.names, found, strict=True):
            if one is None:
                raise MocapError(f'The ground\'s {what} "{name}" is not in this file any more; choose another.')


@dataclass(frozen=True)
class FeetOptions:
    """How feet are baked.

    Parameters
    ----------
    settings : FeetSettings
    ground : GroundChoice
    frame_range : (float, float) or None
        Scene frames; None: the whole action.
    soles : mapping from "left" or "right" to Sole
        Measures that a person typed in.
    controls : Controls or None
        Where the keys go on driven rigs; None: where the action has them.
    keep : "fake_user" or "track"
        What holds the action from before: a fake user, or a muted NLA track.
    """

    settings: FeetSettings = field(default_factory=FeetSettings)
    ground: GroundChoice = field(default_factory=GroundChoice)
    frame_range: tuple[float, float] | None = None
    soles: Mapping[str, Sole] = field(default_factory=dict[str, Sole])
    controls: Controls | None = None
    keep: Literal["fake_user", "track"] = "fake_user"

    def as_dict(self) -> dict[str, Any]:
        """As plain data, for JSON."""
        return {
            "settings": asdict(self.settings),
            "ground": asdict(self.ground),
            "frame_range": self.frame_range,
            "soles": {side: asdict(sole) for side, sole in self.soles.items()},
            "controls": self.controls,
            "keep": self.keep,
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> FeetOptions:
        """The reverse; what is not known, or missing, is as by default."""
        ground = _known(GroundChoice, stored.get("ground"))
        if "names" in ground:
            ground["names"] = tuple(ground["names"])
        span = stored.get("frame_range")
        return cls(
            FeetSettings(**_known(FeetSettings, stored.get("settings"))),
            GroundChoice(**ground),
            None if span is None else (float(span[0]), float(span[1])),
            {side: Sole(**_known(Sole, sole)) for side, sole in (stored.get("soles") or {}).items()},
            cast("Controls | None", stored.get("controls")),
            "track" if stored.get("keep") == "track" else "fake_user",
        )


def _known(kind: type, stored: object) -> dict[str, Any]:
    names = {f.name for f in fields(kind)}
    return {key: value for key, value in stored.items() if key in names} if isinstance(stored, Mapping) else {}


@contextmanager
def opened(
    choice: GroundChoice, character: bpy.types.Object, scene: bpy.types.Scene, frame: float
) -> Iterator[tuple[Ground | None, tuple[str, ...]]]:
    """The ground that is meant, and what a person should know; None: the floor that the feet say themselves."""
    if choice.kind == "floor":
        yield None, ()
        return
    if choice.kind == "plane":
        yield Plane((0.0, 0.0, choice.height)), ()
        return
    objects = choice.objects(scene)
    if choice.kind == "scene" and not ground_objects(objects, character):
        yield None, ("The scene has nothing to stand on; the feet are put on a level floor where they are lowest.",)
        return
    with scene_ground(objects, character=character, scene=scene, frame=frame) as ground:
        yield ground, ground.notes


def feet_of(action: bpy.types.Action | None) -> dict[str, Any] | None:
    """What an action whose feet were baked says of that; None for any other."""
    found = (recipe_of(action) or {}).get(FEET) if action is not None else None
    return found if isinstance(found, dict) else None


def source_of(action: bpy.types.Action) -> bpy.types.Action:
    """The action that feet were planted in to make this one; :class:`MocapError` where it is gone."""
    name = str((feet_of(action) or {}).get("source"))
    found = bpy.data.actions.get(name)
    if found is None:
        raise MocapError(
            f'The action "{name}", from which the feet of "{action.name}" were baked, is not there any more; retarget the take anew.'
        )
    return found


def options_of(action: bpy.types.Action) -> FeetOptions:
    """How an action's feet were baked; :class:`MocapError` where they were not."""
    stored = feet_of(action)
    if stored is None:
        raise MocapError(f'The feet of the action "{action.name}" were not baked here; bake them first.')
    return FeetOptions.from_dict(stored.get("options") or {})
