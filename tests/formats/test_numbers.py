# SPDX-License-Identifier: GPL-3.0-or-later
"""The fast number reader equals ``float()`` bit for bit, whatever the spelling."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mocap_addon.formats import numbers

SPACES = st.sampled_from([" ", "  ", "\t", "\n", "\r\n", " \n "])
FIXED = st.tuples(st.floats(-1e7, 1e7), st.integers(0, 15)).map(lambda vd: f"{vd[0]:.{vd[1]}f}")
FLOATS = st.floats(allow_nan=False, allow_infinity=False).map(repr)
DIGITS = st.text("0123456789", min_size=1, max_size=24)
WRITTEN = st.tuples(
    st.sampled_from(["", "-", "+"]), DIGITS, st.sampled_from(["", ".", ".5", ".000000000000000000001", ".12345678901234567"])
).map("".join)
BARE_POINT = st.tuples(st.sampled_from(["", "-", "+"]), DIGITS).map(lambda sd: f"{sd[0]}.{sd[1]}")
EXPONENTS = st.tuples(st.floats(-1e3, 1e3), st.sampled_from("eE"), st.integers(-320, 300)).map(lambda t: f"{t[0]:.5f}{t[1]}{t[2]:+d}")
TOKENS = st.one_of(FIXED, FIXED, st.integers(-(10**9), 10**9).map(str), FLOATS, WRITTEN, BARE_POINT, EXPONENTS)


def as_float(token):
    value = float(token)
    return value if np.isfinite(value) else np.nan


def check(tokens, spaces):
    text = "".join(s + t for s, t in zip(spaces, tokens, strict=False)).encode()
    found = numbers.parse(text)
    expected = np.array([as_float(t) for t in tokens[: len(spaces)]])
    assert found.values.tobytes() == expected.tobytes()  # the sign of zero too
    assert [text[s:].split(None, 1)[0].decode() for s in found.starts.tolist()] == tokens[: len(spaces)]
    assert found.unreadable == ()


@settings(max_examples=400)
@given(st.lists(TOKENS, max_size=40), st.lists(SPACES, min_size=40, max_size=40))
def test_mixed_spellings(tokens, spaces):
    check(tokens, spaces)


@settings(max_examples=200)
@given(st.integers(0, 12), st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=60))
def test_fixed_decimals(decimals, values):
    check([f"{v:.{decimals}f}" for v in values], [" "] * len(values))


def test_every_length_of_digits():
    tokens = [
        f"{'-' if k % 2 else ''}{'123456789012345678901234'[:k]}.{'987654321098765432109876'[:m]}" for k in range(1, 20) for m in range(20)
    ]
    check(tokens, [" "] * len(tokens))


def test_a_million_random_numbers():
    rng = np.random.default_rng(3)
    values = rng.normal(size=200_000) * 10.0 ** rng.integers(-4, 6, size=200_000)
    text = " ".join(f"{v:.6f}" for v in values).encode()
    assert numbers.parse(text).values.tobytes() == np.array(text.split(), dtype=np.float64).tobytes()


@pytest.mark.parametrize("text", [b"", b" ", b"\n\n", b"\r\n \t"])
def test_nothing(text):
    assert len(numbers.parse(text).values) == 0


def test_glued():
    found = numbers.parse(b"1.5-2.5 3 4-5-6 7e-5-3.0+2 8")
    assert found.values.tolist() == [1.5, -2.5, 3, 4, -5, -6, 7e-5, -3, 2, 8]
    assert found.starts.tolist() == [0, 3, 8, 10, 11, 13, 16, 20, 24, 27]


@pytest.mark.parametrize("word", [b"nan", b"NaN", b"-NAN", b"1.#IND", b"-1.#QNAN", b"inf", b"-Infinity", b"nan(ind)"])
def test_not_a_number_is_no_error(word):
    found = numbers.parse(b"1.0 " + word + b" 2.0")
    np.testing.assert_array_equal(found.values, [1, np.nan, 2])
    assert found.unreadable == ()


@pytest.mark.parametrize("word", [b"x", b"1_0", b"1.2.3", b"--5", b".", b"-", b"0x10", b"1e", b"e5", b"5e5e5", b"\xff", b"1,5"])
def test_what_is_no_number_is_said(word):
    found = numbers.parse(b"1.0 " + word + b" 2.0")
    np.testing.assert_array_equal(found.values, [1, np.nan, 2])
    assert found.unreadable == (1,)


@settings(max_examples=400)
@given(st.binary(max_size=200))
def test_any_bytes(text):
    found = numbers.parse(text)
    assert len(found.values) == len(found.starts)
    assert not np.isinf(found.values).any()
    assert all(np.isnan(found.values[i]) for i in found.unreadable)


@settings(max_examples=400)
@given(st.text("0123456789.-+eE \nnaif#,_", max_size=60))
def test_anything_close_to_numbers(text):
    found = numbers.parse(text.encode())
    assert len(found.values) == len(found.starts)
    assert np.all(np.diff(found.starts) > 0)
    plain = text.split()
    if not any(set(token) - set("0123456789.") for token in plain):
        expected = [float(t) if t.count(".") < 2 and t != "." else np.nan for t in plain]
        np.testing.assert_array_equal(found.values, expected)
