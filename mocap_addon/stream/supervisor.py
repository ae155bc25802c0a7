# SPDX-License-Identifier: GPL-3.0-or-later
"""Starts the receiver, keeps it alive, and says in plain sentences what is wrong.

The receiver is a process of its own (:mod:`.receiver`). When it dies it is started again at the next :meth:`Supervisor.tick`, into the same
recording, and the gap is noted. Where no process can be started, the same code runs inside ``tick`` itself, and a sentence says so.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..motion.errors import MocapError
from . import receiver as code

RECEIVER = Path(code.__file__)
_SILENCE = 3.0


class StreamError(MocapError):
    """A stream that cannot be received, recorded or sent as asked."""


@dataclass(frozen=True)
class Source:
    """Where motion comes from.

    Parameters
    ----------
    port : int
        0: any free one (for tests); :attr:`Supervisor.ports` tells which.
    transport : "udp", "tcp" (we connect to ``host``) or "tcp-server" (we listen)
    host : str
        UDP and tcp-server: the address of the interface to listen on (loopback unless chosen otherwise; ``0.0.0.0``: all). tcp: the server.
    group : str or None
        A multicast group to join.
    protocol : str or None
        A decoder's name; None: found out.
    options : mapping
        For the decoder.
    hello : sequence of mappings ``{"data": hex, "to": [host, port], "every": seconds}``
        What the server wants to hear first.
    """

    port: int
    transport: str = "udp"
    host: str = "127.0.0.1"
    group: str | None = None
    protocol: str | None = None
    options: Mapping[str, object] = field(default_factory=dict[str, object])
    hello: Sequence[Mapping[str, object]] = ()

    def spec(self, number: int) -> dict[str, object]:
        """For the receiver."""
        out: dict[str, object] = {"id": str(number), "transport": self.transport, "host": self.host, "port": self.port}
        if self.group:
            out["group"] = self.group
        if self.hello:
            out["hello"] = [dict(words) for words in self.hello]
        return out

    @property
    def local(self) -> bool:
        """Whether only this machine can reach it."""
        return self.host.startswith("127.") or self.host in ("::1", "localhost")


def sentence(source: Source, error: str, detail: str, port: int | None = None) -> str:
    """What is wrong with a source, where, and what to do."""
    where = f"{'UDP' if source.transport == 'udp' else 'TCP'} port {port or source.port}"
    if error == "in_use":
        return f"{where} is in use by another program on this computer; close it there, or choose another port here and in the sender."
    if error == "permission":
        return f"The system does not let us open {where}; choose a port above 1023, or ask for the permission."
    if error == "no_interface":
        return f"This computer has no network interface with the address {source.host}; choose one that it has, or 127.0.0.1."
    if error == "no_host":
        return f'The name "{source.host}" is not known on this network; check it, or write an address such as 192.168.1.20.'
    if error == "network_gone":
        return f"The network of {source.host} is gone; {where} opens again by itself once it is back."
    if error == "network":
        return f"{source.host} cannot be reached ({detail}); check cable and network. It is tried again every second."
    if error == "refused":
        return f"{source.host} answers, but no program there offers {where}; start the stream there. It is tried again every second."
    if error == "closed":
        return f"{source.host} closed the connection; it is tried again every second."
    return f"{where} cannot be opened ({detail}); it is tried again every second."


class Supervisor:
    """One receiver and what it says.

    Parameters
    ----------
    folder : path
        Where the segments go while watching.
    sources : sequence of Source
    relays : sequence of (host, port)
        Where every datagram is sent on to.
    executable : str or None
        The Python to run it with; None: this one. "" runs it inside :meth:`tick`.
    options : mapping
        ``ring_seconds``, ``ring_bytes``, ``segment_seconds``, ``free_limit`` of the receiver; ``record``: a path to record to from the
        start.
    script : path
        What is run; for tests.
    """

    def __init__(
        self,
        folder: str | Path,
        sources: Sequence[Source],
        *,
        relays: Sequence[tuple[str, int]] = (),
        executable: str | None = None,
        options: Mapping[str, object] | None = None,
        script: Path = RECEIVER,
    ) -> None:
        self.folder, self.sources = Path(folder), tuple(sources)
        self.relays: tuple[tuple[str, int], ...] = tuple(relays)
        self.executable = sys.executable if executable is None else executable
        self.options, self.script = dict(options or {}), script
        self.status: dict[str, Any] = {}
        self.states: dict[str, dict[str, Any]] = {}
        self.gaps: list[tuple[float, float]] = []
        """Wall-clock seconds between which no receiver ran."""
        self.restarts = 0
        self.inside = False
        self.notes: deque[str] = deque(maxlen=20)
        self.recording = ""
        self.place: tuple[str, int] = ("", 0)
        """File and byte up to which the reader has read whole records; the reader keeps it."""
        self._process: subprocess.Popen[bytes] | None = None
        self._inside: code.Receiver | None = None
        self._said: deque[dict[str, Any]] = deque()
        self._rest = b""
        self._last_alive = 0.0
        self._began = 0.0
        self._failures = 0

    # -- life

    def start(self) -> None:
        """Start receiving; does nothing when it runs already."""
        if self._process is None and self._inside is None:
            self._began = time.monotonic()
            self._start({})

    def _start(self, more: dict[str, object]) -> None:
        config: dict[str, object] = {
            "do": "open",
            "folder": str(self.folder),
            "sources": [source.spec(i) for i, source in enumerate(self.sources)],
            "relays": [list(r) for r in self.relays],
            **self.options,
            **more,
        }
        self._last_alive = time.time()
        if self.executable:
            try:
                self._process = _process([self.executable, "-I", "-S", str(self.script)])
                self._tell(config)
                return
            except OSError as error:
                self.notes.append(
                    f"The receiver could not be started as a process of its own ({error.strerror or error}); it runs inside "
                    "Blender's timer, and what arrives while Blender is busy gets later time stamps."
                )
        self.inside = True
        try:
            self._inside = code.Receiver(config, self._said.append)
        except OSError as error:
            raise StreamError(f"The folder {self.folder} cannot be written ({error.strerror or error}); choose another one.") from None

    def tick(self) -> list[dict[str, Any]]:
        """What the receiver has said since the last call, in order; starts it again if it has died. Call it often; it never blocks."""
        if self._inside is not None:
            with contextlib.suppress(OSError):
                for _ in range(64):  # to the end of what waits, but never forever
                    before = self._inside.store.put_bytes
                    self._inside.pump(0.0)
                    if self._inside.store.put_bytes == before:
                        break
                self._inside.store.step()
        elif self._process is not None:
            self._listen()
            if self._process.poll() is not None:
                self._listen()
                self._again()
        out = list(self._said)
        self._said.clear()
        for event in out:
            self._note(event)
        return out

    def close(self, timeout: float = 5.0) -> list[dict[str, Any]]:
        """End the receiver; what it still said. Safe to call again."""
        if self._inside is not None:
            inside, self._inside = self._inside, None
            inside.close()
            inside.store.step()
            inside.store.close()
        if self._process is not None:
            process, self._process = self._process, None
            if process.stdin is not None:
                with contextlib.suppress(OSError):
                    process.stdin.close()
            try:
                process.wait(timeout)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(timeout)
            self._read(process)
            if process.stdout is not None:
                process.stdout.close()
        out = list(self._said)
        self._said.clear()
        for event in out:
            self._note(event)
        return out

    @property
    def running(self) -> bool:
        """Whether something receives."""
        return self._process is not None or self._inside is not None

    @property
    def pid(self) -> int | None:
        """The receiver's process."""
        return None if self._process is None else self._process.pid

    def _again(self) -> None:
        """The receiver died: start it anew, into the same recording."""
        assert self._process is not None
        ran = time.time() - self._last_alive
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        self._process = None
        self.restarts += 1
        self._rest = b""
        died = float(self.status.get("time", time.time_ns())) * 1e-9
        more: dict[str, object] = {"sources": [s.spec(i) for i, s in enumerate(self._bound_sources())]}
        if self.recording:
            path, at = self.place
            more["take"] = {"path": self.recording, "from": at if path == self.recording else 0}
        elif "record" in self.options:
            more["record"] = ""
        self._failures = self._failures + 1 if "time" not in self.status or ran < 1.0 else 0
        if self._failures >= 5:
            self.notes.append("The receiver's process ended five times at once; its work is done inside Blender's timer now.")
            self.executable = ""
        self.gaps.append((died, time.time()))
        self._start(more)

    def _bound_sources(self) -> list[Source]:
        """The sources with the ports that they have got, so that senders find them again."""
        ports = self.ports
        return [
            Source(
                ports[i] if s.port == 0 and s.transport != "tcp" else s.port, s.transport, s.host, s.group, s.protocol, s.options, s.hello
            )
            for i, s in enumerate(self.sources)
        ]

    # -- talk

    def record(self, path: str | Path, preroll: float = 0.0) -> None:
        """Record to ``path`` from ``preroll`` seconds ago on. An event ``recording`` or ``refused`` follows."""
        self._tell({"do": "record", "path": str(path), "preroll": preroll})

    def stop(self) -> None:
        """End the recording; an event ``recorded`` follows."""
        self._tell({"do": "stop"})

    def relay(self, to: Sequence[tuple[str, int]]) -> None:
        """Send every datagram on to these addresses."""
        self.relays = tuple(to)
        self._tell({"do": "relays", "to": [list(r) for r in to]})

    def _tell(self, words: Mapping[str, object]) -> None:
        if self._inside is not None:
            self._inside.command(dict(words))
        elif self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(OSError):  # a dead one is noticed by tick()
                self._process.stdin.write(json.dumps(words).encode() + b"\n")
                self._process.stdin.flush()

    def _listen(self) -> None:
        assert self._process is not None
        self._read(self._process)

    def _read(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        while chunk := _waiting(process.stdout.fileno(), ended=process.poll() is not None):
            *lines, self._rest = (self._rest + chunk).split(b"\n")
            for line in lines:
                with contextlib.suppress(ValueError):
                    self._said.append(json.loads(line))

    def _note(self, event: dict[str, Any]) -> None:
        kind = event.get("event")
        if kind == "status" or kind == "ended":
            self.status = event
            self.states.update({str(s["id"]): s for s in event["sources"]})
        elif kind == "source":
            self.states[str(event["id"])] = event
        elif kind == "recording":
            self.recording = str(event["path"])
        elif kind == "recorded":
            self.recording = ""
            if event.get("reason") == "space":
                self.notes.append("The recording was ended because the disk has less than 2 GB left; what was recorded is kept.")
        elif kind == "refused":
            self.notes.append(refusal(event))
        elif kind in ("disk", "fatal"):
            self.notes.append(f"The capture cannot be written ({event.get('detail')}); make room on the disk or choose another folder.")

    # -- what a person sees

    @property
    def ports(self) -> list[int]:
        """The port of each source, as it was opened; 0 before it was."""
        return [int(self.states.get(str(i), {}).get("port", 0)) or s.port for i, s in enumerate(self.sources)]

    def messages(self) -> list[str | None]:
        """For each source the sentence about what is wrong with it; None where all is well."""
        return [self._message(i, source) for i, source in enumerate(self.sources)]

    def _message(self, number: int, source: Source) -> str | None:
        state = self.states.get(str(number))
        if state is None:
            return None
        if state["state"] == "failed":
            return sentence(source, state["error"], state["detail"], int(state.get("port", 0)))
        waits = source.transport == "udp" and not source.local and state["packets"] == 0
        if waits and time.monotonic() - self._began > _SILENCE:
            program = self.executable or sys.executable
            return (
                f"Nothing has arrived on UDP port {state['port']} yet; check the sender's target address and port, and whether a firewall "
                f"blocks the program {program}."
            )
        if int(state.get("drops", 0)) > 0:
            return f"The system dropped {state['drops']} datagrams on port {state['port']} because its receive buffer was full."
        return None


def refusal(event: Mapping[str, Any]) -> str:
    """Why the receiver did not do what it was asked."""
    error, path = event.get("error"), Path(str(event.get("path", ""))).name
    if error == "space":
        return "There is too little room on the disk to record (2 GB have to stay free); make room or choose another folder."
    if error == "exists":
        return f"There is a recording called {path} already; it is never overwritten, choose another name."
    if error == "recording":
        return f"A recording is running already ({path}); stop it first."
    if error == "loop":
        return f"{event.get('host')}:{event.get('port')} is a port that is listened on here; sending on to it would go round in circles."
    return f"The file {path} cannot be written ({event.get('detail')}); choose another folder."


def _process(command: list[str]) -> subprocess.Popen[bytes]:
    """Start without a console window, in a group of its own so that Ctrl-C does not reach it; its pipes are all that ties it to us."""
    windows = os.name == "nt"
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        close_fds=True,
        creationflags=0x08000000 | 0x00000200 | 0x00008000 if windows else 0,  # no window, group of its own, above normal priority
        start_new_session=not windows,
    )
    if not windows:
        assert process.stdout is not None
        os.set_blocking(process.stdout.fileno(), False)
    return process


def _waiting(pipe: int, *, ended: bool) -> bytes:
    """What waits in a pipe, without waiting for more."""
    if os.name == "nt":
        size = _peek(pipe)
        return os.read(pipe, size) if size else b""
    try:
        return os.read(pipe, 1 << 16)
    except (BlockingIOError, OSError):
        return b""


def _peek(pipe: int) -> int:
    """Windows: how many bytes wait in a pipe."""
    import ctypes
    import msvcrt

    size = ctypes.c_ulong(0)
    handle = msvcrt.get_osfhandle(pipe)  # type: ignore[attr-defined]
    kernel = ctypes.windll.kernel32  # type: ignore[attr-defined]
    if not kernel.PeekNamedPipe(ctypes.c_void_p(handle), None, 0, None, ctypes.byref(size), None):  # type: ignore[no-any-return]
        return 0
    return int(size.value)
