# SPDX-License-Identifier: GPL-3.0-or-later
"""The Blender suite, with the built zip, on every supported Blender: the Python modules, and real executables where they are.

Executables come from ``BLENDER`` (paths, separated like ``PATH``), and from ``../shared/tools/blender-box`` where that stands beside the
repository. Two environments at a time.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Dict, List, NamedTuple, Sequence, Tuple

import environments
from steps import Result, Step, run_together

ROOT = environments.ROOT
WHEELS = ("bpy42", "bpy45", "bpy50", "bpy53")
BOX = ROOT.parent / "shared" / "tools" / "blender-box"
BOX_SUITES = ("trixie", "sid")
START = ROOT / "tests" / "run_in_blender.py"
"""What an executable runs."""
LIMIT = 6 * 60.0
"""Seconds that one process of a Blender may take."""
AT_ONCE = 4
"""Files of tests that one process of Blender runs."""
SMALL = {"MOCAP_MATRIX": "1"}
"""Leaves out tests marked "thorough", which the default tier runs."""
MARK = "@mocap@"


class Executable(NamedTuple):
    """A Blender program: how it is called, how variables reach it, what it says of itself."""

    command: Tuple[str, ...]
    boxed: bool
    blender: str
    python: str

    def variables(self, values: Dict[str, str]) -> Dict[str, str]:
        """The variables of the process that starts it, so that it sees ``values``."""
        return {"BOX_ENV": " ".join(f"{k}={v}" for k, v in values.items())} if self.boxed else dict(values)


def run_all(paths: Sequence[str]) -> List[Result]:
    """Every Blender, two at a time; output is shown when one is done."""
    zip_file = built_zip()
    steps: List[Step] = []
    results: List[Result] = []
    for name in WHEELS:
        try:
            python = environments.ensure(name, ["test"])
        except environments.SetupError as error:
            results.append(Result(name, 0, 1, 0, 0.0, str(error)))
            continue
        also = ["tests/motion"] if name == "bpy42" and (ROOT / "tests" / "motion").is_dir() else []  # the oldest numpy
        variables = {"MOCAP_ZIP": str(zip_file), **SMALL}
        parts = [*in_parts(paths), *([also] if also else [])]
        steps.append(Step(f"{name} (module)", [str(python), "-m", "pytest"], LIMIT, pytest=True, environment=variables, parts=parts))
    for program in executables(results):
        steps.append(_in_executable(program, paths, zip_file))
    return [*results, *run_together(steps, ROOT)]


def executables(results: List[Result]) -> List[Executable]:
    """The real Blenders on this machine; one that was asked for and does not start is a failed result.

    The boxes' Blender comes from a distribution that moves: one that is broken there today is a skipped result, as long as another starts.
    """
    commands = [((path,), False) for path in os.environ.get("BLENDER", "").split(os.pathsep) if path]
    if BOX.exists():
        commands += [(("bash", str(BOX), "run", suite), True) for suite in BOX_SUITES]
    if not commands:
        print("\nNo Blender executable: set BLENDER=path[:path...] to test real ones too.", flush=True)
    found = []
    with ThreadPoolExecutor(max_workers=2) as pool:
        answers = list(pool.map(lambda c: _ask_box(c[0]) if c[1] else _ask(c[0]), commands))
    for (command, boxed), answer in zip(commands, answers):
        if isinstance(answer, str):
            moved = boxed and any(not isinstance(a, str) for a in answers)
            results.append(Result(" ".join(command[-1:]), 0, int(not moved), int(moved), 0.0, answer))
        else:
            found.append(Executable(command, boxed, answer["blender"], answer["python"]))
    return found


def _ask_box(command: Sequence[str]):
    """As :func:`_ask`; a box that holds folders of a time before this one (removed since, and made again) lets go of them first."""
    answer = _ask(command)
    if isinstance(answer, str) or answer["sees"]:
        return answer
    subprocess.run([*command[:2], "down", command[-1]], stdin=subprocess.DEVNULL, timeout=60, cwd=str(ROOT))
    answer = _ask(command)
    if isinstance(answer, str) or answer["sees"]:
        return answer
    return f"does not see {ROOT}: the box mounts another folder under that name"


def _ask(command: Sequence[str]):
    """Blender's and Python's versions and whether it sees this repository, or a sentence why it does not start.

    A box installs itself at its first call.
    """
    told = "{'blender': bpy.app.version_string, 'python': '%d.%d' % sys.version_info[:2], 'sees': os.path.exists(" + repr(str(START)) + ")}"
    code = f"import os, sys, json, bpy; print('{MARK}' + json.dumps({told}))"
    try:
        done = subprocess.run(
            [*command, "--background", "--factory-startup", "--python-expr", code],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=900,
            cwd=str(ROOT),
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"does not start: {error}"
    for line in done.stdout.decode(errors="replace").splitlines():
        if line.startswith(MARK):
            return json.loads(line[len(MARK) :])
    return f"does not start: {done.stdout.decode(errors='replace').strip().splitlines()[-1:]}"


def _in_executable(program: Executable, paths: Sequence[str], zip_file: Path) -> Step:
    values = {"MOCAP_TEST_SITE": str(test_site(program.python)), "MOCAP_ZIP": str(zip_file), **SMALL}
    command = [*program.command, "--background", "--factory-startup", "--python-exit-code", "1"]
    command += ["--python", str(START), "--"]
    return Step(f"Blender {program.blender}", command, LIMIT, pytest=True, environment=program.variables(values), parts=in_parts(paths))


def in_parts(paths: Sequence[str]) -> List[List[str]]:
    """The files of tests in these folders, a few at a time."""
    files = [str(p.relative_to(ROOT)) for path in paths for p in sorted((ROOT / path).rglob("test_*.py"))]
    return [files[i : i + AT_ONCE] for i in range(0, len(files), AT_ONCE)]


def test_site(python: str) -> Path:
    """A folder with pytest and what else the tests import, for an executable's own Python; its numpy stays its own."""
    folder = environments.VENVS / f"site-{python}"
    stamp = folder / "mocap.lock"
    lock = (ROOT / "uv.lock").read_bytes()
    if stamp.exists() and stamp.read_bytes() == lock:
        return folder
    environments.say(f"Setting up pytest for Python {python} ...")
    uv, variables = environments.uv(), environments.uv_environment()
    base = [uv, "export", "--quiet", "--frozen", "--no-config", "--project", str(ROOT), "--no-header", "--no-emit-project"]
    names = subprocess.run([*base, "--only-group", "test", "--prune", "numpy"], env=variables, stdout=subprocess.PIPE, check=False)
    folder.mkdir(parents=True, exist_ok=True)
    wanted = folder / "requirements.txt"
    wanted.write_bytes(names.stdout)
    install = [uv, "pip", "install", "--quiet", "--no-config", "--no-deps", "--target", str(folder), "--python-version", python]
    done = subprocess.run([*install, "--python", sys.executable, "-r", str(wanted)], env=variables, stdout=sys.stderr)
    if names.returncode or done.returncode:
        raise environments.SetupError(f"pytest could not be installed for Python {python} (see above).")
    stamp.write_bytes(lock)
    return folder


def built_zip() -> Path:
    """The extension, built anew."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "support" / "build.py")], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, timeout=300
    )
    lines = done.stdout.decode().splitlines()
    if done.returncode or not lines:
        raise environments.SetupError("The extension could not be built (see above).")
    return Path(lines[-1])
