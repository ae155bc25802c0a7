# SPDX-License-Identifier: GPL-3.0-or-later
"""A character's actions as a page for the browser: before and after, feet and their speeds."""

from __future__ import annotations

import tempfile
import webbrowser
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import bpy
import numpy as np

from .. import rig
from ..formats import clip_reduce, gltf_clips, gltf_nodes, viewer_page
from ..formats.gltf_clips import GlbWriting
from ..formats.node_clip import NodeClip
from ..formats.node_metric import Body
from ..formats.viewer_page import Before, Shown
from ..motion.errors import MocapError
from ..motion.take import Take
from . import export, feet_recipe, recipes, sources, takes, update_source
from .export import ExportedFile, ExportOptions, Job
from .node_clips import Made

_BOUND = 1e-4
_SIDES = ("left", "right")


@dataclass(frozen=True, eq=False)
class PageClip:
    """A clip for a page: on the character's nodes, what it was made of, and notes."""

    clip: NodeClip
    source: Take | None = None
    notes: Sequence[str] = ()


def write(job: Job) -> tuple[list[ExportedFile], list[str]]:
    """The page of an export's clips, each beside the take its action was made of where that is still to be had."""
    if job.stage.path is None:
        raise MocapError("The page needs the character's glTF file.")
    path = job.folder / f"{job.stem}{viewer_page.SUFFIX}"
    clips = [PageClip(one.clip, _source(job, one), one.notes) for one in job.made]
    size, error = page(path, job.stage.path, clips, character=_title(job), roles=roles_of(job), bound=job.options.bound or _BOUND)
    names = tuple(one.clip.name for one in clips)
    return [ExportedFile(path, "viewer", names, size, error, seconds=max(one.clip.duration for one in clips))], []


def page(
    path: Path,
    gltf: Path,
    clips: Sequence[PageClip],
    *,
    character: str,
    roles: Mapping[str, str],
    title: str | None = None,
    bound: float = _BOUND,
) -> tuple[int, float]:
    """Write a page; its size in bytes, and the largest error of a clip in metres.

    Parameters
    ----------
    path : Path
    gltf : Path
        The character's file.
    clips : sequence of PageClip
    character : str
        What it is called.
    roles : mapping of role to node
        Names in the character's file, as three's loader has them.
    title : str, optional
    bound : float
        Metres.
    """
    tree = gltf_nodes.read_tree(gltf)
    body = Body(tree, sorted(tree.joints) or range(len(tree)))
    compacts = [clip_reduce.compact(one.clip, body, bound, GlbWriting()) for one in clips]
    glb = gltf_clips.character(gltf, compacts).glb()
    seen: dict[int, Before] = {}
    shown: list[Shown] = []
    for one, compact in zip(clips, compacts, strict=True):
        before = None
        if one.source is not None and one.source.frames and len(one.source.skeleton) > 1:
            before = seen.get(id(one.source)) or _before(one.source)
            seen[id(one.source)] = before
        shown.append(Shown(one.clip.name, one.clip.rate, before, contacts_of(one.clip), compact.measured.worst, tuple(one.notes)))
    size = viewer_page.write(path, glb, shown, title=title or character, character=character, feet=_feet(roles))
    return size, max(one.measured.worst for one in compacts)


def contacts_of(clip: NodeClip) -> dict[str, list[tuple[float, float]]]:
    """``left`` and ``right`` -> the (start, end) seconds at which a foot stands, where curves that travel with the clip say so.

    The locks of planted feet come before the contacts that a recording brought along; without either nothing is said.
    """
    found = {curve.name: curve.values for curve in clip.scalars}
    out: dict[str, list[tuple[float, float]]] = {}
    for side in _SIDES:
        letter = side[0]
        names = [n for n in (f"foot_lock_{letter}",) if n in found] or [n for n in found if n.startswith(f"contact_{letter}_")]
        if names:
            on = np.max([found[n] for n in names], axis=0) > 0.5
            edges = np.flatnonzero(np.diff(np.concatenate([[False], on, [False]]).astype(np.int8)))
            out[side] = [
                (float(clip.times[a]), float(clip.times[b - 1])) for a, b in zip(edges[::2], edges[1::2], strict=True) if b - a > 1
            ]
    return out


def roles_of(job: Job) -> dict[str, str]:
    """Role -> the name of its node."""
    stage = job.stage
    found = rig.match(stage.target.skeleton)
    out: dict[str, str] = {}
    for role, joints in found.joints.items():
        if joints and int(stage.nodes[joints[0]]) >= 0:
            out[role] = stage.tree.loader_names[int(stage.nodes[joints[0]])]
    return out


def preview(
    obj: bpy.types.Object,
    names: Sequence[str | tuple[str, str]],
    *,
    folder: Path | None = None,
    character: str | Path | None = None,
    open_it: bool = True,
) -> Path:
    """Write the page of actions of a character into ``folder`` (a temporary one by default) and open it in the browser.

    ``character`` is the glTF file it came from; by default it is exported.

    Raises
    ------
    MocapError
        Nothing moves, or the page cannot be written.
    """
    if folder is None:  # gone when Blender ends
        folder = Path(bpy.app.tempdir or tempfile.gettempdir()) / "mocap-preview"
        folder.mkdir(parents=True, exist_ok=True)
    report = export.export_actions(obj, names, folder, ExportOptions(("viewer",), bound=_BOUND), character=character)
    path = report.files[0].path
    if open_it:
        webbrowser.open(path.as_uri())
    return path


def _title(job: Job) -> str:
    """The object's name; the file's where that says nothing."""
    name, path = job.stage.obj.name, job.stage.path
    says_nothing = name.split(".")[0] in ("Armature", "Rig", "root", "Root")
    return path.stem if says_nothing and path is not None and not path.name.startswith(".") else name


def _source(job: Job, made: Made) -> Take | None:
    """What an action was made of: the action whose feet were planted, else the take, read again; None where that is gone."""
    action = bpy.data.actions.get(made.clip.name)
    if action is None:
        return None
    try:
        below = str((feet_recipe.feet_of(action) or {}).get("source") or "")
        if below in bpy.data.actions:
            return sources.read_rig(job.stage.obj, action=bpy.data.actions[below])
        recipe = recipes.recipe_of(action)
        return None if recipe is None else update_source.take_again(recipe, takes.read_takes)
    except (MocapError, KeyError, TypeError, ValueError, IndexError, AttributeError):
        return None


def _before(take: Take) -> Before:
    roles = rig.match(take.skeleton)
    glb = viewer_page.skeleton_of(take)
    nodes = gltf_nodes.sanitize
    feet = {
        side: [nodes(take.skeleton.names[roles.joints[role][0]]) for role in (f"{side}Foot", f"{side}Toes") if roles.joints.get(role)]
        for side in _SIDES
    }
    return Before(take.name, glb, feet if any(feet.values()) else None)


def _feet(roles: Mapping[str, str]) -> dict[str, list[str]] | None:
    feet = {side: [roles[role] for role in (f"{side}Foot", f"{side}Toes") if role in roles] for side in _SIDES}
    return feet if any(feet.values()) else None
