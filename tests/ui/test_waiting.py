# SPDX-License-Identifier: GPL-3.0-or-later
"""Long reading in a window that stays alive, and Esc. The window is a stand-in: what it is asked for is written down."""

from __future__ import annotations

from types import SimpleNamespace

import bpy
import pytest

from mocap_addon.blender import sources
from mocap_addon.motion.errors import MocapError
from mocap_addon.ui import waiting
from tests.blender import take_makers as make
from tests.blender.snapshot import snapshot


class Window:
    """Stands for context, window manager and workspace."""

    def __init__(self) -> None:
        self.said: list[str | None] = []
        self.window, self.windows = object(), []
        self.window_manager = self.workspace = self
        self.open = 0

    def event_timer_add(self, _step, window):
        assert window is self.window
        self.open += 1
        return "timer"

    def event_timer_remove(self, timer):
        assert timer == "timer"
        self.open -= 1

    def progress_begin(self, _low, _high):
        self.open += 1

    def progress_end(self):
        self.open -= 1

    def progress_update(self, value):
        assert 0 <= value <= 100

    def modal_handler_add(self, _operator):
        self.said.append("modal")

    def status_text_set(self, text):
        self.said.append(text)


class Operator(waiting.Waits):
    def __init__(self) -> None:
        self.reports: list[tuple[set[str], str]] = []
        self.off = 0

    def report(self, kind, text):
        self.reports.append((kind, text))

    def broken_off(self, _context):
        self.off += 1

    def done(self, value) -> set[str]:
        self.value = value
        return {"FINISHED"}


def event(kind: str, value: str = "PRESS") -> SimpleNamespace:
    return SimpleNamespace(type=kind, value=value)


@pytest.fixture
def window(monkeypatch):
    monkeypatch.setattr(waiting, "PATIENCE", 0.0)
    monkeypatch.setattr(waiting, "SLICE", 0.0)
    monkeypatch.setattr(waiting, "bpy", SimpleNamespace(app=SimpleNamespace(background=False), types=bpy.types))
    return Window()


def slow(log: list[str], fails: bool = False):
    try:
        for k in range(3):
            yield k / 3
        if fails:
            raise MocapError("The file is damaged.")
        return "a take"
    finally:
        log.append("tidied")


def test_what_is_quick_never_waits(window):
    def quick():
        return 7
        yield

    operator = Operator()
    assert operator.wait(window, quick(), "a.bvh", operator.done) == {"FINISHED"}
    assert operator.value == 7 and not window.said and not window.open


def test_slices_between_events_until_it_is_done(window):
    operator, log = Operator(), []
    assert operator.wait(window, slow(log), "a.mvnx", operator.done) == {"RUNNING_MODAL"}
    assert window.open == 2 and "a.mvnx" in window.said[0] and "Esc" in window.said[0]
    assert operator.modal(window, event("LEFTMOUSE")) == {"RUNNING_MODAL"}  # goes nowhere else, and nothing was done for it
    for _ in range(2):
        assert operator.modal(window, event("TIMER")) == {"RUNNING_MODAL"}
    assert operator.modal(window, event("TIMER")) == {"FINISHED"}
    assert operator.value == "a take" and log == ["tidied"]
    assert window.open == 0 and window.said[-1] is None and not operator.reports


def test_escape_ends_it(window):
    operator, log = Operator(), []
    operator.wait(window, slow(log), "a.mvnx", operator.done)
    assert operator.modal(window, event("ESC", "RELEASE")) == {"RUNNING_MODAL"}
    assert operator.modal(window, event("ESC")) == {"CANCELLED"}
    assert log == ["tidied"] and operator.off == 1 and window.open == 0 and window.said[-1] is None
    assert operator.reports == [({"INFO"}, "Reading a.mvnx was cancelled.")]


def test_a_fault_on_the_way_is_one_sentence(window):
    operator, log = Operator(), []
    operator.wait(window, slow(log, fails=True), "a.mvnx", operator.done)
    results = [operator.modal(window, event("TIMER")) for _ in range(3)]
    assert results[-1] == {"CANCELLED"} and operator.reports == [({"ERROR"}, "The file is damaged.")] and window.open == 0


def test_a_rig_broken_off_half_way_is_as_it_was():
    obj = make.bvh_rig()
    make.second_action(obj, "Other")
    bpy.context.scene.frame_set(7)
    obj.pose.bones[3].location = (1.0, 2.0, 3.0)
    bpy.context.view_layer.update()
    before = snapshot()
    steps = sources.read_steps(obj, action="Other", method="depsgraph")
    for _ in range(5):
        share = next(steps)
    assert 0.0 < share < 1.0 and len(bpy.data.scenes) == 2
    steps.close()
    assert snapshot() == before
