# SPDX-License-Identifier: GPL-3.0-or-later
"""A measured figure and its limit."""

from __future__ import annotations

from typing import Any, Dict, NamedTuple, Optional


class Figure(NamedTuple):
    """One figure of a benchmark; without ``limit`` it is only shown. ``better`` says on which side of the limit it has to lie."""

    name: str
    value: float
    unit: str
    limit: Optional[float] = None
    better: str = "lower"

    @property
    def holds(self) -> bool:
        """Whether the figure keeps its limit. A value that is no number keeps none."""
        if self.limit is None:
            return True
        return self.value <= self.limit if self.better == "lower" else self.value >= self.limit

    def line(self, width: int) -> str:
        """The figure as a line of a table."""
        limit = "" if self.limit is None else f"{'at most' if self.better == 'lower' else 'at least'} {self.limit:g}"
        return f"{self.name:{width}}  {self.value:10.4g} {self.unit:6} {limit:16} {'' if self.holds else 'FALLS SHORT'}".rstrip()

    def record(self) -> Dict[str, Any]:
        """The figure for a JSON file."""
        return {**self._asdict(), "holds": self.holds}
