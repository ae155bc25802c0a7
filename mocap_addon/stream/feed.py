# SPDX-License-Identifier: GPL-3.0-or-later
"""Packets -> senders, protocols, performers. The same for what arrives now and for what is read from a capture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from .frame import Decoder, Kind, State
from .packets import Packet
from .performers import MOST_ENTRIES, Datagram, Follower, Key, Track

SLOT_QUIET = 2.0
"""A sender that comes back on another port after so many seconds of silence is the same one."""
MOST_SLOTS, MOST_TRACKS = 64, 512
LEARNING, LOOK_AGAIN, WAITING = 24, 64, 2000
"""So many messages are decoded at the beginning; every so many-th later; and all of the first so many until everybody's skeleton is
known."""
SILENCE = 0.008
MOST_PLACES = 1024


@dataclass(frozen=True)
class Port:
    """What is known beforehand of a port we listen on (or connect to): ``protocol`` by name, None to find out; a decoder's options."""

    protocol: str | None = None
    options: Mapping[str, object] = field(default_factory=dict[str, object])


@dataclass
class Slot:
    """One sender: an address that sends to one of our ports."""

    name: str
    place: tuple[str, str, int]  # transport, host, our port (or the server's, where we are the client)
    source_port: int
    decoder: Decoder | None = None
    state: State | None = None
    packets: int = 0
    unknown: int = 0
    messages: int = 0
    last: float = float("-inf")
    earlier: list[State] = field(default_factory=list[State])
    known: set[str] = field(default_factory=set[str])
    """Performers whose skeleton was sent or learned."""
    pending: bool = False
    """Part of a frame may wait for its rest."""

    def totals(self) -> dict[str, int]:
        """Counts of all the decoder's states: packets, frames, unknown, broken, ignored, incomplete, failed."""
        out: dict[str, int] = dict.fromkeys(("packets", "frames", "unknown", "broken", "ignored", "incomplete", "failed"), 0)
        out["unknown"] += self.unknown
        for state in [*self.earlier, *([self.state] if self.state else [])]:
            for name in out:
                out[name] += getattr(state.counts, name)
        return out


class Feed:
    """Takes packets in the order of their arrival.

    Parameters
    ----------
    decoders : sequence of Decoder
    ports : mapping from port to Port
        What is known of our ports; the protocol of others is found out.
    keep : float
        Seconds that tracks hold.
    only : set of int or None
        Ports to look at; None: all. A capture of a whole network holds other things.
    whole : bool
        Keep and decode everything, in order: for files.
    """

    def __init__(
        self,
        decoders: Sequence[Decoder],
        ports: Mapping[int, Port] | None = None,
        keep: float = 2.0,
        only: set[int] | None = None,
        whole: bool = False,
    ) -> None:
        self.decoders = {d.name: d for d in decoders}
        self.ports = dict(ports or {})
        self.keep, self.only, self.whole = keep, only, whole
        self.base: int | None = None
        self.slots: dict[tuple[str, str, int, int], Slot] = {}
        self.tracks: dict[Key, Track] = {}
        self.followers: dict[Key, Follower] = {}
        self.time_codes: dict[str, str] = {}
        self.overflow = 0
        self._by_place: dict[tuple[str, str, int], list[Slot]] = {}

    def seconds(self, time_ns: int) -> float:
        """Our time since the first packet, seconds: what all times of tracks are in."""
        if self.base is None:
            self.base = time_ns
        return (time_ns - self.base) * 1e-9

    def add(self, packet: Packet) -> None:
        """One packet."""
        arrival = self.seconds(packet.time)
        slot = self._slot(packet, arrival)
        if slot is None:
            return
        slot.packets += 1
        if slot.pending and arrival - slot.last > SILENCE:
            self._flush(slot)
        slot.last = arrival
        if slot.decoder is None:
            self._recognise(slot, packet.data)
            if slot.decoder is None:
                slot.unknown += 1
                return
        assert slot.state is not None
        if packet.transport == "tcp":
            if packet.start or packet.hole:
                slot.state.remainder = b""
            for message in slot.decoder.messages(packet.data, slot.state):
                self._message(slot, message, arrival)
        else:
            self._message(slot, packet.data, arrival)

    def all(self) -> dict[Key, Track | Follower]:
        """Every performer, prop and face."""
        return {**self.tracks, **self.followers}

    # -- senders

    def _slot(self, packet: Packet, arrival: float) -> Slot | None:
        ours = packet.target[1]
        if packet.transport == "tcp" and packet.target[1] not in self.ports and packet.source[1] in self.ports:
            ours = packet.source[1]
        if self.only is not None and ours not in self.only:
            return None
        key = (packet.transport, packet.source[0], packet.source[1], ours)
        slot = self.slots.get(key)
        if slot is not None:
            if packet.start and slot.decoder is not None:
                self._renew(slot)
            return slot
        place = (packet.transport, packet.source[0], ours)
        if len(self._by_place) >= MOST_PLACES and place not in self._by_place:
            self._by_place.pop(next(iter(self._by_place)))
        known = self._by_place.setdefault(place, [])
        quiet = [s for s in known if arrival - s.last > SLOT_QUIET]
        restless = len(known) >= 8 and sum(s.packets <= 2 for s in known) > len(known) // 2
        if quiet or restless or len(known) >= MOST_SLOTS:
            slot = min(quiet, key=lambda s: s.last) if quiet else known[0]
            self.slots.pop((*place[:2], slot.source_port, ours), None)
            slot.source_port = packet.source[1]
            if not restless:
                self._renew(slot)
        else:
            host = f"[{packet.source[0]}]" if ":" in packet.source[0] else packet.source[0]
            name = f"{host} to {ours}" + (f" #{len(known) + 1}" if known else "")
            slot = Slot(name, place, packet.source[1])
            known.append(slot)
        self.slots[key] = slot
        if len(self.slots) > 16 * MOST_SLOTS:
            self.slots.pop(next(iter(self.slots)))
        return slot

    def _renew(self, slot: Slot) -> None:
        """A sender that began anew: a fresh memory; what was counted stays."""
        if slot.decoder is not None:
            if slot.state is not None:
                slot.earlier = [*slot.earlier, slot.state][-4:]
            slot.state = slot.decoder.state()
            slot.state.options.update(self._port(slot).options)
            slot.messages, slot.pending = 0, False
            slot.known.clear()
            for item in self.all().values():
                if item.key[0].endswith(f" {slot.name}"):
                    item.skeleton_of = None

    def _port(self, slot: Slot) -> Port:
        return self.ports.get(slot.place[2], Port())

    def _recognise(self, slot: Slot, data: bytes) -> None:
        if slot.unknown > 64 and slot.unknown % 16:
            return
        port = self._port(slot)
        if port.protocol is not None:
            slot.decoder = self.decoders.get(port.protocol)
        else:
            usual = sorted(self.decoders.values(), key=lambda d: d.default_port != slot.place[2])
            slot.decoder = next((d for d in usual if slot.place[0] in d.transports and d.recognises(data)), None)
        if slot.decoder is not None:
            slot.state = slot.decoder.state()
            slot.state.options.update(port.options)

    # -- frames

    def _message(self, slot: Slot, data: bytes, arrival: float) -> None:
        decoder, state = slot.decoder, slot.state
        assert decoder is not None and state is not None
        heads = decoder.header(data, state) if decoder.stands_alone else []
        slot.messages += 1
        learning = self.whole or slot.messages <= LEARNING or slot.messages % LOOK_AGAIN == 0
        if not learning and slot.messages < WAITING:
            learning = any(head.kind == "body" and head.source not in slot.known for head in heads)
        sender = f"{decoder.name} {slot.name}"
        if heads and all(head.whole for head in heads):
            datagram = Datagram(data, decoder, state)
            for head in heads:
                self._add(sender, head.kind, head.source, head.number, head.time, arrival, datagram)
            if learning:
                self._learn(sender, datagram, {(h.kind, h.source) for h in heads}, arrival)
                slot.known.update(h.source for h in heads if h.source not in slot.known and decoder.skeleton(h.source, state) is not None)
            return
        frames = decoder.decode(data, state)
        slot.pending = not decoder.stands_alone
        if frames:
            self._take_in(sender, Datagram(data, decoder, state, frames), arrival)

    def silence(self, now: float | None = None) -> None:
        """Frames in several parts of which nothing more has come for 8 ms are done; all of them without ``now``, at the end of a file."""
        for slot in self.slots.values():
            if slot.pending and (now is None or now - slot.last > SILENCE):
                self._flush(slot)

    def _flush(self, slot: Slot) -> None:
        slot.pending = False
        if slot.decoder is None or slot.state is None:
            return
        frames = slot.decoder.flush(slot.state)
        if frames:
            self._take_in(f"{slot.decoder.name} {slot.name}", Datagram(b"", slot.decoder, slot.state, frames, provisional=True), slot.last)

    def _take_in(self, sender: str, datagram: Datagram, arrival: float) -> None:
        """Frames that were decoded already."""
        frames = datagram.frames()
        stands_alone = datagram.decoder.stands_alone
        led: set[tuple[Kind, str]] = {(f.kind, f.source) for f in frames if f.kind == "body" and stands_alone}
        for frame in frames:
            if frame.kind == "info":
                if frame.time_code:
                    self.time_codes[sender] = frame.time_code
            elif (frame.kind, frame.source) in led or not led:
                track = self._add(sender, frame.kind, frame.source, frame.number, frame.time, arrival, datagram)
                if track is not None and frame.name:
                    track.name = frame.name
        if led:
            self._learn(sender, datagram, led, arrival)

    def _add(
        self, sender: str, kind: Kind, source: str, number: int | None, time: float | None, arrival: float, datagram: Datagram
    ) -> Track | None:
        key: Key = (sender, kind, source)
        track = self.tracks.get(key)
        if track is None:
            if len(self.tracks) >= MOST_TRACKS and not self._forget(arrival):
                self.overflow += 1
                return None
            track = self.tracks[key] = Track(key, self.keep, 1 << 60 if self.whole else MOST_ENTRIES)
            self.followers.pop(key, None)
        track.add(number, time, arrival, datagram)
        return track

    def _forget(self, now: float) -> bool:
        """Make room: whoever was silent for longest goes, if for more than a minute."""
        oldest = min(self.tracks.values(), key=lambda track: track.last_heard)
        if self.whole or now - oldest.last_heard < 60.0:
            return False
        del self.tracks[oldest.key]
        self.followers = {key: f for key, f in self.followers.items() if f.leader is not oldest}
        return True

    def set_keep(self, seconds: float) -> None:
        """Hold so many seconds from now on."""
        self.keep = seconds
        for track in self.tracks.values():
            track.keep = seconds

    def _learn(self, sender: str, datagram: Datagram, led: set[tuple[Kind, str]], arrival: float) -> None:
        """Decode a body now and then: names, and props that come along with a performer."""
        frames = datagram.frames()
        leader = next((self.tracks.get((sender, f.kind, f.source)) for f in frames if (f.kind, f.source) in led), None)
        for frame in frames:
            key: Key = (sender, frame.kind, frame.source)
            if frame.time_code:
                self.time_codes[sender] = frame.time_code
            if key in self.tracks:
                self.tracks[key].name = frame.name or frame.source
            elif frame.kind != "info" and leader is not None:
                follower = self.followers.get(key)
                if follower is None:
                    if len(self.followers) >= MOST_TRACKS:
                        self.overflow += 1
                        continue
                    follower = self.followers[key] = Follower(key, leader)
                follower.name, follower.last_seen = frame.name or frame.source, arrival
