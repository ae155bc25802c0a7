# SPDX-License-Identifier: GPL-3.0-or-later
"""Numbers as text: what JSON reads back is what went in, and no text is longer than Python's own."""

from __future__ import annotations

import json

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mocap_addon.formats.number_text import listed


@given(st.lists(st.floats(-2e6, 2e6, allow_nan=False), min_size=1, max_size=30), st.integers(0, 9))
def test_numbers_come_back(values, decimals):
    rounded = np.round(np.array(values), decimals) + 0.0
    text = listed(rounded, decimals)
    assert json.loads(text) == rounded.tolist()
    assert len(text) <= len(json.dumps(rounded.tolist(), separators=(",", ":")))


def test_literal_texts():
    assert listed(np.array([0.0, 1.0, -0.5, 12.25, 0.0000001, -100.0]), 7) == "[0,1,-0.5,12.25,0.0000001,-100]"
    assert listed(np.zeros(0), 7) == "[]"
    assert listed(np.array([3.0]), 0) == "[3]"
    assert json.loads(listed(np.array([1e20]), 7)) == [1e20]
