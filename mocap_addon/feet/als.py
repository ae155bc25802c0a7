# SPDX-License-Identifier: GPL-3.0-or-later
"""ALS."""

from __future__ import annotations

from .job import Job
from .result import FeetResult


def als_feet(job: Job, gate: object) -> FeetResult:
    """ALS."""
    raise NotImplementedError
