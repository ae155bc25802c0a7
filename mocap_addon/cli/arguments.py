# SPDX-License-Identifier: GPL-3.0-or-later
"""The words of the command line: what each verb takes, and its help."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import NoReturn

from . import planting, straight, values

USUAL_FORMATS: tuple[str, ...] = ("blend", "threejs", "bvh")
AXES: tuple[str, ...] = ("x", "y", "z", "-x", "-y", "-z")
ROOT_SOURCES: tuple[str, ...] = ("hips", "root", "object")
ROOTS: tuple[str, ...] = ("hips", "bone", "object", "in-place")
HEADINGS: tuple[str, ...] = ("root", "hips")
HEIGHTS: tuple[str, ...] = ("scaled", "keep", "ground")
ORIGINS: tuple[str, ...] = ("keep", "first", "first-heading")
MORPH_UNITS: dict[str, float] = {"auto": 0.0, "1": 1.0, "100": 100.0}

_EXAMPLES = """\
examples:
  mocap info walk.bvh
  mocap convert walk.bvh run.bvh --character hero.glb --out finished
  mocap convert walk.bvh --character hero.blend --out finished --fps source --formats blend
  mocap record --protocol mvn --out take.pcap
  mocap replay take.pcap --to 127.0.0.1:39539 --protocol vmc
  mocap demo

exit codes: 0 all done; 1 a take failed (the others are still done); 2 the command was wrong
"""

_CONVERT_EXAMPLES = """\
examples:
  mocap convert walk.bvh --character hero.glb --out finished
  mocap convert takes/*.bvh --character hero.blend --out finished --table hero.toml --json
  mocap convert walk.bvh --character hero.vrm --out web --fps 30 --formats threejs
  mocap convert walk.anim --out web

Each take gets files of its own in DIR, named after it: walk.blend, walk.clip.json, walk.bvh.
A failed take leaves none; the others are still done, and the exit code is 1.
"""


class Done(Exception):  # noqa: N818
    """Parsing has ended the run: help was shown or the words were wrong."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class _Parser(argparse.ArgumentParser):
    """A parser that says what is wrong in one sentence; with ``--json`` it is an object."""

    as_json = False

    def error(self, message: str) -> NoReturn:
        sentence = f"{message[:1].upper()}{message[1:]}".rstrip(".") + f". See: {self.prog} --help"
        if _Parser.as_json:
            print(json.dumps({"error": sentence}))
        else:
            print(sentence, file=sys.stderr)
        raise Done(2)

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        if message:
            print(message, file=sys.stderr, end="")
        raise Done(status)


def parse(words: Sequence[str], called: str = "mocap") -> argparse.Namespace:
    """The command as a namespace with ``verb`` and that verb's values, ``given``, the options that were written, and ``called``, what the
    program is called; :class:`Done` after help or an error."""
    _Parser.as_json = "--json" in words
    parser = _parser(called)
    options = parser.parse_args(list(words))
    options.called = called
    options.given = frozenset(word.split("=")[0] for word in words if word.startswith("--"))
    if options.verb == "convert" and options.character is None and not straight.possible(options.takes):
        parser.error("convert needs --character FILE for these takes (only Unity clips, .anim, go without)")
    return options


def _parser(called: str) -> argparse.ArgumentParser:
    parser = _Parser(
        prog=called,
        description="Motion capture onto any humanoid character.",
        epilog=_EXAMPLES.replace("  mocap ", f"  {called} "),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    from .. import __version__

    parser.add_argument("--version", action="version", version=f"mocap {__version__}")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True, parser_class=_Parser)
    _add_info(verbs)
    _add_convert(verbs, called)
    _add_record(verbs)
    _add_replay(verbs)
    _add_demo(verbs)
    return parser


def _add_info(verbs: argparse._SubParsersAction[_Parser]) -> None:
    p = verbs.add_parser(
        "info",
        help="say what is in motion files: takes, rate, unit, axes, and which joint is which",
        description="Says what is in motion files, what was guessed, and which joint plays which role. Needs no Blender.",
        allow_abbrev=False,
    )
    p.add_argument("files", nargs="+", metavar="FILE", help="motion files; character files (.glb, .vrm, .blend, .fbx) are named as such")
    _add_reading(p)
    p.add_argument("--json", action="store_true", help="one JSON object a take, one a line")
    p.add_argument("--verbose", action="store_true", help="show every joint of every role")


def _add_convert(verbs: argparse._SubParsersAction[_Parser], called: str) -> None:
    p = verbs.add_parser(
        "convert",
        help="put takes onto a character and write .blend, three.js and BVH files",
        description="Puts each take onto the character and writes finished files.",
        epilog=_CONVERT_EXAMPLES.replace("  mocap ", f"  {called} "),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    p.add_argument("takes", nargs="+", metavar="TAKE", help="motion files; every take in a file is converted")
    p.add_argument(
        "--character",
        metavar="FILE",
        help="the character: .blend, .glb, .gltf, .vrm or .fbx (never changed); without it Unity clips are written "
        "as they are, as three.js clips and BVH",
    )
    p.add_argument(
        "--armature", metavar="NAME", help="which armature of the character file, where there are several (else the one with most bones)"
    )
    p.add_argument("--out", required=True, metavar="DIR", help="where the files go; the folder is created")
    p.add_argument(
        "--table",
        metavar="T.toml",
        help="a saved correction table, in place of the computed one, with the settings in it; what the command says comes before those",
    )
    p.add_argument(
        "--fps",
        type=values.rate_choice,
        default="scene",
        metavar="source|scene|N",
        help="rate of the keys, each on a whole frame: scene is the character file's (24 unless it is a .blend; the default), "
        "source is the take's own, or a number such as 30, 29.97 or 30000/1001",
    )
    p.add_argument(
        "--reference",
        "--reference-frame",
        dest="reference_frame",
        type=values.reference,
        metavar="auto|rest|N",
        help="what the take's rotations are counted from: its rest pose where that is a body, else a T-pose found in the take or in its "
        "motion (auto, the default); its rest pose whatever it looks like; or its frame N (the first is 0)",
    )
    p.add_argument(
        "--controls",
        type=values.controls,
        default="auto",
        metavar="|".join(values.CONTROLS),
        help="which bones get the keys where controls drive the character's: its FK controls (auto, where they are known, and fk), "
        "IK controls for the legs or for legs and arms, or the bones that move the skin (deform)",
    )
    _add_root(p)
    _add_extras(p)
    planting.add(p)
    _add_reading(p)
    p.add_argument(
        "--formats",
        type=values.formats,
        default=USUAL_FORMATS,
        metavar="LIST",
        help=f"what to write, with commas: {','.join(values.FORMATS)} ({','.join(USUAL_FORMATS)} by default); "
        "map (a bone transform map for crowds) and viewer (a page for the browser) are one for all takes, named after the character",
    )
    _add_export(p)
    p.add_argument("--json", action="store_true", help="one JSON object a take, one a line, and nothing else on standard output")
    p.add_argument("--verbose", action="store_true", help="show what Blender says while it works (on standard error)")


def _add_export(p: argparse.ArgumentParser) -> None:
    group = p.add_argument_group("exports: three.js, GLB, FBX, VRM animations")
    group.add_argument(
        "--max-error",
        type=values.millimetres,
        metavar="MM",
        help="leave keys out of three.js clips, GLB and VRM animations and write numbers shorter, as long as nothing on the character "
        "is off by more than this many millimetres; without it every frame is written to the last digit",
    )
    group.add_argument(
        "--match-blender",
        action="store_true",
        help="more keys where Blender's own way between two frames differs from the slerp of players by more than that (0.1 mm without it)",
    )
    group.add_argument("--map-half", action="store_true", help="the map in half precision: half the size; its error is told in it")
    group.add_argument("--map-ktx2", action="store_true", help="the map's texels as a KTX2 texture")
    group.add_argument("--loop", action="store_true", help="close the clips: their end is their beginning")
    group.add_argument("--bones-only", action="store_true", help="GLB and FBX of the bones and their motion alone, without the character")
    group.add_argument("--fbx-for", choices=("unreal", "unity"), default="unreal", help="which program the FBX is for (unreal)")


def _add_root(p: argparse.ArgumentParser) -> None:
    group = p.add_argument_group("root motion: who carries the character over the ground")
    group.add_argument(
        "--root",
        choices=ROOTS,
        default="hips",
        help="hips: as recorded (the default); bone: the root bone above the hips; object: the armature object; in-place: nobody, "
        "the character stays where it is",
    )
    group.add_argument(
        "--root-axes",
        type=values.axes,
        default="xy",
        metavar="AXES",
        help="which axes of the world go with it: letters of xyz, or none (xy)",
    )
    group.add_argument(
        "--heading", choices=HEADINGS, default="root", help="who turns: the root, the hips keeping sway and lean (the default), or the hips"
    )
    group.add_argument(
        "--root-source",
        choices=ROOT_SOURCES,
        default="hips",
        help="whose way it is: the hips' (the default), that of the take's own root joint, or that of its topmost joint",
    )
    group.add_argument(
        "--root-smoothing",
        type=values.seconds,
        default=0.0,
        metavar="SECONDS",
        help="sways shorter than this stay in the hips; 0, the default: the root follows every sway",
    )
    group.add_argument(
        "--height",
        choices=HEIGHTS,
        default="scaled",
        help="heights scaled like the way walked (the default), kept as recorded, or shifted so that standing feet are on the ground",
    )
    group.add_argument(
        "--origin",
        choices=ORIGINS,
        default="keep",
        help="where the first frame stands: keep: as recorded (the default); first: where the character does; "
        "first-heading: facing as it does too",
    )


def _add_extras(p: argparse.ArgumentParser) -> None:
    group = p.add_argument_group("what travels with the pose")
    group.add_argument(
        "--timecode",
        default="",
        metavar="LABEL|off",
        help="time code of the first frame in place of the take's: HH:MM:SS:FF, or HH:MM:SS;FF for drop-frame; off writes none",
    )
    group.add_argument("--timecode-rate", default="", metavar="N", help="its frames a second, such as 29.97 (the take's by default)")
    group.add_argument(
        "--morphs",
        type=values.morphs,
        default=(True, ()),
        metavar="CURVE=KEY,...|off",
        help="shape keys that curves of the take move, besides those found by name; CURVE= leaves one out, off leaves all",
    )
    group.add_argument("--morph-unit", choices=tuple(MORPH_UNITS), default="auto", help="what a shape key's 1 is in the curves")
    group.add_argument("--props", action="store_true", help="the take's rigid bodies as objects beside the character")
    group.add_argument("--bone-scale", action="store_true", help="bones that also move (prop bones) are scaled as the take scales them")
    group.add_argument("--markers", action="store_true", help="what was marked in the take as markers of the scene")


def _add_demo(verbs: argparse._SubParsersAction[_Parser]) -> None:
    p = verbs.add_parser(
        "demo",
        help="put a real walk onto a character that comes with it, and make a picture",
        description="Puts a real walk onto a character that comes with it: a .blend, a three.js clip, a picture.",
        allow_abbrev=False,
    )
    p.add_argument("--out", default="mocap-demo", metavar="DIR", help="where the files go (./mocap-demo by default)")
    p.add_argument("--json", action="store_true", help="the result as one JSON object")
    p.add_argument("--verbose", action="store_true", help="show what Blender says while it works (on standard error)")


_PROTOCOLS = "mvn, vmc, rokoko, noitom, chingmu, natnet, vrpn or json"


def _add_record(verbs: argparse._SubParsersAction[_Parser]) -> None:
    p = verbs.add_parser(
        "record",
        help="record live motion from the network into a capture file",
        description="Writes every datagram, stamped on arrival, into a pcap file until Ctrl-C or --seconds. It is a take like others.",
        allow_abbrev=False,
    )
    p.add_argument("--out", required=True, metavar="TAKE.pcap", help="the capture file; never overwritten")
    p.add_argument("--protocol", default="auto", metavar="NAME", help=f"{_PROTOCOLS}; found out by itself where it is not given")
    p.add_argument(
        "--port", type=values.port, nargs="+", metavar="N", help="the port to listen on, or several (the protocol's usual one by default)"
    )
    p.add_argument("--seconds", type=values.seconds, metavar="S", help="how long; until Ctrl-C without it")
    p.add_argument(
        "--interface",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="the address of the network interface to listen on: 127.0.0.1, this computer alone, is the default; 0.0.0.0 is all of them",
    )
    p.add_argument("--group", metavar="ADDRESS", help="a multicast group to join")
    p.add_argument("--transport", choices=("udp", "tcp", "tcp-server"), help="tcp connects to a server, tcp-server waits for senders")
    p.add_argument("--connect", metavar="HOST", help="the server to connect to by TCP; with natnet the computer that runs Motive")
    p.add_argument(
        "--relay",
        type=values.address,
        nargs="+",
        default=[],
        metavar="HOST:PORT",
        help="send every datagram on to these addresses, as it came",
    )
    p.add_argument("--network", action="store_true", help="allow relays on other machines")
    p.add_argument("--json", action="store_true", help="one JSON object a line, the last one is the result")
    p.add_argument("--verbose", action="store_true", help="show the details of a failure")


def _add_replay(verbs: argparse._SubParsersAction[_Parser]) -> None:
    p = verbs.add_parser(
        "replay",
        help="send a take or a capture as a live stream",
        description="Sends any take in any protocol that is read, or a capture's datagrams as they came, with real timing.",
        allow_abbrev=False,
    )
    p.add_argument("file", metavar="FILE", help="a motion file or a capture")
    p.add_argument(
        "--to", required=True, type=values.address, metavar="HOST:PORT", help="where to send; for tcp-server where to wait for receivers"
    )
    p.add_argument("--protocol", metavar="NAME", help=f"{_PROTOCOLS}; without it a capture's own datagrams are sent as they came")
    p.add_argument("--port", type=values.port, metavar="N", help="of a capture's own datagrams only those to this port")
    p.add_argument("--speed", type=values.speed, default=1.0, metavar="X", help="how many times as fast (1)")
    p.add_argument("--loop", action="store_true", help="begin anew at the end, until Ctrl-C")
    p.add_argument("--seconds", type=values.seconds, metavar="S", help="end after so many seconds")
    p.add_argument("--transport", choices=("udp", "tcp", "tcp-server"), help="udp by default, tcp-server where the protocol has no other")
    p.add_argument("--network", action="store_true", help="allow sending to another machine")
    p.add_argument("--json", action="store_true", help="one JSON object a line, the last one is the result")
    p.add_argument("--verbose", action="store_true", help="show the details of a failure")


def _add_reading(p: argparse.ArgumentParser) -> None:
    group = p.add_argument_group("when a file was read wrongly")
    group.add_argument("--up", choices=AXES, type=str.lower, help="the file's up axis in the motion (write --up=-y for a negative one)")
    group.add_argument("--rest-up", choices=AXES, type=str.lower, help="its up axis in the rest pose, where that is another")
    group.add_argument(
        "--unit", type=values.unit, metavar="UNIT", help=f"what one unit of the file is: {', '.join(values.UNITS)}, or metres"
    )
    group.add_argument("--take-fps", type=values.rate, metavar="N", help="the rate at which the take was recorded")
