# SPDX-License-Identifier: GPL-3.0-or-later
"""Numbers as text: what JSON reads back is what went in, and no text is longer than Python's own."""

from __future__ import annotations

import json

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mocap_addon.formats.number_text import listed, listed_all


@given(st.lists(st.floats(-2e6, 2e6, allow_nan=False), min_size=1, max_size=30), st.integers(0, 9))
def test_numbers_come_back(values, decimals):
    rounded = np.round(np.array(values), decimals) + 0.0
    text = listed(rounded, decimals)
    assert json.loads(text) == rounded.tolist()
    assert len(text) <= len(json.dumps(rounded.tolist(), separators=(",", ":")))


def test_many_lists_at_once_are_each_by_itself():
    rng = np.random.default_rng(4)
    lists = [np.round(rng.normal(size=size) * 10.0 ** rng.integers(-5, 3), 6) for size in (3, 0, 5000, 4, 9000, 1, 2000, 0)]
    assert listed_all(lists, 6) == [listed(values, 6) for values in lists]
    assert [json.loads(text) for text in listed_all(lists, 6)] == [values.tolist() for values in lists]
    assert listed_all([], 6) == []


def test_literal_texts():
    assert listed(np.array([0.0, 1.0, -0.5, 12.25, 0.0000001, -100.0]), 7) == "[0,1,-0.5,12.25,1e-7,-100]"
    assert listed(np.array([0.0001, 0.0000999, -0.0000120, 123456.7]), 7) == "[0.0001,999e-7,-12e-6,123456.7]"
    assert listed(np.array([0.00001]), 5) == "[1e-5]"
    assert listed(np.zeros(0), 7) == "[]"
    assert listed(np.array([3.0]), 0) == "[3]"
    assert json.loads(listed(np.array([1e20]), 7)) == [1e20]
