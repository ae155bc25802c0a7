# SPDX-License-Identifier: GPL-3.0-or-later
"""The scanner of Unity's YAML: what was written is what is read; damaged text ends in one sentence."""

from __future__ import annotations

from pathlib import Path

import hypothesis.strategies as st
import numpy as np
from hypothesis import HealthCheck, given, settings

from mocap_addon import cli
from mocap_addon.formats import unity_clip
from mocap_addon.formats.unity_yaml import Parser
from mocap_addon.motion.errors import FileError

from .unity_writer import Clip, Key, curve, float_curve, formula, text

NAMES = st.text("abcXYZ_019 .-é骨", min_size=1, max_size=12).map(str.strip).filter(lambda s: s and s[0] not in "-." and ": " not in s)
SCALARS = st.one_of(NAMES, st.integers().map(str), st.sampled_from(["No", "1e-05", "-Infinity", "", "12:30", "a:b", "{}"]))
TREES = st.recursive(
    SCALARS,
    lambda below: st.one_of(st.lists(below, min_size=1, max_size=4), st.dictionaries(NAMES, below, min_size=1, max_size=4)),
    max_leaves=12,
)


def quoted(value: str, style: int) -> str:
    if (
        style == 0
        and value
        and value[0] not in "{}[]\"'&*!|>%@`#- ,"
        and " #" not in value
        and ": " not in value
        and not value.endswith(":")
    ):
        return value
    if style == 1:
        return "'" + value.replace("'", "''") + "'"
    return '"' + "".join(c if c.isascii() and c not in '"\\' else f"\\u{ord(c):04X}" for c in value) + '"'


def dumped(tree, indent: int, style: int) -> str:
    """Block style as Unity's: lists stand at their field's own indent."""
    pad = " " * indent
    if isinstance(tree, dict):
        out = ""
        for name, value in tree.items():
            if isinstance(value, str):
                out += f"{pad}{quoted(name, style)}: {quoted(value, style) if value else ''}\n"
            else:
                out += f"{pad}{quoted(name, style)}:\n" + dumped(value, indent if isinstance(value, list) else indent + 2, style)
        return out
    out = ""
    for item in tree:
        if isinstance(item, str):
            out += f"{pad}- {quoted(item, style) if item else ''}\n"
        elif isinstance(item, dict):
            out += f"{pad}- " + dumped(item, indent + 2, style)[indent + 2 :]
        else:
            out += f"{pad}-\n" + dumped(item, indent + 2, style)
    return out


def flow(tree, style: int) -> str:
    if isinstance(tree, dict):
        return "{" + ", ".join(f"{quoted(k, style or 1)}: {flow(v, style)}" for k, v in tree.items()) + "}"
    if isinstance(tree, list):
        return "[" + ", ".join(flow(v, style) for v in tree) + "]"
    return quoted(tree, style or 2)


def parsed(content: str):
    data = content.encode()
    return Parser(data, 0, len(data), Path("x.anim")).parse()


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(NAMES, TREES, min_size=1, max_size=4), st.integers(0, 2))
def test_what_is_written_is_read(tree, style):
    assert parsed(dumped(tree, 0, style)) == tree
    assert parsed("value: " + flow(tree, style) + "\n") == {"value": tree}


def clip_text() -> str:
    keys = [Key(n / 10, (0.1, 0.2, 0.3, 0.9), (0.0,) * 4, (float("inf"), 0.0, 0.0, 0.0)) for n in range(4)]
    one = [Key(n / 10, (0.5,), (1e-7,), (0.0,)) for n in range(3)]
    lists = {
        "m_RotationCurves": [curve(keys, "a"), curve(keys, '"b\\u00e9"')],
        "m_FloatCurves": [float_curve(one, "Body", "blendShape.A", 137)],
    }
    return text(Clip(stop=0.3, lists=lists))


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_damage_ends_in_a_sentence(tmp_path, data):
    body = clip_text().encode()
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(body)))
        what = data.draw(st.sampled_from(["cut", "drop", "insert", "line"]))
        if what == "cut":
            body = body[:at]
        elif what == "drop":
            body = body[:at] + body[at + data.draw(st.integers(1, 30)) :]
        elif what == "insert":
            junk = st.one_of(
                st.binary(max_size=8),
                st.sampled_from([b"\n", b"  ", b"{", b"}", b"'", b'"', b": ", b"- ", b"\t", b"e9", b"1e999", b"&a ", b"|\n"]),
            )
            body = body[:at] + data.draw(junk) + body[at:]
        else:
            lines = body.split(b"\n")
            n = data.draw(st.integers(0, len(lines) - 1))
            body = b"\n".join(lines[:n] + lines[n + 1 :])
    path = tmp_path / "damaged.anim"
    path.write_bytes(body)
    try:
        clips = unity_clip.read_clips(path)
    except FileError as error:
        assert str(error).startswith("damaged.anim") and str(error).endswith(".") and "\n" not in str(error)
        return
    for c in clips:
        for one in c.curves:
            assert np.all(np.isfinite(one.at(c.times())))


numbers = st.floats(-1e6, 1e6, width=32)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(st.floats(0.0078125, 2, width=32), numbers, numbers, numbers, st.integers(0, 3), st.floats(0, 1), st.floats(0, 1)),
        min_size=1,
        max_size=6,
    )
)
def test_any_curve_equals_the_formula(tmp_path, rows):
    at = np.cumsum([r[0] for r in rows])
    keys = [Key(float(t), (r[1],), (r[2],), (r[3],), r[4], (r[5],), (r[6],)) for t, r in zip(at, rows, strict=True)]
    path = tmp_path / "any.anim"
    path.write_text(text(Clip(lists={"m_FloatCurves": [float_curve(keys, "", "x", 114)]})))
    ((one,),) = ([c.curves for c in unity_clip.read_clips(path)],)
    times = np.linspace(at[0] - 0.5, at[-1] + 0.5, 60)
    wanted = [formula(keys, 0, t) for t in times.tolist()]
    size = max(1.0, max(abs(v) for r in rows for v in r[1:4]))
    np.testing.assert_allclose(one[0].at(times)[:, 0], wanted, rtol=0, atol=1e-6 * size)


def test_the_command_line_needs_no_character_for_clips(tmp_path, capfd):
    path = tmp_path / "walk.anim"
    path.write_text(clip_text())
    assert cli.main(["convert", str(path), "--out", str(tmp_path / "out"), "--json"]) == 0
    assert (tmp_path / "out" / "clip.clip.json").exists()
    assert cli.main(["convert", str(path), "walk.bvh", "--out", str(tmp_path / "out")]) == 2
    assert "--character" in capfd.readouterr().err
    path.write_text(clip_text().replace("y: 0.2", "y: zwei", 1))
    assert cli.main(["convert", str(path), "--out", str(tmp_path / "bad")]) == 1
    assert "line 16" in capfd.readouterr().err and not list((tmp_path / "bad").iterdir())
