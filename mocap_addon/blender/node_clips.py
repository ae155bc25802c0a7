# SPDX-License-Identifier: GPL-3.0-or-later
"""Motions of an armature -> clips on the nodes of its glTF file, before anything is made smaller or written.

A clip is made of an action as Blender plays it (:func:`of_action`), or of the arrays of a retarget (:func:`of_motion`). Both give the
channels of what moves, and of what stands elsewhere than the file has it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import bpy
import numpy as np
from numpy.typing import NDArray

from .. import rig
from ..formats import gltf_morph_meshes, gltf_nodes, node_clip, node_pose
from ..formats.gltf_morph_meshes import MorphMesh
from ..formats.gltf_nodes import NodeTree
from ..formats.node_clip import NodeClip
from ..formats.node_metric import Body
from ..motion import quat
from ..motion.errors import FileError
from ..motion.scaled_pose import ScaledPose
from ..motion.take import Take
from ..retarget.motion import PoseMotion
from . import armature, clip_extras, clip_frames, clips, curves, playing, rig_graph, rig_world, scenes, sources
from .armature import Target
from .playing import Playing

Array = NDArray[np.float64]
Progress = Callable[[float], bool | None]

_TURNS, _MOVES = 1e-6, 1e-6
"""Difference of quaternions, metres: what changes less stands still."""
_EVALUATED = 10.0
"""So many times more is rounding where Blender itself evaluated the pose, in single precision matrices."""


@dataclass(frozen=True, eq=False)
class Stage:
    """A character and the glTF file its clips are for.

    Parameters
    ----------
    obj : armature object
    target : Target
    tree : NodeTree
    nodes : (J,) int array
        For each bone its node, -1 where the file has none.
    path : path or None
        The file; None: what Blender's exporter writes of this armature.
    morphs : tuple of MorphMesh
    """

    obj: bpy.types.Object
    target: Target
    tree: NodeTree
    nodes: NDArray[np.int64]
    path: Path | None
    morphs: tuple[MorphMesh, ...] = ()

    @cached_property
    def body(self) -> Body:
        """What errors are measured on: the bones."""
        return Body(self.tree, (int(n) for n in self.nodes if n >= 0))

    @cached_property
    def rig(self) -> rig_world.Body:
        """The armature's bones in its own axes, for reading its actions: they are the same for all of them."""
        return rig_world.read_body(self.obj)

    @cached_property
    def renamed(self) -> dict[str, str]:
        """Names in three.js that differ from the bones'."""
        pairs = zip(self.nodes.tolist(), self.target.skeleton.names, strict=True)
        return {self.tree.loader_names[n]: bone for n, bone in pairs if n >= 0 and self.tree.loader_names[n] != bone}

    @property
    def place(self) -> str:
        """The file's name for a sentence."""
        return self.path.name if self.path is not None else "the export"


@dataclass(frozen=True, eq=False)
class Made:
    """A clip, the take it was made of, and what a person should know about it.

    ``gap`` is how far, in metres, Blender's own way between the keys is from it.
    """

    clip: NodeClip
    take: Take
    notes: tuple[str, ...] = ()
    gap: float | None = None
    facts: Mapping[str, object] = field(default_factory=dict[str, object])


def stage(
    obj: bpy.types.Object,
    character: str | Path | None = None,
    scene: bpy.types.Scene | None = None,
    target: Target | None = None,
) -> Stage:
    """A character made ready.

    Parameters
    ----------
    obj : armature object
    character : path, optional
        The glTF file that clips will play on; by default what Blender's exporter writes of this armature.
    scene : scene, optional
    target : Target, optional
        ``armature.read(obj)``, where it is known.

    Raises
    ------
    MocapError
        The object is no armature, or the file is no glTF file.
    """
    scene = scene or bpy.context.scene
    playing.check(obj)
    target = target or armature.read(obj, scene)
    if character is None:
        tree, data = clips.tree_of(obj, scene, target), {}
    else:
        data = gltf_nodes.read_json(character)
        tree = gltf_nodes.tree(data, Path(character))
    nodes = node_pose.match(tree, target.skeleton, obj.name)
    morphs = tuple(gltf_morph_meshes.morph_meshes(data)) if data else tuple(clip_extras.own_meshes(obj, (scene.name, *tree.names)))
    return Stage(obj, target, tree, nodes, Path(character) if character is not None else None, morphs)


@curves.remembered()
def of_action(
    on: Stage,
    chosen: Playing,
    *,
    name: str | None = None,
    scene: bpy.types.Scene | None = None,
    bones: Iterable[str] | None = None,
    bound: float | None = None,
    gap: bool = False,
    in_place: bool = False,
    progress: Progress | None = None,
) -> Made:
    """What Blender plays of an action, on every frame and every key between frames.

    Parameters
    ----------
    on : Stage
    chosen : Playing
        See :func:`.playing.choose`; assigned or not, in any slot.
    name : str, optional
        The clip's; the action's by default.
    scene : scene, optional
        Whose rate counts.
    bones : iterable of str, optional
        Only these; the others stay as the file has them.
    bound : float, optional
        Metres: more samples are taken wherever Blender's own way between two differs by more from the slerp that players do.
    gap : bool
        Measure that difference even so.
    in_place : bool
        Take the way over the ground off, and give it apart.

    Raises
    ------
    MocapError
        Nothing moves, or the file is another character's.
    """
    scene = scene or bpy.context.scene
    fps = scenes.scene_rate(scene)
    frames = clip_frames.sample_frames(chosen, scene)

    def sampled(at: Array) -> tuple[Take, ScaledPose | None]:
        take, pose = sources.sample_scaled(chosen, at, fps, scene=scene, progress=progress, body=on.rig)
        times = (at - frames[0]) * float(fps.denominator) / float(fps.numerator)
        return replace(take, times=times, rate=clip_frames.rate_of(at, fps)), pose

    take, pose = sampled(frames)
    apart: float | None = None
    if bound is not None or gap:
        from . import match_blender

        (take, pose), frames, apart = match_blender.refined(on, (take, pose), frames, sampled, bound)
    notes = [note for note in take.notes if "moves by itself" not in note and not note.startswith(rig_graph.SCALED)]
    loosely = 1.0 if take.facts.get("evaluated") == "curves" else _EVALUATED
    take = _from_where_it_stands(on, take)
    way = None
    if in_place:
        take, way = _without_way(on, take)
    posed, scales = (take, None) if pose is None else (pose.onto(take), pose.scales)
    turning, moving = _changing(posed, loosely)
    clip = _built(on, posed, turning, moving, scales, None, bones)
    shapes = clip_extras.shapes(on.obj, chosen, frames)
    clip = replace(
        clip,
        name=name or chosen.name,
        path=way,
        morphs=clip_extras.morphs(on, shapes),
        scalars=clip_extras.scalars(chosen, frames),
        user_data={"bones": on.renamed} if on.renamed else {},
    )
    facts: dict[str, object] = {"frames": len(frames), "evaluated": take.facts.get("evaluated"), "frame_start": float(frames[0])}
    facts["shapes"] = shapes
    scaling: set[int] = set()
    if pose is not None:
        facts["scaled"] = tuple(_named(on, pose.scaled))
        scaling = set(np.flatnonzero(np.ptp(pose.scales, axis=0).max(axis=1) > 0.0).tolist())
        notes += _bent(on, pose)
    return Made(clip, replace(take, name=clip.name), (*notes, *_missing(on, turning | moving | scaling)), apart, facts)


def _named(on: Stage, which: NDArray[np.bool_]) -> list[str]:
    return [on.target.skeleton.names[j] for j in np.flatnonzero(which)]


def _bent(on: Stage, pose: ScaledPose) -> list[str]:
    """A note on bones whose shape no node can have; of a chain of them the first is named."""
    parents = on.target.skeleton.parents
    names = _named(on, pose.bent & ~((parents >= 0) & pose.bent[parents]))
    if not names:
        return []
    return [
        "These bones, with what hangs on them, are scaled in a way that a node cannot be (a shear: their Inherit Scale is not Full, and "
        f"what is above them is scaled unevenly); their joints stand right, their shape is only near: {clips._listed(names)}."
    ]


def of_motion(on: Stage, motion: PoseMotion, *, name: str | None = None, bones: Iterable[str] | None = None) -> Made:
    """A retarget's arrays; bones that they do not key keep the pose they have on the object."""
    keyed = set(motion.bones) | set(motion.moving)
    notes = [*motion.notes, *_missing(on, keyed)]
    take, scales = clips.whole_pose(on.obj, on.target, motion)
    carrier = clips._carrier(on.tree, on.nodes, on.obj.name, motion)
    if carrier is None:
        take = motion.carried(take)  # the file has no node for the armature: its root bones move as it does
    skeleton = on.target.skeleton
    moving = {j for j in motion.moving if not on.target.connected[j]}
    loose = np.flatnonzero(~on.target.inherits_rotation & (skeleton.parents >= 0))
    turning = set(motion.bones) | set(loose.tolist())
    if carrier is None and clips._object_moves(motion):
        turning, moving = turning | set(skeleton.roots), moving | set(skeleton.roots)
    clip = _built(on, take, turning, moving, scales, carrier, bones)
    morphs, scalars = clip_extras.divided(on, motion.curves)
    data = {"bones": on.renamed} if on.renamed else {}
    clip = replace(clip, name=name or motion.name, rate=motion.rate, morphs=morphs, scalars=scalars, user_data=data)
    facts = {"shapes": clip_extras.shapes_named(on.obj, motion.curves)}
    return Made(clip, replace(motion.carried(take) if carrier is not None else take, name=clip.name), tuple(notes), facts=facts)


def _from_where_it_stands(on: Stage, take: Take) -> Take:
    """Relative to where the armature stands: a take of an object that moves is in the world."""
    if not any("moves by itself" in note for note in take.notes):
        return take
    return take.rerooted(lambda q: q, lambda v: v - on.target.origin, rest=False)


def _changing(take: Take, loosely: float) -> tuple[set[int], set[int]]:
    def changing(values: Array, least: float) -> set[int]:
        return set(np.flatnonzero(np.abs(values - values[:1]).max(axis=(0, 2)) > least * loosely).tolist())

    return changing(take.local_rotations, _TURNS), changing(take.local_translations, _MOVES)


def _without_way(on: Stage, take: Take) -> tuple[Take, tuple[Array, Array]]:
    """The take as on a treadmill, and the way apart as the motion of the whole scene: places and turns in the file's axes."""
    from ..retarget.root_path import RootPath, headings_of

    skeleton = take.skeleton
    hips = rig.match(skeleton).one("hips")
    if hips is None:
        raise FileError("No hips are found on this character, so there is no way to take off; export it as it is.")
    turns = quat.mul(take.global_rotations[:, hips], quat.inv(skeleton.rest_global_rotations[hips]))
    path = RootPath(take.global_positions[:, hips], headings_of(turns, take.times), skeleton.rest_global_positions[hips])
    path = path.only("xy", heading=True)
    back = quat.inv(path.turns)
    left = take.rerooted(lambda q: quat.mul(back, q), lambda v: path.anchor + quat.rotate(back, v - path.places), rest=False)
    origin = on.target.origin
    shifts = path.shifts + origin - quat.rotate(path.turns, origin)
    c = node_pose.TO_GLTF
    return left, (quat.rotate(c, shifts), quat.continuous(quat.mul(quat.mul(c, path.turns), quat.inv(c))))


def _built(
    on: Stage,
    take: Take,
    turning: set[int],
    moving: set[int],
    scales: Array | None,
    carrier: node_pose.Carrier | None,
    bones: Iterable[str] | None,
) -> NodeClip:
    if len(take.times) == 0:
        raise FileError(f'The take "{take.name}" has no frames; there is nothing to write.', on.path)
    times = take.times - take.times[0]
    try:
        motions = node_pose.node_motions(take, on.tree, on.nodes, turning, moving, scales, carrier)
    except FileError as error:
        raise FileError(str(error), on.path) from None
    channels = node_clip.channels_of(times, motions)
    clip = NodeClip(take.name, times, channels, take.rate)
    if bones is not None:
        clip = node_clip.only(clip, _nodes_of(on, bones))
    if not clip.channels:
        raise FileError(f'The clip "{take.name}" moves nothing of what is to be exported; choose more bones, or another action.')
    return clip


def _nodes_of(on: Stage, bones: Iterable[str]) -> list[int]:
    skeleton = on.target.skeleton
    unknown = [name for name in bones if name not in skeleton]
    if unknown:
        raise FileError(f'"{on.obj.name}" has no bone called "{unknown[0]}"; choose bones of this character.')
    return [int(on.nodes[skeleton.index(name)]) for name in bones]


def _missing(on: Stage, keyed: set[int]) -> list[str]:
    """A note on moving bones that the file does not have; :class:`FileError` where it lacks most of them."""
    missing = node_pose.unmatched(on.target.skeleton, on.nodes, keyed)
    if keyed and len(missing) > len(keyed) // 2:
        raise FileError(
            f'Only {len(keyed) - len(missing)} of the {len(keyed)} moving bones of "{on.obj.name}" are in this file; '
            "give the file this character came from.",
            on.path,
        )
    return [f"These bones are not in {on.place} and move nothing there by themselves: {clips._listed(missing)}."] if missing else []


def with_extras(on: Stage, made: Made, chosen: Playing, frames: Array) -> Made:
    """The clip of a retarget with the morph targets and numbers that its action holds at its frames."""
    if len(frames) != len(made.clip.times):
        return made
    shapes = clip_extras.shapes(on.obj, chosen, frames)
    clip = replace(made.clip, morphs=clip_extras.morphs(on, shapes), scalars=clip_extras.scalars(chosen, frames))
    return replace(made, clip=clip, facts={**made.facts, "shapes": shapes})
