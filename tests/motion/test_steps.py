# SPDX-License-Identifier: GPL-3.0-or-later
"""Work in steps: what it gives, how far it says it is, and what is left when it is broken off."""

from __future__ import annotations

import pytest

from mocap_addon.motion.errors import MocapError
from mocap_addon.motion.steps import at_once, run


def work(log: list[str], count: int = 4):
    log.append("begun")
    try:
        for k in range(count):
            yield (k + 1) / count
        return "made"
    finally:
        log.append("tidied")


def test_every_step_is_told_and_the_result_comes():
    log, shares = [], []
    assert run(work(log), shares.append, "Cancelled.") == "made"
    assert shares == [0.25, 0.5, 0.75, 1.0] and log == ["begun", "tidied"]
    assert run(work(log), None, "Cancelled.") == "made"


def test_no_ends_it_and_nothing_stays_open():
    log: list[str] = []
    with pytest.raises(MocapError, match=r"^Reading was cancelled\.$"):
        run(work(log), lambda share: share < 0.5, "Reading was cancelled.")
    assert log == ["begun", "tidied"]


def test_an_error_of_the_work_itself_comes_through():
    def broken():
        yield 0.5
        raise MocapError("The file is damaged.")

    with pytest.raises(MocapError, match="damaged"):
        run(broken(), None, "Cancelled.")


def test_what_has_no_steps():
    assert run(at_once(7), lambda _share: False, "Cancelled.") == 7
