# SPDX-License-Identifier: GPL-3.0-or-later
"""The test runner behind ``scripts/test``.

``scripts/test``                 everything that needs one Blender: format, lint, types, core rooms without bpy, Blender suite, Node
``scripts/test PATH... -k X``    only pytest, with these arguments, in the environments they concern
``scripts/test --matrix``        the Blender suite and the built zip on every supported Blender
``scripts/test --all``           both, one after the other
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import List, Sequence

sys.path.insert(0, str(Path(__file__).resolve().parent))
import environments
import matrix
from steps import Result, Step, run, run_together, summary

ROOT = environments.ROOT
BLENDER_TESTS = ("blender", "install", "jobs", "ui")
"""Folders of tests/ that need bpy; all others run, and must run, without it."""
LIMIT = 15 * 60.0
"""Seconds that one step may take: far more than it needs, so that only what hangs is stopped."""
NODE_TESTS = ROOT / "tests" / "node"


def main(arguments: List[str]) -> int:
    """Run what the arguments ask for; exit code 0 when every test passed."""
    if arguments[:1] in (["-h"], ["--help"]):
        print((__doc__ or "").strip())
        return 0
    try:
        if arguments == ["--matrix"]:
            return summary(matrix.run_all(blender_folders()))
        if arguments == ["--all"]:
            return summary([*everything(), *matrix.run_all(blender_folders())])
        return summary(chosen(arguments) if arguments else everything())
    except environments.SetupError as error:
        print(error, file=sys.stderr)
        return 1


def everything() -> List[Result]:
    """The default tier."""
    core = environments.ensure("core", ["test", "lint"])
    bpy = environments.ensure(environments.run_environment(), ["test"])
    ruff, pyright = (str(core.parent / tool) for tool in ("ruff", "pyright"))
    steps = [
        Step("ruff format", [ruff, "format", "--check", "."], 60),
        Step("ruff check", [ruff, "check", "."], 60),
        _pytest(f"tests in {bpy.parent.parent.name}", bpy, ())._replace(parts=matrix.in_parts(blender_folders())),
        _pytest("tests without bpy", core, core_paths()),
        Step("pyright", [pyright, "--pythonpath", str(core)], LIMIT, environment={"PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"}),
    ]
    return [*node(), *run_together(steps, ROOT)]


def chosen(arguments: Sequence[str]) -> List[Result]:
    """pytest alone, on the paths that the arguments name (all of them when they name none)."""
    paths = [a for a in arguments if not a.startswith("-") and (ROOT / a.split("::")[0]).exists()]
    in_bpy = [p for p in paths if _needs_bpy(p)]
    in_core = [p for p in paths if p not in in_bpy]
    rest = [a for a in arguments if a not in paths]
    if not paths:
        in_core, in_bpy = core_paths(), blender_folders()
    results = []
    if in_core:
        core = environments.ensure("core", ["test"])
        results.append(run(_pytest("tests without bpy", core, in_core, rest), ROOT))
    if in_bpy:
        bpy = environments.ensure(environments.run_environment(), ["test"])
        results.append(run(_pytest(f"tests in {bpy.parent.parent.name}", bpy, in_bpy, rest), ROOT))
    return results


def node() -> List[Result]:
    """What the tests that play exported clips in JavaScript need; without Node they are not run, and the table says so."""
    if not shutil.which("node") or not shutil.which("npm"):
        print("\n== three.js in Node: NOT RUN, node and npm are not on this machine", flush=True)
        return [Result("three.js in Node", 0, 0, 0, 0.0, "NOT RUN: node and npm are not on this machine")]
    if (NODE_TESTS / "node_modules" / "three" / "package.json").exists():
        return []
    return [run(Step("npm ci", [shutil.which("npm") or "npm", "ci", "--prefix", str(NODE_TESTS), "--no-audit", "--no-fund"], 180), ROOT)]


def core_paths() -> List[str]:
    """Tests that run without bpy: every folder and file of tests/ that is not for Blender."""
    here = [p for p in sorted((ROOT / "tests").iterdir()) if p.name not in (*BLENDER_TESTS, "node", "data", "__pycache__")]
    return [f"tests/{p.name}" for p in here if (p.is_dir() and any(p.rglob("test_*.py"))) or p.match("test_*.py")]


def blender_folders() -> List[str]:
    """Tests that need bpy."""
    return [f"tests/{name}" for name in BLENDER_TESTS if (ROOT / "tests" / name).is_dir()]


def _needs_bpy(path: str) -> bool:
    parts = (ROOT / path.split("::")[0]).resolve().relative_to(ROOT).parts
    return len(parts) > 1 and parts[1] in BLENDER_TESTS


def _pytest(name: str, python: Path, paths: Sequence[str], options: Sequence[str] = ()) -> Step:
    return Step(name, [str(python), "-m", "pytest", *paths, *options], LIMIT, pytest=True, may_select_none=bool(options))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
