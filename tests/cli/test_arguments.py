# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from fractions import Fraction

import pytest

from mocap_addon import cli
from mocap_addon.cli import arguments, job_settings
from mocap_addon.retarget.root_motion import AS_RECORDED, CHOICES, RootMotion

CONVERT = ["convert", "walk.bvh", "--character", "hero.glb", "--out", "x"]


def test_defaults_of_convert():
    o = arguments.parse(CONVERT)
    assert (o.takes, o.character, o.out, o.table, o.fps, o.reference_frame) == (["walk.bvh"], "hero.glb", "x", None, "scene", None)
    assert o.formats == ("blend", "threejs", "bvh") and not o.json


@pytest.mark.parametrize(("text", "reference"), [("auto", None), ("rest", "rest"), ("0", 0), ("17", 17)])
@pytest.mark.parametrize("option", ["--reference", "--reference-frame"])
def test_references(option, text, reference):
    assert arguments.parse([*CONVERT, option, text]).reference_frame == reference


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("30", Fraction(30)),
        ("29.97", Fraction(30000, 1001)),
        ("30000/1001", Fraction(30000, 1001)),
        ("source", "source"),
        ("scene", "scene"),
    ],
)
def test_rates(text, rate):
    assert arguments.parse([*CONVERT, "--fps", text]).fps == rate


def test_root_motion_and_its_defaults():
    o = arguments.parse(
        [*CONVERT, "--root", "bone", "--root-axes", "z,x", "--heading", "hips", "--origin", "first", "--root-smoothing", "0.5"]
    )
    assert (o.root, o.root_axes, o.heading, o.origin, o.root_smoothing) == ("bone", "xz", "hips", "first", 0.5)
    assert arguments.parse([*CONVERT, "--root-axes", "none"]).root_axes == ""
    plain = arguments.parse(CONVERT)
    policy = job_settings._root(plain, AS_RECORDED, plain.given)
    assert policy == RootMotion() and policy.plain


def test_the_choices_of_root_motion_are_those_of_the_core():
    ours = {
        "source": arguments.ROOT_SOURCES,
        "destination": arguments.ROOTS,
        "heading": arguments.HEADINGS,
        "height": arguments.HEIGHTS,
        "origin": arguments.ORIGINS,
    }
    assert ours == {name: tuple(choice[0] for choice in choices) for name, choices in CHOICES.items()}


def test_formats_are_a_list_in_a_fixed_order():
    assert arguments.parse([*CONVERT, "--formats", "bvh, blend"]).formats == ("blend", "bvh")


@pytest.mark.parametrize(("text", "metres"), [("cm", 0.01), ("inch", 0.0254), ("0.05644", 0.05644), ("M", 1.0)])
def test_units(text, metres):
    assert arguments.parse([*CONVERT, "--unit", text]).unit == metres


@pytest.mark.parametrize(("word", "choice"), [("auto", "auto"), ("deform", "deform"), ("fk", "fk"), ("ik-legs", "ik_legs"), ("ik", "ik")])
def test_controls(word, choice):
    assert arguments.parse([*CONVERT, "--controls", word]).controls == choice
    assert arguments.parse(CONVERT).controls == "auto"


WRONG = [
    [],
    ["bogus"],
    ["info"],
    ["convert"],
    ["convert", "walk.bvh"],
    ["convert", "walk.bvh", "--character", "hero.glb"],
    [*CONVERT, "--controls", "rigify"],
    [*CONVERT, "--controls", "ik_legs"],
    [*CONVERT, "--root", "feet"],
    [*CONVERT, "--root-axes", "xw"],
    [*CONVERT, "--root-axes", ""],
    [*CONVERT, "--heading", "north"],
    [*CONVERT, "--root-smoothing", "-1"],
    [*CONVERT, "--root-smoothing", "nan"],
    [*CONVERT, "--fps", "0"],
    [*CONVERT, "--fps", "fast"],
    [*CONVERT, "--fps", "1/0"],
    [*CONVERT, "--fps", "-30"],
    [*CONVERT, "--formats", "dae"],
    [*CONVERT, "--formats", ","],
    [*CONVERT, "--reference-frame", "1.5"],
    [*CONVERT, "--reference-frame", "-1"],
    [*CONVERT, "--reference", "tpose"],
    [*CONVERT, "--unit", "parsec"],
    [*CONVERT, "--unit", "nan"],
    [*CONVERT, "--unit", "0"],
    [*CONVERT, "--up", "w"],
    [*CONVERT, "--bogus"],
    [*CONVERT, "--charact", "y"],
]


@pytest.mark.parametrize("words", WRONG, ids=" ".join)
def test_wrong_words_are_one_sentence_and_exit_2(words, capfd):
    assert cli.main(words) == 2
    out, err = capfd.readouterr()
    assert out == "" and len(err.strip().splitlines()) == 1 and "Traceback" not in err and err.strip().endswith("--help")


def test_wrong_words_with_json_are_an_object(capfd):
    assert cli.main([*CONVERT, "--json", "--fps", "x"]) == 2
    out, err = capfd.readouterr()
    assert set(json.loads(out)) == {"error"} and err == ""


@pytest.mark.parametrize("words", [["--help"], ["info", "--help"], ["convert", "--help"], ["demo", "-h"], ["--version"]], ids=" ".join)
def test_help_is_exit_0(words, capfd):
    assert cli.main(words) == 0
    out, err = capfd.readouterr()
    assert out.strip() and err == ""


def test_help_and_messages_speak_of_what_was_written(capfd):
    """Who runs scripts/mocap has no command called mocap."""
    for words in (["--help"], ["convert", "--help"], ["convert", "a.bvh"]):
        assert cli.main(words, called="scripts/mocap") == (0 if "--help" in words else 2)
        said = "".join(capfd.readouterr())
        assert "scripts/mocap convert" in said and "  mocap " not in said and "See: mocap" not in said
