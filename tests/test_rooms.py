# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan of the house (docs/design.md): which room may import which, and that the core needs no Blender."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from .paths import ROOT

PACKAGE = ROOT / "mocap_addon"
ROOMS = ("motion", "formats", "stream", "rig", "retarget", "feet", "body", "blender", "jobs", "ui", "viewer", "cli")
"""From the inside out: a room imports itself and the rooms before it."""
CORE = ROOMS[: ROOMS.index("blender")]
BLENDERS = {"bpy", "bpy_extras", "mathutils", "bmesh", "gpu", "gpu_extras", "blf", "bl_math", "addon_utils", "idprop"}
WHEELS = {"tomli_w"}
"""What the extension brings along (blender_manifest.toml)."""

FILES = sorted(p for p in PACKAGE.rglob("*.py"))
CORE_FILES = [p for p in FILES if p.relative_to(PACKAGE).parts[0] in CORE]


def name(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def imports(path: Path, *, for_types: bool = True) -> list[tuple[int, str, int]]:
    """Every import statement of a file, also those inside functions: (relative level, dotted name, line).

    Without ``for_types`` those under ``if TYPE_CHECKING`` are left out: they never run.
    """
    found: list[tuple[int, str, int]] = []
    tree = ast.parse(path.read_text(encoding="utf-8"))
    blocks = [n for n in ast.walk(tree) if isinstance(n, ast.If) and ast.unparse(n.test) == "TYPE_CHECKING"]
    unseen = set() if for_types else {inside for block in blocks for statement in block.body for inside in ast.walk(statement)}
    for node in ast.walk(tree):
        if node in unseen:
            continue
        if isinstance(node, ast.Import):
            found += [(0, alias.name, node.lineno) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [alias.name for alias in node.names]
            found += [(node.level, ".".join(filter(None, (node.module, n))), node.lineno) for n in names]
    return found


def inner(path: Path, level: int, dotted: str) -> tuple[str, ...]:
    """Where a relative import leads, as parts below the package."""
    here = path.relative_to(PACKAGE).with_suffix("").parts
    return (*here[: len(here) - level], *dotted.split("."))


def test_there_is_something_to_check():
    assert len(CORE_FILES) > 10
    assert {p.name for p in PACKAGE.iterdir() if p.is_dir() and (p / "__init__.py").exists()} <= set(ROOMS)


@pytest.mark.parametrize("path", FILES, ids=name)
def test_a_room_imports_only_itself_and_rooms_inside_it(path):
    parts = path.relative_to(PACKAGE).parts
    if len(parts) == 1:
        return  # the package itself: register() reaches the outermost room
    allowed = ROOMS[: ROOMS.index(parts[0]) + 1]
    for level, dotted, line in imports(path):
        assert level or dotted.split(".")[0] != "mocap_addon", (
            f"line {line}: an absolute import; Blender loads the package under another name"
        )
        if level:
            room = inner(path, level, dotted)[0]
            assert room not in ROOMS or room in allowed, f"line {line}: {parts[0]} imports {room}"


@pytest.mark.parametrize("path", CORE_FILES, ids=name)
def test_the_core_uses_numpy_and_the_standard_library_alone(path):
    for level, dotted, line in imports(path):
        top = dotted.split(".")[0]
        assert level or top in sys.stdlib_module_names or top in {"numpy", *WHEELS}, f"line {line}: imports {top}"


@pytest.mark.parametrize("path", [p for p in FILES if p.relative_to(PACKAGE).parts[0] in ("jobs", "cli")], ids=name)
def test_jobs_and_command_line_reach_blender_through_its_room(path):
    for level, dotted, line in imports(path, for_types=False):
        assert level or dotted.split(".")[0] not in BLENDERS, f"line {line}: imports {dotted}"


@pytest.mark.parametrize("path", FILES, ids=name)
def test_only_one_module_asks_for_blenders_version(path):
    if name(path) == "blender/compat.py":
        return
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        asks = isinstance(node, ast.Attribute) and node.attr.startswith("version") and ast.unparse(node.value).endswith("bpy.app")
        assert not asks, f"line {node.lineno}: ask blender/compat.py"


@pytest.mark.parametrize("path", FILES, ids=name)
def test_every_file_says_its_licence(path):
    text = path.read_text(encoding="utf-8")
    assert text.startswith("# SPDX-License-Identifier: GPL-3.0-or-later\n")
    tree = ast.parse(text)
    if any(isinstance(node, ast.FunctionDef | ast.ClassDef) for node in tree.body):
        assert "from __future__ import annotations" in map(ast.unparse, tree.body[:2])


def test_the_core_imports_with_blender_out_of_reach():
    """In a fresh Python where importing any of Blender's modules fails; also the package itself, which Blender imports first."""
    modules = ["mocap_addon"]
    for path in CORE_FILES:
        dotted = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        if not dotted.endswith("__main__"):
            modules.append(dotted)
    code = (
        "import importlib, sys\n"
        f"sys.modules.update(dict.fromkeys({sorted(BLENDERS)!r}))\n"
        f"for name in {modules!r}: importlib.import_module(name)\n"
        "print(len([m for m in sys.modules if m.startswith('mocap_addon.')]))\n"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= len(modules) - 1


def test_the_blocked_import_would_be_noticed():
    code = "import sys; sys.modules['bpy'] = None; import bpy"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60).returncode == 1
