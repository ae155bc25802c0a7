# SPDX-License-Identifier: GPL-3.0-or-later
"""Builds the extension zip: stages package, manifest, licence and wheels, and lets Blender's own tool build and validate it.

``scripts/build``                    with the tool of the Python module of Blender
``scripts/build --blender PATH``     with a Blender executable

Prints what is in the zip; the last line is its path.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import List

sys.path.insert(0, str(Path(__file__).resolve().parent))
import environments

ROOT = environments.ROOT
PACKAGE = ROOT / "mocap_addon"
MANIFEST = ROOT / "blender_manifest.toml"
LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.py[cod]", ".*", "*.orig", "*.tmp", "*~")


def main(arguments: List[str]) -> int:
    """Build; exit code 0 when the tool accepted the zip."""
    if arguments and (arguments[0] != "--blender" or len(arguments) != 2):
        print((__doc__ or "").strip())
        return 0 if arguments[0] in ("-h", "--help") else 2
    try:
        tool = [arguments[1], "--background", "--factory-startup", "--command", "extension"] if arguments else module_tool()
        path = build(tool, ROOT / "dist")
    except (environments.SetupError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    with zipfile.ZipFile(path) as archive:
        for info in sorted(archive.infolist(), key=lambda i: i.filename):
            print(f"{info.file_size:9,}  {info.filename}")
    print(f"{path.stat().st_size:9,}  bytes in the zip\n{path}")
    return 0


def module_tool() -> List[str]:
    """Blender's extension tool out of the Python module; it is plain Python and needs no Blender to run."""
    python = environments.ensure(environments.run_environment())
    found = sorted(python.parent.parent.glob("[Ll]ib/**/bl_pkg/cli/blender_ext.py"))
    if not found:
        raise environments.SetupError("Blender's extension tool was not found in the environment; remove .venv and try again.")
    return [str(python), str(found[0])]


def build(tool: List[str], folder: Path) -> Path:
    """The zip, built into ``folder`` with ``tool`` and validated; nothing is left there when that fails."""
    text = MANIFEST.read_text(encoding="utf-8")
    name, version = (re.search(rf'^{key} = "([^"]+)"', text, re.M).group(1) for key in ("id", "version"))
    with tempfile.TemporaryDirectory(prefix="mocap-build-") as temporary:
        stage, made = Path(temporary) / name, Path(temporary) / f"{name}-{version}.zip"
        stage_into(stage, text)
        for command in (["build", "--source-dir", str(stage), "--output-filepath", str(made)], ["validate", str(made)]):
            done = subprocess.run(
                [*tool, *command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300
            )
            if done.returncode:
                raise environments.SetupError(f"extension {command[0]} failed:\n{done.stdout.decode(errors='replace').rstrip()}")
        folder.mkdir(exist_ok=True)
        final = folder / made.name
        shutil.copyfile(made, final.with_suffix(".part"))
        final.with_suffix(".part").replace(final)
    return final


def stage_into(stage: Path, manifest: str) -> None:
    """Everything that goes into the zip, and nothing else."""
    shutil.copytree(PACKAGE, stage, ignore=LEFT_OUT)
    for path in (MANIFEST, ROOT / "LICENSE"):
        shutil.copy2(path, stage / path.name)
    locked = (ROOT / "uv.lock").read_text(encoding="utf-8")
    for name in re.findall(r'"\./(wheels/[^"]+\.whl)"', manifest):
        wheel = ROOT / name
        if hashlib.sha256(wheel.read_bytes()).hexdigest() not in locked:
            raise environments.SetupError(f"{name} is not the file that uv.lock names; download it anew with pip.")
        (stage / "wheels").mkdir(exist_ok=True)
        shutil.copy2(wheel, stage / name)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
