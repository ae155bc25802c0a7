# SPDX-License-Identifier: GPL-3.0-or-later
"""One step of a test run: a command with a time limit, and how many tests of it passed. Standard library only."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Dict, List, NamedTuple, Optional, Sequence

NO_TESTS = 5
"""pytest's exit code when nothing was selected."""


class Step(NamedTuple):
    """A command to run in the repository.

    ``pytest`` says that the command takes pytest's options: its counts are then read from the report that pytest writes; any other
    command counts as one test, which passes when it exits 0. ``may_select_none``: arguments may leave this step without a test.
    """

    name: str
    command: Sequence[str]
    seconds: float
    pytest: bool = False
    environment: Dict[str, str] = {}
    may_select_none: bool = False
    parts: Sequence[Sequence[str]] = ()
    """Arguments of several runs of the command that together are this step (a process that dies takes few tests along)."""


class Result(NamedTuple):
    """What became of a step."""

    name: str
    passed: int
    failed: int
    skipped: int
    seconds: float
    note: str = ""
    output: str = ""

    @property
    def ran(self) -> int:
        """Tests that really ran."""
        return self.passed + self.failed


def run(step: Step, root: Path, *, echo: bool = True) -> Result:
    """Run a step; with ``echo`` its output goes straight to the terminal, otherwise it is kept in the result."""
    if step.parts:
        return _run_parts(step, root, echo=echo)
    if echo:
        print(f"\n== {step.name}", flush=True)
    with tempfile.TemporaryDirectory(prefix="mocap-test-") as folder:
        report = Path(folder) / "report.xml"
        log = Path(folder) / "log.txt"
        command = [*step.command, f"--junitxml={report}"] if step.pytest else list(step.command)
        started = time.monotonic()
        with open(log, "wb") as handle:
            code = _wait(command, {**os.environ, **step.environment}, root, step.seconds, None if echo else handle)
        seconds = time.monotonic() - started
        output = "" if echo else log.read_text(errors="replace")
        if code is None:
            return Result(step.name, *_counts(report, extra_failures=1), seconds, f"stopped after {step.seconds:.0f} s", output)
        if not step.pytest:
            return Result(step.name, int(code == 0), int(code != 0), 0, seconds, "" if code == 0 else f"exit {code}", output)
        if code == NO_TESTS:
            return Result(step.name, 0, 0 if step.may_select_none else 1, 0, seconds, "no test selected", output)
        passed, failed, skipped = _counts(report)
        if code != 0 and failed == 0:
            return Result(step.name, passed, 1, skipped, seconds, f"ended with exit {code}", output)
        if code == 0 and not report.exists():
            return Result(step.name, 0, 1, 0, seconds, "wrote no report", output)
        return Result(step.name, passed, failed, skipped, seconds, "", output)


def _run_parts(step: Step, root: Path, *, echo: bool) -> Result:
    """Run a step's parts one after the other and add them up.

    A part whose program *dies* (a signal, or its time is up) is run once more, file by file, and the note names it: what fails
    then, failed. A test that fails is never run again.
    """
    results: List[Result] = []
    notes: List[str] = []
    for part in step.parts:
        alone = step._replace(command=[*step.command, *part], parts=(), may_select_none=True)
        result = run(alone, root, echo=echo)
        if _died(result):
            notes.append(f"{' '.join(part)}: {result.note}, run again")
            results.append(Result(step.name, 0, 0, 0, result.seconds, "", result.output))
            again = [run(alone._replace(command=[*step.command, path]), root, echo=echo) for path in part]
            notes += [f"{path}: {r.note}" for path, r in zip(part, again) if r.failed and r.note]
            results += again
        else:
            notes += [f"{' '.join(part)}: {result.note}"] if result.failed and result.note else []
            results.append(result)
    passed, failed, skipped, seconds = (sum(getattr(r, k) for r in results) for k in ("passed", "failed", "skipped", "seconds"))
    if passed + failed == 0:
        notes.append("no test selected")
        failed = 0 if step.may_select_none else 1
    return Result(step.name, passed, failed, skipped, seconds, "; ".join(notes), "\n".join(r.output for r in results))


def _died(result: Result) -> bool:
    """Whether the program ended by a signal (a shell reports 128 and more) or by its time limit, not by a test that failed."""
    code = re.search(r"^ended with exit (-?\d+)$", result.note)
    return result.note.startswith("stopped after") or (code is not None and (int(code[1]) < 0 or int(code[1]) > 128))


def run_together(steps: Sequence[Step], root: Path, workers: int = 2) -> List[Result]:
    """Run steps side by side, started in their order; each one's output is shown, whole, when it is done. Results in the steps' order."""
    results: Dict[int, Result] = {}
    with ThreadPoolExecutor(max_workers=workers) as pool:
        running = {pool.submit(run, step, root, echo=False): i for i, step in enumerate(steps)}
        for done in as_completed(running):
            result = results[running[done]] = done.result()
            print(f"\n== {result.name} ({result.seconds:.0f} s)\n{_shortened(result.output)}", flush=True)
    return [results[i] for i in range(len(steps))]


def _shortened(output: str, most: int = 600) -> str:
    """What a person reads of a long output: its end, where pytest sums up."""
    lines = output.rstrip().splitlines()
    return "\n".join(lines if len(lines) <= most else [f"... {len(lines) - most} lines left out ...", *lines[-most:]])


def _wait(command: List[str], environment: Dict[str, str], root: Path, seconds: float, handle) -> Optional[int]:
    """Exit code, or None when the time ran out; then the command and all that it started are ended."""
    own_group = os.name != "nt"
    try:
        process = subprocess.Popen(
            command,
            cwd=str(root),
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=handle,
            stderr=subprocess.STDOUT if handle is not None else None,
            start_new_session=own_group,
        )
    except OSError as error:
        print(f"{command[0]} cannot be started: {error}", file=sys.stderr, flush=True)
        return 127
    try:
        return process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        return None
    finally:
        if process.poll() is None:
            if own_group:
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
            process.wait()


def _counts(report: Path, extra_failures: int = 0):
    try:
        suites = list(ElementTree.parse(str(report)).getroot().iter("testsuite"))
    except (OSError, ElementTree.ParseError):
        return 0, extra_failures, 0
    total, failures, errors, skipped = (sum(int(s.get(k, 0)) for s in suites) for k in ("tests", "failures", "errors", "skipped"))
    failed = failures + errors + extra_failures
    return max(0, total - failures - errors - skipped), failed, skipped


def summary(results: Sequence[Result]) -> int:
    """Print the table and the closing line; exit code 1 when a test failed or none ran."""
    width = max([len(r.name) for r in results] + [4])
    print(f"\n{'':{width}}  {'passed':>7} {'failed':>7} {'skipped':>7} {'time':>8}")
    for r in results:
        print(f"{r.name:{width}}  {r.passed:7} {r.failed:7} {r.skipped:7} {r.seconds:6.1f} s  {r.note}".rstrip())
    passed, failed, skipped = (sum(getattr(r, k) for r in results) for k in ("passed", "failed", "skipped"))
    if passed + failed == 0:
        print("\nNo test ran.", flush=True)
        return 1
    print(f"\n{passed} passed, {failed} failed, {skipped} skipped", flush=True)
    return int(failed > 0)
