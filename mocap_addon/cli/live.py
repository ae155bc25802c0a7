# SPDX-License-Identifier: GPL-3.0-or-later
"""``mocap record``: live motion into a capture file. ``mocap replay``: a take as a live stream. Neither needs Blender."""

from __future__ import annotations

import argparse
import signal
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from ..motion.errors import FileError, MocapError
from . import FAILED, OK, reading
from .output import Output

if TYPE_CHECKING:
    from ..stream.frame import Decoder
    from ..stream.send import Moment, Player
    from ..stream.session import LiveSession
    from ..stream.supervisor import Source


class Interrupt:
    """While this context lasts, Ctrl-C (or a polite request to end) is only noted: what was received is kept whole."""

    def __init__(self) -> None:
        self.asked = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Interrupt:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._ask)
        return self

    def __exit__(self, *_: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)

    def _ask(self, _signal: int, _frame: FrameType | None) -> None:
        self.asked = True


def record(options: argparse.Namespace, out: Output) -> int:
    """Record until the time is over, or Ctrl-C."""
    from ..stream import sidecar
    from ..stream.session import LiveSession

    path = Path(options.out)
    try:
        sources = _sources(options)
        _check_addresses(options.relay, options.network)
        if path.exists():
            raise FileError("There is such a file already; a recording is never overwritten, choose another name.", path)
        if not path.parent.is_dir():
            raise FileError("There is no such folder; make it first, or choose another.", path)
    except MocapError as error:
        out.failure(str(error), file=str(path))
        return FAILED
    with tempfile.TemporaryDirectory(prefix="mocap-live-") as folder, Interrupt() as interrupt:
        session = LiveSession(folder, sources, relays=options.relay, options={"record": str(path.absolute())})
        session.notes = sidecar.Sidecar(take=path.stem, start=time.time())
        try:
            session.start()
            _record(session, options, out, interrupt)
        except MocapError as error:
            session.close()
            for left in (path, sidecar.beside(path)):  # not there before, and empty
                left.unlink(missing_ok=True)
            out.failure(str(error), file=str(path))
            return FAILED
        finally:
            session.close()
        if not path.exists():
            out.failure(f"{path.name}: Nothing was recorded. {' '.join(session.messages())}".strip(), file=str(path))
            return FAILED
        result = _recorded(path, session)
        out.result(result, _recorded_lines(result))
    return OK


def _record(session: LiveSession, options: argparse.Namespace, out: Output, interrupt: Interrupt) -> None:
    from ..stream.supervisor import StreamError

    session.pump(5.0, until=lambda: len(session.supervisor.states) == len(session.supervisor.sources))
    failed = [s for s in session.sources() if s.state == "failed"]
    if failed and len(failed) == len(session.supervisor.sources) and failed[0].source.transport != "tcp":
        raise StreamError(failed[0].message or "Nothing can be received.")
    for state in session.sources():
        where = f"{state.source.host} {state.source.transport.upper()} port {state.port}"
        out.progress({"event": state.state, "port": state.port, "host": state.source.host}, state.message or f"Listening on {where}.")
    end = time.monotonic() + options.seconds if options.seconds else float("inf")
    said: set[str] = set()
    while time.monotonic() < end and not interrupt.asked:
        session.pump(min(0.25, max(0.0, end - time.monotonic())))
        for sentence in [*session.messages(), *(s.message for s in session.sources() if s.message)]:
            if sentence not in said:
                said.add(sentence)
                out.progress({"event": "message", "message": sentence}, sentence)
        if session.recording is None and session.finished:
            break  # ended by itself: the disk is full


def _recorded(path: Path, session: LiveSession) -> dict[str, Any]:
    status = session.supervisor.status
    now = session.now()
    warnings = session.messages()
    if not any(int(s["packets"]) for s in status.get("sources", ())):
        ports = " and ".join(f"{_here(s.source.host)} port {s.port}" for s in session.sources())
        warnings.append(f"Nothing was received; look that the sender is on, and sends to {ports}.")
    return {
        "file": str(path),
        "kind": "capture",
        "bytes": path.stat().st_size,
        "packets": sum(int(s["packets"]) for s in status.get("sources", ())),
        "dropped": sum(int(s["drops"]) for s in status.get("sources", ())) + int(status.get("refused", 0)) + int(status.get("failed", 0)),
        "relayed": int(status.get("relayed", 0)),
        "gaps": [[a, b] for a, b in session.supervisor.gaps],
        "performers": [
            {
                "kind": p.kind,
                "name": p.name,
                "protocol": p.protocol,
                "frames": p.statistics.received,
                "rate": p.statistics.rate,
                "lost": p.statistics.lost,
            }
            for p in session.performers()
        ],
        "seconds": now,
        "warnings": warnings,
    }


def _pace(rate: float) -> str:
    """Frames a second; nothing of who was silent in the end."""
    return f", {rate:.1f} a second" if rate else ""


def _here(host: str) -> str:
    return "this computer," if host in ("0.0.0.0", "::") else host


def _recorded_lines(r: dict[str, Any]) -> list[str]:
    kinds = {"body": "performer", "prop": "prop", "morphs": "face", "info": "sender"}
    return [
        f"{Path(r['file']).name}: {r['packets']} packets, {r['bytes'] / 1e6:.1f} MB, {r['dropped']} dropped",
        *(
            f"  {kinds[p['kind']]:<10} {p['name']} ({p['protocol']}): {p['frames']} frames{_pace(p['rate'])}, {p['lost']} lost"
            for p in r["performers"]
        ),
        *(f"  note: {note}" for note in r["warnings"]),
    ]


def _sources(options: argparse.Namespace) -> list[Source]:
    from ..stream import protocols
    from ..stream.greetings import greeted
    from ..stream.supervisor import Source, StreamError

    decoder = None if options.protocol == "auto" else protocols.decoder(options.protocol)
    ports = options.port or ([decoder.default_port] if decoder else [])
    if not ports:
        raise StreamError("Name the port to listen on, or the protocol whose usual port it is.")
    transport = options.transport or _usual(decoder, options.connect)
    if transport == "tcp" and not options.connect:
        options.connect = "127.0.0.1"
    host = options.connect if transport == "tcp" else options.interface
    sources = [Source(p, transport, host, options.group, decoder.name if decoder else None) for p in ports]
    return [greeted(s, options.connect) for s in sources]


def _usual(decoder: Decoder | None, connect: str | None) -> str:
    if decoder is None:
        return "tcp" if connect else "udp"
    return "tcp" if connect and "tcp" in decoder.transports else decoder.transports[0]


def _check_addresses(addresses: Sequence[tuple[str, int]], network: bool) -> None:
    from ..stream.supervisor import StreamError

    for host, port in addresses:
        if not network and not (host.startswith("127.") or host in ("localhost", "::1")):
            raise StreamError(f"{host}:{port} is another machine; add --network to send motion there.")


def replay(options: argparse.Namespace, out: Output) -> int:
    """Send a file as a live stream until its end, or Ctrl-C."""
    from ..stream.send import Outlet

    path = Path(options.file)
    try:
        _check_addresses([options.to], options.network)
        if not path.is_file():
            raise FileError("There is no such file; check the path.", path)
        player_of, facts = _moments(path, options)
        with Outlet(*options.to, _transport(options)) as outlet, Interrupt() as interrupt:
            player: Player = player_of(outlet)
            if player.done:
                raise FileError("There is nothing in this file that can be sent.", path)
            out.progress({"event": "sending", **facts}, f"Sending {path.name} to {options.to[0]}:{options.to[1]}.")
            while outlet.transport == "tcp-server" and not outlet.clients and not interrupt.asked:
                time.sleep(0.05)
            player.run(options.seconds, should_stop=lambda: interrupt.asked)
            result = {"file": str(path), **facts, "datagrams": outlet.sent, "failed": outlet.failed, "seconds": player.position}
    except MocapError as error:
        out.failure(str(error), file=str(path))
        return FAILED
    out.result(result, [f"{path.name}: {result['datagrams']} datagrams, {result['seconds']:.2f} s sent, {result['failed']} refused"])
    return OK


def _transport(options: argparse.Namespace) -> str:
    if options.transport:
        return str(options.transport)
    if options.protocol is None:
        return "udp"
    from ..stream import protocols

    return "udp" if "udp" in protocols.decoder(options.protocol).transports else "tcp-server"


def _moments(path: Path, options: argparse.Namespace) -> tuple[Any, dict[str, Any]]:
    """What makes the player, and what is sent."""
    from ..stream import protocols, send
    from ..stream.frame import Sender
    from ..stream.pcap import is_capture
    from ..stream.supervisor import StreamError

    with path.open("rb") as file:
        capture = is_capture(file.read(32))
    if options.protocol is None:
        if not capture:
            raise StreamError(f"Name the protocol to send {path.name} in, with --protocol.")
        return (
            lambda outlet: send.Player(lambda _: send.recorded(path, options.port), outlet, speed=options.speed, loop=options.loop),
            {"protocol": None},
        )
    decoder = protocols.decoder(options.protocol)
    from ..retarget.sending import on_protocol

    takes = [on_protocol(take, decoder) for take in reading.read(path, None, blender=path.suffix.lower() in (".fbx", ".blend"))]
    sender = Sender()

    def rounds(shift: float) -> Iterator[Moment]:
        return send.moments(takes, decoder, sender=sender, shift=shift)

    facts = {"protocol": decoder.name, "takes": [t.name for t in takes], "frames": takes[0].frames}
    return lambda outlet: send.Player(rounds, outlet, speed=options.speed, loop=options.loop), facts
