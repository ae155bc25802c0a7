# SPDX-License-Identifier: GPL-3.0-or-later
"""The files around the code agree with each other."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import subprocess
import sys
import tomllib
import zipfile

import pytest

import mocap_addon

from .paths import ROOT

sys.path.insert(0, str(ROOT / "scripts" / "support"))
import environments
import figures
import steps

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
MANIFEST = tomllib.loads((ROOT / "blender_manifest.toml").read_text(encoding="utf-8"))
LOCK = (ROOT / "uv.lock").read_text(encoding="utf-8")
SCRIPTS = ("mocap", "test", "build", "bench")


def test_one_version_number():
    assert mocap_addon.__version__ == PROJECT["project"]["version"] == MANIFEST["version"]
    assert f"## {mocap_addon.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_one_licence():
    assert PROJECT["project"]["license"] == "GPL-3.0-or-later"
    assert MANIFEST["license"] == ["SPDX:GPL-3.0-or-later"]
    assert "GNU GENERAL PUBLIC LICENSE\n                       Version 3" in (ROOT / "LICENSE").read_text(encoding="utf-8")


def test_the_lock_fits_the_project():
    """uv itself judges; it needs no network for a lock that fits."""
    done = subprocess.run(
        [environments.uv(), "lock", "--check", "--no-config", "--project", str(ROOT)],
        env=environments.uv_environment(),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr


def test_the_lock_names_the_public_index_alone():
    hosts = set(re.findall(r"https?://([^/\"]+)", LOCK))
    assert hosts == {"pypi.org", "files.pythonhosted.org"}


def test_every_blender_of_the_scripts_is_in_the_project():
    extras = set(PROJECT["project"]["optional-dependencies"])
    assert extras == {e.extra for e in environments.ENVIRONMENTS.values() if e.extra}
    assert set(environments.RUN) <= extras
    assert {c["extra"] for c in PROJECT["tool"]["uv"]["conflicts"][0]} == extras


def test_the_manifest_keeps_blenders_rules():
    texts = [MANIFEST["tagline"], *MANIFEST["permissions"].values()]
    assert all(len(t) <= 64 and t[-1].isalnum() for t in texts)
    assert MANIFEST["blender_version_min"] == "4.2.0" and MANIFEST["id"] == "mocap_addon"


@pytest.mark.parametrize("entry", MANIFEST["wheels"])
def test_bundled_wheels_are_pure_and_locked(entry):
    wheel = ROOT / entry
    assert wheel.name.endswith("-py3-none-any.whl")
    assert hashlib.sha256(wheel.read_bytes()).hexdigest() in LOCK
    with zipfile.ZipFile(wheel) as archive:
        assert not [n for n in archive.namelist() if n.endswith((".so", ".pyd", ".dylib", ".dll"))]
    package = wheel.name.split("-")[0].replace("_", "-")
    assert any(d.startswith(f"{package}=={wheel.name.split('-')[1]}") for d in PROJECT["project"]["dependencies"])


@pytest.mark.parametrize("script", [*(f"scripts/{n}" for n in SCRIPTS), ".ci/run"])
def test_scripts_can_be_started(script):
    assert os.name == "nt" or (ROOT / script).stat().st_mode & stat.S_IXUSR
    text = (ROOT / script).read_text(encoding="utf-8")
    assert text.startswith("#!") and "\r" not in text
    subprocess.run(["sh", "-n", str(ROOT / script)], check=True, timeout=20)


@pytest.mark.skipif(os.name == "nt", reason="a POSIX shell")
def test_the_command_finds_its_checkout_through_links_and_uses_the_blender_it_is_told(tmp_path):
    (tmp_path / "one").symlink_to(ROOT / "scripts" / "mocap")
    (tmp_path / "two").symlink_to("one")
    variables = {**os.environ, "MOCAP_BLENDER": "echo"}
    expected = f"--background --factory-startup --python-exit-code 1 --python {ROOT}/scripts/mocap.py -- info a walk.bvh --json\n"
    for script in (ROOT / "scripts" / "mocap", tmp_path / "two"):
        command = [str(script), "info", "a walk.bvh", "--json"]
        assert subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=20).stdout == expected


def test_set_up_code_runs_on_an_old_python():
    """It is the first thing that runs, on whatever Python a machine has: no syntax newer than 3.8."""
    import ast

    for path in (ROOT / "scripts" / "support").glob("*.py"):
        ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 8))


def test_nothing_speaks_of_a_machine():
    """No absolute path of anybody's home, no index but the public one."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, timeout=30)
    if listed.returncode:
        pytest.skip("not a git checkout")
    for file in listed.stdout.split("\n"):
        path = ROOT / file
        if path.suffix in {".py", ".md", ".toml", ".json", ".sh", ".mjs", ""} and path.is_file() and path.name != "test_house.py":
            found = re.search(r"/(?:root|home/\w+|Users/\w+|work/main|work/shared)/", path.read_text(encoding="utf-8", errors="replace"))
            assert not found, f"{file}: {found.group()}"


# -- interpreters and environments


@pytest.fixture
def folder_with(tmp_path, monkeypatch):
    def put(name: str, script: str):
        path = tmp_path / name
        path.write_text(script)
        path.chmod(0o755)
        return path

    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    monkeypatch.setattr(environments, "_versions", {})
    return put


def test_a_launcher_that_fails_is_passed_over(folder_with):
    folder_with("python3.99", "#!/bin/sh\necho 'pyenv: python3.99: command not found' >&2\nexit 127\n")
    assert environments.find_python("3.99") is None
    good = folder_with("python3", "#!/bin/sh\necho 3.99\n")
    assert environments.find_python("3.99") == str(good)


def test_pyenvs_versions_are_found_behind_a_broken_shim(folder_with, tmp_path):
    folder_with("python3.98", "#!/bin/sh\nexit 1\n")
    (tmp_path / "pyenv" / "versions" / "3.98.4" / "bin").mkdir(parents=True)
    real = folder_with("pyenv/versions/3.98.4/bin/python3.98", "#!/bin/sh\necho 3.98\n")
    assert environments.find_python("3.98") == str(real)


def test_an_unknown_environment_is_one_sentence(capsys):
    assert environments.main(["bpy99"]) == 1
    assert capsys.readouterr().err == "There is no environment bpy99; there are core, bpy42, bpy45, bpy50, bpy53.\n"


# -- the test runner counts what really happened


def step(tmp_path, body: str, *options: str, seconds: float = 60.0) -> steps.Result:
    (tmp_path / "test_it.py").write_text(body)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-c",
        os.devnull,
        "--rootdir",
        str(tmp_path),
        str(tmp_path),
        *options,
    ]
    return steps.run(steps.Step("it", command, seconds, pytest=True), tmp_path, echo=False)


def test_counts_come_from_pytests_report(tmp_path):
    body = """
import pytest
def test_a(): pass
def test_b(): assert False
def test_c(): pytest.skip("because")
@pytest.fixture
def broken(): raise OSError
def test_d(broken): pass
"""
    assert step(tmp_path, body)[1:4] == (1, 2, 1)


def test_a_crash_a_time_out_and_nothing_selected_are_failures(tmp_path):
    assert step(tmp_path, "import os\ndef test_a(): os._exit(0)\n")[1:3] == (0, 1)
    assert step(tmp_path, "import os\ndef test_a(): os._exit(139)\n")[1:3] == (0, 1)
    slow = step(tmp_path, "import time\ndef test_a(): time.sleep(60)\n", seconds=2.0)
    assert slow.failed == 1 and "stopped after 2 s" in slow.note and slow.seconds < 20
    assert step(tmp_path, "def test_a(): pass\n", "-k", "nothing")[1:3] == (0, 1)


def test_a_part_that_dies_is_run_once_more_and_said(tmp_path):
    """A program that a signal ends is run again file by file; a test that fails is not."""
    (tmp_path / "test_good.py").write_text("def test_a(): pass\n")
    (tmp_path / "test_bad.py").write_text("def test_a(): assert False\n")
    (tmp_path / "test_once.py").write_text(
        "import os, pathlib, signal\n"
        "def test_a():\n"
        "    mark = pathlib.Path(__file__).with_suffix('.mark')\n"
        "    if not mark.exists():\n"
        "        mark.write_text('')\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    (tmp_path / "test_always.py").write_text("import os, signal\ndef test_a(): os.kill(os.getpid(), signal.SIGKILL)\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", str(tmp_path)]
    name = {n: str(tmp_path / f"test_{n}.py") for n in ("good", "bad", "once", "always")}

    def run(*parts):
        return steps.run(steps.Step("it", command, 60.0, pytest=True, parts=parts), tmp_path, echo=False)

    once = run([name["good"], name["once"]])
    assert once[1:4] == (2, 0, 0) and "run again" in once.note
    assert run([name["good"]], [name["always"]])[1:4] == (1, 1, 0)
    failed = run([name["bad"], name["good"]])
    assert failed[1:4] == (1, 1, 0) and "again" not in failed.note


def test_the_closing_line(capsys):
    assert steps.summary([steps.Result("a", 3, 0, 1, 1.0), steps.Result("b", 2, 0, 0, 1.0)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "5 passed, 0 failed, 1 skipped"
    assert steps.summary([steps.Result("a", 3, 1, 0, 1.0)]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "3 passed, 1 failed, 0 skipped"
    assert steps.summary([steps.Result("a", 0, 0, 4, 1.0)]) == 1
    assert "passed," not in capsys.readouterr().out


# -- benchmarks


def test_a_figure_falls_short_on_its_wrong_side():
    assert figures.Figure("a", 3.4, "x", 3.5).holds and not figures.Figure("a", 3.6, "x", 3.5).holds
    assert figures.Figure("a", 31, "x", 30, "higher").holds and not figures.Figure("a", 29, "x", 30, "higher").holds
    assert figures.Figure("a", 1e9, "ms").holds and not figures.Figure("a", float("nan"), "x", 3.5).holds


def test_a_benchmark_that_falls_short_exits_1_and_says_so(tmp_path):
    for folder in ("scripts/support", "scripts/benches"):
        (tmp_path / folder).mkdir(parents=True)
    for name in ("bench.py", "figures.py"):
        (tmp_path / "scripts" / "support" / name).write_bytes((ROOT / "scripts" / "support" / name).read_bytes())
    bench = "from support.figures import Figure\ndef measure(): print('chatter'); return [Figure('speed', VALUE, 'x', 3.5)]\n"
    for value, code in ((3.0, 0), (4.0, 1)):
        (tmp_path / "scripts" / "benches" / "it.py").write_text(bench.replace("VALUE", str(value)))
        command = [sys.executable, "-B", str(tmp_path / "scripts" / "support" / "bench.py"), "it"]
        shown = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert shown.returncode == code and "at most 3.5" in shown.stdout and ("FALLS SHORT" in shown.stdout) == (code == 1)
        record = json.loads((tmp_path / "docs" / "bench" / "it.json").read_text())
        assert record["figures"][0]["value"] == value and record["date"] and "commit" in record
        machine = subprocess.run([*command, "--json"], capture_output=True, text=True, timeout=60)
        assert json.loads(machine.stdout)["figures"][0]["holds"] == (code == 0)
    assert subprocess.run([*command[:-1], "other"], capture_output=True, timeout=60).returncode == 2
