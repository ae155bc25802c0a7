# SPDX-License-Identifier: GPL-3.0-or-later
"""Sets up what the scripts run in: uv, a Python, and an environment with the packages that ``uv.lock`` names.

Standard library only, and written for every Python from 3.8 on: it is the first thing that runs on a machine. uv goes into ``.tools/``,
environments into ``.venv/``; nothing outside this folder is changed but the download cache of uv. An environment is built once and again
only when ``pyproject.toml`` or ``uv.lock`` have changed: a copy of both lies in it.

Usage: ``python environments.py run`` prepares the environment of ``scripts/mocap``, ``python environments.py NAME [GROUP...]`` any other;
both print the path of its Python.
"""

from __future__ import annotations

import contextlib
import glob
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ROOT / ".tools"
VENVS = ROOT / ".venv"
UV_VERSION = "0.13.9"


class Environment(NamedTuple):
    """Which Pythons an environment may have (best first) and which extra of ``pyproject.toml`` it holds."""

    pythons: Tuple[str, ...]
    extra: Optional[str]


ENVIRONMENTS: Dict[str, Environment] = {
    "core": Environment(("3.11", "3.12", "3.13", "3.14"), None),
    "bpy42": Environment(("3.11",), "bpy42"),
    "bpy45": Environment(("3.11",), "bpy45"),
    "bpy50": Environment(("3.11",), "bpy50"),
    "bpy53": Environment(("3.13",), "bpy53"),
}
RUN = ("bpy53", "bpy50")
"""Environments that ``scripts/mocap`` may use, best first; the first whose Python is on the machine is taken."""


class SetupError(Exception):
    """Something cannot be set up; ``str(error)`` is a plain sentence."""


def say(text: str) -> None:
    """One line of progress for a person; standard output is left to the verbs."""
    print(text, file=sys.stderr, flush=True)


def ensure(name: str, groups: Sequence[str] = ()) -> Path:
    """The Python of the environment ``name`` with the dependency groups ``groups``; built first where needed."""
    if name not in ENVIRONMENTS:
        raise SetupError(f"There is no environment {name}; there are {', '.join(ENVIRONMENTS)}.")
    folder = VENVS / name
    python = _python_of(folder)
    had = _groups_of(folder)
    if python.exists() and had is not None and had.issuperset(groups):
        return python
    with _lock():
        wanted = sorted(set(groups) | (had or set()))
        python = _build(name, folder, wanted)
    return python


def ensure_run() -> Path:
    """The Python of the environment that ``scripts/mocap`` uses; noted in ``.venv/run`` for the next start."""
    name = run_environment()
    python = ensure(name)
    note = VENVS / "run"
    note.mkdir(parents=True, exist_ok=True)
    _write(note / "lock", _lock_bytes())
    _write(note / "python", os.path.relpath(python, ROOT).encode() + b"\n")
    return python


def run_environment() -> str:
    """Name of the environment that ``scripts/mocap`` uses: the first of :data:`RUN` whose Python is on this machine."""
    for name in RUN:
        if any(find_python(version) for version in ENVIRONMENTS[name].pythons):
            return name
    return RUN[0]  # uv brings a Python


def uv() -> str:
    """Path of uv, installed into ``.tools/`` with pip when it is not there."""
    folder = TOOLS / f"uv-{UV_VERSION}"
    found = _uv_in(folder)
    if found:
        return found
    say(f"Setting up uv {UV_VERSION} in .tools ...")
    for python in _with_pip():
        command = [python, "-m", "pip", "install", "-qq", "--disable-pip-version-check", "--no-input", "--target", str(folder)]
        environment = {**os.environ, "PIP_ROOT_USER_ACTION": "ignore"}
        done = subprocess.run([*command, f"uv=={UV_VERSION}"], env=environment, stdin=subprocess.DEVNULL, stdout=sys.stderr)
        found = _uv_in(folder)
        if done.returncode == 0 and found:
            return found
        shutil.rmtree(folder, ignore_errors=True)
    elsewhere = shutil.which("uv")
    if elsewhere:
        return elsewhere
    raise SetupError("uv could not be installed: no Python with pip was found, or the package index cannot be reached.")


def uv_environment(**more: str) -> Dict[str, str]:
    """The environment variables that uv runs with: another active environment must not lead it astray."""
    drop = {"VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME", "CONDA_PREFIX", "UV_PYTHON", "UV_PROJECT", "UV_PROJECT_ENVIRONMENT"}
    if sys.platform != "linux" or os.path.exists("/etc/ssl/certs/ca-certificates.crt"):
        more.setdefault("UV_SYSTEM_CERTS", "true")  # the certificates that this machine trusts, a company's own among them
    return {**{k: v for k, v in os.environ.items() if k not in drop}, **more}


def find_python(version: str) -> Optional[str]:
    """An interpreter of ``version`` ("3.13") on this machine, or None. A launcher that fails (a pyenv shim) is passed over."""
    for candidate in _candidates(version):
        if _version_of(candidate) == version:
            return candidate
    return None


def _build(name: str, folder: Path, groups: List[str]) -> Path:
    environment = ENVIRONMENTS[name]
    python = next(filter(None, map(find_python, environment.pythons)), None) or environment.pythons[0]
    say(f"Setting up the environment {name} in .venv/{name} (once) ...")
    command = [uv(), "sync", "--quiet", "--frozen", "--no-config", "--project", str(ROOT), "--python", python]
    command += [word for group in groups for word in ("--group", group)]
    command += ["--extra", environment.extra] if environment.extra else []
    stamp = folder / "mocap.lock"
    with contextlib.suppress(OSError):
        stamp.unlink()
    done = subprocess.run(command, env=uv_environment(UV_PROJECT_ENVIRONMENT=str(folder)), stdin=subprocess.DEVNULL, stdout=sys.stderr)
    if done.returncode:
        wanted = " or ".join(environment.pythons)
        raise SetupError(
            f"The environment {name} could not be set up (see above). It needs Python {wanted} and the package index; "
            "or set MOCAP_BLENDER to the Blender executable you have."
        )
    _write(folder / "mocap.groups", "\n".join(groups).encode())
    _write(stamp, _lock_bytes())
    return _python_of(folder)


def _lock_bytes() -> bytes:
    return (ROOT / "pyproject.toml").read_bytes() + (ROOT / "uv.lock").read_bytes()


def _groups_of(folder: Path) -> Optional[set]:
    """The groups that an up-to-date environment holds; None when it has to be built."""
    try:
        if (folder / "mocap.lock").read_bytes() != _lock_bytes():
            return None
        return set((folder / "mocap.groups").read_text().split())
    except OSError:
        return None


def _python_of(folder: Path) -> Path:
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def _write(path: Path, data: bytes) -> None:
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    temporary.write_bytes(data)
    os.replace(temporary, path)


@contextlib.contextmanager
def _lock() -> Iterator[None]:
    """One set-up at a time, also when two scripts start together."""
    VENVS.mkdir(parents=True, exist_ok=True)
    try:
        import fcntl
    except ImportError:
        yield
        return
    with open(VENVS / "setup.lock", "w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _uv_in(folder: Path) -> Optional[str]:
    for place in ("bin/uv", "bin/uv.exe", "Scripts/uv.exe"):
        if (folder / place).exists():
            return str(folder / place)
    return None


def _with_pip() -> Iterator[str]:
    """Pythons that have pip: this one, the others of this machine, and, where Debian took pip out, one in a throw-away environment."""
    seen = set()
    for candidate in [sys.executable, *(p for v in ("3", "3.13", "3.12", "3.11", "3.14") for p in _candidates(v))]:
        if candidate not in seen:
            seen.add(candidate)
            if _version_of(candidate) and _quiet([candidate, "-m", "pip", "--version"]) is not None:
                yield candidate
    helper = TOOLS / "pip"
    if _quiet([sys.executable, "-m", "venv", str(helper)]) is not None:
        yield str(_python_of(helper))


def _candidates(version: str) -> Iterator[str]:
    """Paths where an interpreter of ``version`` may lie; each is asked before it is believed."""
    names = [f"python{version}", "python3", "python"] + (["python.exe"] if os.name == "nt" else [])
    folders = [f for f in os.environ.get("PATH", "").split(os.pathsep) if f]
    folders += ["/usr/bin", "/usr/local/bin", "/opt/homebrew/bin"]
    for pyenv in (os.environ.get("PYENV_ROOT"), os.path.expanduser("~/.pyenv")):
        if pyenv:
            folders += sorted(glob.glob(os.path.join(pyenv, "versions", f"{version}*", "bin")), reverse=True)
    folders += [f"/Library/Frameworks/Python.framework/Versions/{version}/bin"]
    folders += [os.path.join(os.environ.get("LOCALAPPDATA", "."), "Programs", "Python", "Python" + version.replace(".", ""))]
    seen = set()
    for name in names:
        for folder in folders:
            path = os.path.join(folder, name)
            if path not in seen and os.path.isfile(path) and os.access(path, os.X_OK):
                seen.add(path)
                yield path


_versions: Dict[str, Optional[str]] = {}


def _version_of(python: str) -> Optional[str]:
    """``"3.13"``, or None when it does not start, is no CPython, or has no global lock (Blender's module is built with it)."""
    if python not in _versions:
        code = (
            "import sys,sysconfig as s;c=sys.implementation.name=='cpython' and not s.get_config_var('Py_GIL_DISABLED');"
            "print('%d.%d'%sys.version_info[:2] if c else '')"
        )
        _versions[python] = (_quiet([python, "-I", "-c", code]) or "").strip() or None
    return _versions[python]


def _quiet(command: List[str]) -> Optional[str]:
    """Standard output of a command, or None when it fails."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode(errors="replace") if done.returncode == 0 else None


def main(arguments: Sequence[str]) -> int:
    """Prepare one environment (``run``: the one that verbs run in) with groups of packages, and print its Python."""
    try:
        name = run_environment() if arguments[0] == "run" else arguments[0]
        print(ensure_run() if list(arguments) == ["run"] else ensure(name, arguments[1:]))
    except SetupError as error:
        say(str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
