# SPDX-License-Identifier: GPL-3.0-or-later
"""Many takes onto one character in one call, each as an action of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager
from dataclasses import dataclass

import bpy

from ..motion.errors import MocapError
from ..motion.take import Take
from ..rig.table import CorrectionTable
from . import companions, compat, job, sources
from .armature import check
from .job import JobOptions, character_of
from .rig_graph import restorer


@dataclass(frozen=True, eq=False)
class Retargeted:
    """What came of one take; the motion itself is in the action alone. ``timing`` is that of :class:`.job.JobResult`."""

    take: str
    action: bpy.types.Action
    table: CorrectionTable
    notes: tuple[str, ...]
    timing: dict[str, float]


def retarget_all(
    obj: bpy.types.Object,
    takes: Iterable[Take],
    *,
    table: CorrectionTable | None = None,
    options: JobOptions | None = None,
    progress: Callable[[int], bool | None] | None = None,
) -> list[Retargeted]:
    """Carry several takes onto an armature object: all of them, or none.

    Parameters
    ----------
    obj : armature object
    takes : iterable of Take
        Asked for one after another, and let go of: a generator that reads them keeps one in memory at a time.
    table : CorrectionTable, optional
        For all of them; computed for each when missing.
    options : JobOptions, optional
        A name in it is for a single take; with several, actions are called after their takes.
    progress : callable, optional
        Called with the number of takes done; returning False cancels with a :class:`MocapError`.

    Returns
    -------
    list of Retargeted
        In the order of the takes. The first one's action is left assigned, the others are kept with a fake user.

    Raises
    ------
    MocapError
        One plain sentence, with the take's name where it is one's fault of several; nothing has been changed then.
    """
    out: list[Retargeted] = []
    options = options or JobOptions()
    alone = isinstance(takes, Sized) and len(takes) == 1
    with all_or_none(obj):
        # Read once: it is the same for all of them, and reading it evaluates the scene with what is assigned.
        character = character_of(obj, table=table, options=options)
        for take in takes:
            with _naming("" if alone else take.name):
                result = job.retarget_onto(obj, take, table=table, options=options, character=character)
            out.append(Retargeted(take.name, result.action, result.table, result.notes, result.timing))
            del take, result  # let go of before the next one is read
            if progress is not None and progress(len(out)) is False:
                raise MocapError(f'Putting takes onto "{obj.name}" was cancelled.')
        if not out:
            raise MocapError("There is no take to put onto the character.")
        first = out[0].action
        if len(out) > 1:
            out[-1].action.use_fake_user = True
            compat.assign(obj.animation_data, first, compat.slots(first)[0])
            first.use_fake_user = False
            companions.assign_all(first)
    return out


def takes_of_rig(source: bpy.types.Object) -> Iterator[Take]:
    """Every action of a rig in the scene, read when it is asked for: what "retarget all" takes."""
    for found in sources.takes_of(source):
        if found.kind == "action":
            yield sources.read_rig(source, action=found.action, slot=found.slot or None)


@contextmanager
def _naming(take: str) -> Iterator[None]:
    try:
        yield
    except MocapError as error:
        if take:
            error.args = (f'Take "{take}": {error}',)
        raise


@contextmanager
def all_or_none(obj: bpy.types.Object) -> Iterator[None]:
    """Whatever is raised inside leaves the object's actions, assignments and pose as they were."""
    check(obj)
    animation = obj.animation_data
    action = animation.action if animation else None
    kept = action is not None and action.use_fake_user
    before = {a.session_uid for a in bpy.data.actions}
    restore = restorer(obj)  # reading the character evaluates what was assigned: the pose has to be put back too
    try:
        with companions.kept(obj):
            yield
    except BaseException:
        try:
            restore()
        finally:
            if action is not None:
                action.use_fake_user = kept
            for new in [a for a in bpy.data.actions if a.session_uid not in before]:
                bpy.data.actions.remove(new)
        raise
