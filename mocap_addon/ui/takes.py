# SPDX-License-Identifier: GPL-3.0-or-later
"""Takes that have been read, kept for the session, so that drawing a panel or redoing a step never reads a file twice."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import bpy

from .. import rig
from ..blender import takes as take_reader
from ..formats import ReadOptions
from ..motion.errors import FileError, MocapError
from ..motion.steps import Steps, run
from ..motion.take import Take
from . import recent, rig_takes, settings, summary
from .reading import Reading

KEPT_BYTES = 600_000_000
"""Takes beyond this are forgotten, the longest unused first; the newest is always kept."""


EXTENSIONS: tuple[str, ...] = take_reader.EXTENSIONS
"""Endings of the files that can be read, with the dot."""

FILE_FILTER = ";".join(f"*{ending}" for ending in EXTENSIONS)

Key = tuple[str, int, int, ReadOptions]

_readings: OrderedDict[Key, Reading] = OrderedDict()
_shown: dict[tuple[str, ReadOptions], Reading] = {}


def absolute(path: str) -> str:
    """A path as typed (``//`` is beside the .blend) -> an absolute one."""
    return os.path.normpath(bpy.path.abspath(path))


def read(path: str, options: ReadOptions) -> Reading:
    """Read a file, or take it from memory when it has not changed on disk.

    Raises
    ------
    MocapError
        One plain sentence.
    """
    with _progress(absolute(path)) as tell:
        return run(read_steps(path, options), tell, "Reading was cancelled.")


def read_steps(path: str, options: ReadOptions) -> Steps[Reading]:
    """:func:`read` step by step."""
    path = absolute(path)
    try:
        state = os.stat(path)
    except OSError:
        raise FileError("There is no such file; choose another one.", path) from None
    key = (path, state.st_size, state.st_mtime_ns, options)
    reading = _readings.get(key)
    if reading is None:
        found = yield from _read(path, options)
        roles = tuple(rig.match(take.skeleton) for take in found)
        reading = Reading(path, found, roles, summary.facts(found, roles), summary.reference(found[0]))
        _readings[key] = reading
    _readings.move_to_end(key)
    while len(_readings) > 1 and sum(r.nbytes for r in _readings.values()) > KEPT_BYTES:
        _readings.popitem(last=False)
    _show(path, options, reading)
    return reading


def chosen(scene: bpy.types.Scene) -> bool:
    """Whether the panel is set to a file or a rig."""
    return rig_takes.choice(scene) is not None if scene.mocap.source == "RIG" else bool(scene.mocap.filepath)


def label(scene: bpy.types.Scene) -> str:
    """What the panel is set to, in a word or two."""
    if scene.mocap.source == "RIG":
        return scene.mocap.source_rig.name if scene.mocap.source_rig is not None else "the rig"
    return os.path.basename(scene.mocap.filepath)


def read_for_panel(scene: bpy.types.Scene) -> Reading | None:
    """Read what the panel is set to. An error is kept for the panel to show; nothing is raised."""
    path = scene.mocap.filepath if scene.mocap.source == "FILE" else ""
    with _progress(absolute(path) if path else "") as tell:
        return run(panel_steps(scene), tell, "Reading was cancelled.")


def panel_steps(scene: bpy.types.Scene) -> Steps[Reading | None]:
    """:func:`read_for_panel` step by step."""
    if scene.mocap.source == "RIG":
        rig_choice = rig_takes.choice(scene)
        return None if rig_choice is None else (yield from rig_takes.read_or_say(rig_choice))
    path = scene.mocap.filepath
    if not path:
        return None
    try:
        reading = yield from read_steps(path, settings.read_options(scene.mocap))
        recent.add(reading.path)
    except MocapError as error:
        reading = say(scene, str(error))
    return reading


def say(scene: bpy.types.Scene, error: str) -> Reading:
    """Let the panel show why it has no take."""
    if scene.mocap.source == "RIG":
        rig_choice = rig_takes.choice(scene)
        return Reading("", error=error) if rig_choice is None else rig_takes.say(rig_choice, error)
    path = absolute(scene.mocap.filepath)
    reading = Reading(path, error=error)
    _show(path, _options_or_plain(scene), reading)
    return reading


def peek(scene: bpy.types.Scene) -> Reading | None:
    """What is known of the panel's take, from memory only; None when it has not been read. Never touches the disk."""
    if scene.mocap.source == "RIG":
        return loaded(scene)
    path = scene.mocap.filepath
    return _shown.get((absolute(path), _options_or_plain(scene))) if path else None


def loaded(scene: bpy.types.Scene) -> Reading | None:
    """The panel's take with its motion, from memory only; None when it is not (or no longer) there."""
    if scene.mocap.source == "RIG":
        rig_choice = rig_takes.choice(scene)
        return None if rig_choice is None else rig_takes.kept(rig_choice)
    path, options = absolute(scene.mocap.filepath), _options_or_plain(scene)
    return next((r for (p, _size, _time, o), r in reversed(_readings.items()) if p == path and o == options), None)


def joint_names(scene: bpy.types.Scene, text: str = "") -> list[str]:
    """Names of the take's joints that contain ``text``."""
    reading = peek(scene)
    if reading is None or not reading.takes:
        return []
    wanted = text.casefold()
    return [name for name in reading.takes[0].skeleton.names if wanted in name.casefold()]


def forget_all() -> None:
    """Let go of everything."""
    _readings.clear()
    _shown.clear()
    rig_takes.forget_all()


def _read(path: str, options: ReadOptions) -> Steps[tuple[Take, ...]]:
    if os.path.isdir(path):
        raise FileError("This is a folder; choose a file in it.", path)
    try:
        found = tuple((yield from take_reader.read_steps(path, options)))
    except OSError as error:
        raise FileError(f"The file cannot be read ({error.strerror or error}).", path) from None
    except MemoryError:
        raise FileError("The file asks for more memory than there is.", path) from None
    if not found:
        raise FileError("There is no take in this file.", path)
    return found


_LARGE = 30_000_000
"""Bytes that take about a second to read."""


@contextmanager
def _progress(path: str) -> Iterator[Callable[[float], None] | None]:
    """The number beside the mouse pointer while a large file is read."""
    if not os.path.exists(path) or os.path.getsize(path) < _LARGE:
        yield None
        return
    manager = bpy.context.window_manager
    manager.progress_begin(0, 100)
    try:
        yield lambda share: manager.progress_update(int(100 * share))  # returns None: never cancels
    finally:
        manager.progress_end()


def _options_or_plain(scene: bpy.types.Scene) -> ReadOptions:
    try:
        return settings.read_options(scene.mocap)
    except MocapError:
        return ReadOptions()


def _show(path: str, options: ReadOptions, reading: Reading) -> None:
    """The panel needs facts and joint names for as long as it shows the file, not the motion."""
    if len(_shown) > 32:
        _shown.clear()
    light = tuple(replace(take.block(0, 0), curves={}, props={}, valid=None) for take in reading.takes)
    _shown[path, options] = replace(reading, takes=light)
