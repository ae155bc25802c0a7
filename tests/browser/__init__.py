# SPDX-License-Identifier: GPL-3.0-or-later
"""Opens pages in Chromium without a window, with WebGL in software: what a page finds out it posts to ``/answer``."""

from __future__ import annotations

import http.server
import json
import shutil
import subprocess
import tempfile
import threading
from functools import partial
from pathlib import Path
from typing import Any

import pytest

FLAGS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"),
    *("--ignore-gpu-blocklist", "--hide-scrollbars", "--no-first-run", "--disable-extensions", "--mute-audio", "--disable-dev-shm-usage"),
)
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def browser() -> str:
    """The browser's path; a skip with a reason where there is none."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("Chromium is not installed (the program `chromium`), so no page can be opened")
    return found


class _Handler(http.server.SimpleHTTPRequestHandler):
    def __init__(self, *args: Any, roots: dict[str, Path], answers: list[Any], done: threading.Event, **more: Any) -> None:
        self.roots, self.answers, self.done = roots, answers, done
        super().__init__(*args, **more)

    def translate_path(self, path: str) -> str:
        path = path.split("?", 1)[0]
        for prefix, folder in self.roots.items():
            if path.startswith(f"/{prefix}/"):
                return str(folder / path[len(prefix) + 2 :])
        return "/nonexistent"

    def do_POST(self) -> None:
        self.answers.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(204)
        self.end_headers()
        self.done.set()

    def log_message(self, *_: object) -> None:
        pass


def ask(page: str, roots: dict[str, Path], timeout: float = 120.0) -> Any:
    """Serve folders under names, open ``page`` (``name/file.html``) and wait for its answer."""
    program = browser()
    answers: list[Any] = []
    done = threading.Event()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, roots=roots, answers=answers, done=done))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    with tempfile.TemporaryDirectory(prefix="mocap-browser-", ignore_cleanup_errors=True) as profile:
        address = f"http://127.0.0.1:{server.server_address[1]}/{page}"
        log = (Path(profile) / "log").open("w+b")
        process = subprocess.Popen(
            [program, *FLAGS, f"--user-data-dir={profile}/data", "--enable-logging=stderr", "--remote-debugging-port=0", address],
            stdout=log,
            stderr=log,
        )
        try:
            finished = done.wait(timeout)
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(10)
            server.shutdown()
            server.server_close()
            thread.join(5)
        log.seek(0)
        said = log.read().decode("utf-8", "replace")
        log.close()
    assert finished, "the page did not answer: " + "\n".join(line for line in said.splitlines() if "CONSOLE" in line)[-3000:]
    return answers[0]


def shot(address: str, path: Path, width: int, height: int, seconds: float = 8.0) -> str:
    """A photograph of a page; what its console said."""
    with tempfile.TemporaryDirectory(prefix="mocap-browser-", ignore_cleanup_errors=True) as profile:
        done = subprocess.run(
            [
                *(browser(), *FLAGS, f"--user-data-dir={profile}/data", "--enable-logging=stderr", f"--window-size={width},{height}"),
                *(f"--screenshot={path}", f"--timeout={int(seconds * 1000)}", "--force-device-scale-factor=1", address),
            ],
            capture_output=True,
            timeout=seconds + 60,
            check=False,
        )
    said = done.stderr.decode("utf-8", "replace")
    return "\n".join(line for line in said.splitlines() if "CONSOLE" in line)
