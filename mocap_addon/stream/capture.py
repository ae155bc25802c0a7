# SPDX-License-Identifier: GPL-3.0-or-later
"""Capture file -> takes: the same way as live, only that everything is kept and the whole is seen before a time axis is chosen."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..motion import quat, timeline
from ..motion.errors import FileError, MocapError
from ..motion.skeleton import Skeleton
from ..motion.take import PropTrack, Take
from . import sidecar as notes
from .feed import Feed, Port
from .frame import Decoder, Frame, to_take
from .packets import Packet
from .pcap import CaptureReader
from .performers import Entry, Follower, Key, Track, skeleton_of
from .protocols import PROTOCOLS
from .timing import Axis, axis, unwrapped

if TYPE_CHECKING:
    from ..formats import ReadOptions

Array = NDArray[np.float64]
Progress = Callable[[float], bool | None]
Props = Literal["inside", "apart"]
_FOREVER = 1e12


@dataclass
class Capture:
    """What was read from a file: performers and props with all their frames.

    ``start`` is the first packet's time, nanoseconds since 1970; all times of tracks are seconds since then.
    """

    path: Path
    feed: Feed
    start: int = 0
    end: int = 0
    notes: list[str] = field(default_factory=list[str])
    sidecar: notes.Sidecar | None = None

    def keys(self) -> list[Key]:
        """Performers first, then props, then faces."""
        order = {"body": 0, "prop": 1, "morphs": 2, "info": 3}
        return sorted(self.feed.all(), key=lambda k: (order[k[1]], k[0], len(k[2]), k[2]))


def load(
    path: str | Path,
    *,
    decoders: Sequence[Decoder] = tuple(PROTOCOLS.values()),
    ports: Mapping[int, Port] | None = None,
    start: int | None = None,
    end: int | None = None,
    progress: Progress | None = None,
) -> Capture:
    """Read a pcap or pcapng file, ours or anybody's.

    Parameters
    ----------
    path : path
    decoders : sequence of Decoder
    ports : mapping from port to Port
        What is known of the ports; the sidecar's by default, and what is not known is found out.
    start, end : int, optional
        Nanoseconds since 1970: only packets that arrived between them.
    progress : callable, optional
        Called with the share read (0..1); returning False cancels with a :class:`MocapError`.

    Raises
    ------
    FileError
        The file cannot be opened, or is no capture.
    """
    path = Path(path)
    said = notes.load(path)
    if ports is None:
        ports = {int(p): Port(_text(v.get("protocol")), v.get("options") or {}) for p, v in (said.ports if said else {}).items()}
    feed = Feed(decoders, ports, keep=_FOREVER, whole=True)
    out = Capture(path, feed, sidecar=said)
    size = max(1, path.stat().st_size) if path.exists() else 1
    with CaptureReader(path) as reader:
        told = 0
        for packet in chain(reader.packets(), _last(reader)):
            if (start is not None and packet.time < start) or (end is not None and packet.time > end):
                continue
            out.start = out.start or packet.time
            out.end = max(out.end, packet.time)
            feed.add(packet)
            if progress is not None and reader.at - told > 1 << 20:
                told = reader.at
                if progress(min(1.0, reader.at / size)) is False:
                    raise MocapError("Reading was cancelled.")
        feed.silence()
        if reader.damaged:
            out.notes.append(reader.damaged)
        elif reader.at < size and reader.at > 0:
            out.notes.append(f"The last {size - reader.at} bytes are half a record (the writer was stopped); they are left out.")
        counts = reader.dissector.counts
    if counts.cut:
        out.notes.append(f"{counts.cut} packets were captured only in part and are left out; capture with a larger snapshot length.")
    if counts.lost:
        out.notes.append(f"{counts.lost} pieces of TCP streams are missing from the capture.")
    for slot in feed.slots.values():
        if slot.state is not None:
            out.notes += [note for note in slot.state.notes if note not in out.notes]
    return out


def _last(reader: CaptureReader) -> Iterator[Packet]:
    """What waits for the end of the file; asked for only when the rest was read."""
    yield from reader.dissector.flush()


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def takes(
    capture: Capture,
    *,
    rate: Fraction | None = None,
    props: Props = "inside",
    names: Mapping[str, str] | None = None,
) -> list[Take]:
    """One take a performer.

    Parameters
    ----------
    capture : Capture
    rate : Fraction or None
        Whole frames of this rate, counted from the first packet for all performers alike (``facts["first_frame"]`` is the first one's
        number); None keeps the sender's samples.
    props : "inside" or "apart"
        Inside: each performer's take holds the props of its sender (and takes of their own only where there is no performer). Apart: a prop
        is a take with one joint, besides.
    names : mapping, optional
        What a person calls performers; the sidecar's by default.

    Returns
    -------
    list of Take
        Times begin at 0; ``facts["start_s"]`` is how long after the capture's first packet the first sample was.
    """
    known = dict(names if names is not None else (capture.sidecar.performers if capture.sidecar else {}))
    keys = capture.keys()
    bodies = [_body(capture, key, keys, known) for key in keys if key[1] == "body"]
    out = [take for take in bodies if take is not None]
    if props == "apart" or not out:
        out += [take for key in keys if key[1] == "prop" and (take := _prop_take(capture, key, known)) is not None]
    label = _label(capture.sidecar) or capture.path.stem
    one = len(out) == 1
    out = [replace(t, name=label if one else f"{label} {t.performer or t.name}") for t in out]
    return [on_frames(t, rate) for t in out] if rate is not None else out


def _label(said: notes.Sidecar | None) -> str:
    if said is None or not said.take:
        return ""
    return said.take if said.number <= 1 else f"{said.take} {said.number:02d}"


def on_frames(take: Take, rate: Fraction) -> Take:
    """A take on whole frames of ``rate`` counted from the capture's first packet; ``facts["first_frame"]`` says which is its first.

    Where the sender's frames are those of this rate they are kept as they are, and the first frame is the nearest.
    """
    start = float(take.facts.get("start_s", 0.0))  # type: ignore[arg-type]
    if take.rate == rate:
        return replace(take, facts={**take.facts, "first_frame": round(start * float(rate))})
    slack = 1e-3 * float(rate)  # the start is known no better than to a millisecond: no frame is lost for less
    first = int(np.ceil(start * float(rate) - slack))
    last = int(np.floor((start + take.duration) * float(rate) + slack))
    if last < first:
        first = last = round(start * float(rate))
    exact: Array = np.arange(first, last + 1, dtype=np.float64) * float(rate.denominator) / float(rate.numerator) - start
    out = take.sampled(exact)
    times = timeline.uniform_times(len(exact), rate)
    return replace(out, times=times, rate=rate, facts={**take.facts, "first_frame": first})


def read(path: str | Path, options: ReadOptions | None = None, progress: Progress | None = None) -> list[Take]:
    """The reader of captures for :mod:`mocap_addon.formats`.

    Raises
    ------
    FileError
        Nothing in the file is of a protocol that is known.
    """
    capture = load(path, progress=progress)
    out = takes(capture)
    if not out:
        raise FileError(_nothing(capture), path)
    if options is None:
        return out
    if options.rate is not None:
        out = [replace(t, times=timeline.uniform_times(t.frames, options.rate), rate=options.rate) for t in out]
    return [t.scaled(options.unit) if options.unit not in (None, 1.0) else t for t in out]


def _nothing(capture: Capture) -> str:
    packets = sum(slot.packets for slot in capture.feed.slots.values())
    names = sorted({d.title for d in capture.feed.decoders.values()})
    if not packets:
        return "There are no UDP datagrams and no TCP data in this capture."
    ports = sorted({slot.place[2] for slot in capture.feed.slots.values()})[:6]
    where = f"{'ports' if len(ports) > 1 else 'port'} {', '.join(map(str, ports))}"
    known = ", ".join(names)
    return f"{packets} packets (to {where}) are in this capture, but no performer in any protocol that is known ({known})."


# -- one performer


def _frames(item: Track | Follower, entries: Sequence[Entry]) -> tuple[list[Frame], list[Entry]]:
    frames: list[Frame] = []
    kept: list[Entry] = []
    for entry in entries:
        frame = entry.datagram.frame(item.kind, item.source)
        if frame is not None:
            frames.append(frame)
            kept.append(entry)
    return frames, kept


def _entries(item: Track | Follower) -> tuple[Track, list[Entry]]:
    track = item.leader if isinstance(item, Follower) else item
    return track, track.entries


def _axis(track: Track, kept: Sequence[Entry]) -> Axis:
    raw = np.array([entry.time for entry in kept])
    runs = [entry.run for entry in kept]
    starts = [False, *(a != b for a, b in pairwise(runs))]
    numbers = unwrapped([entry.number for entry in kept], starts, raw) if track.numbers_count else None
    if numbers is None and track.by_source and len(raw) > 2:
        numbers = _counted(raw)
    return axis(raw, numbers, by_source=track.by_source)


def _counted(times: Array) -> NDArray[np.int64] | None:
    """Frame numbers of times without any, where they are those of one rate with some missing."""
    pace = float(np.median(np.diff(times)))
    steps = np.rint(np.diff(times) / pace).astype(np.int64) if pace > 0.0 else np.zeros(0, dtype=np.int64)
    return np.concatenate([[0], np.cumsum(steps)]) if len(steps) and steps.min() >= 1 else None


def _body(capture: Capture, key: Key, keys: Sequence[Key], names: Mapping[str, str]) -> Take | None:
    item = capture.feed.all()[key]
    track, entries = _entries(item)
    frames, kept = _frames(item, entries)
    if not frames:
        return None
    skeleton = skeleton_of(kept[-1].datagram, frames[-1])
    if skeleton is None:
        return None
    found = _axis(track, kept)
    raw = np.array([entry.time for entry in kept])
    props = {
        other[2]: tracked
        for other in keys
        if other[1] == "prop" and other[0] == key[0] and (tracked := _prop_track(capture, other, track, raw)) is not None
    }
    take = to_take(frames, skeleton, found.times, props=props)
    who = names.get(key[2]) or names.get(" ".join(key)) or item.name or take.performer
    curves = {**take.curves, **_faces(capture, key, keys, track, raw)}
    take = replace(take, rate=found.rate, curves=curves, performer=who, **_told(capture, key, track, kept, found))
    return _as_shown(take, key, capture.sidecar)


def _as_shown(take: Take, key: Key, said: notes.Sidecar | None) -> Take:
    """The take with the calibration that the performer had when it was recorded; ``facts["table"]`` holds the correction table of then."""
    if said is None:
        return take
    pose = notes.reference_pose(notes.of_performer(said.references, key), take.skeleton.names)
    if pose is not None:
        take = replace(take, skeleton=take.skeleton.with_rest(quat.normalize(pose[0]), pose[1]))
    table = notes.of_performer(said.tables, key)
    return replace(take, facts={**take.facts, "table": table}) if table else take


def _told(capture: Capture, key: Key, track: Track, kept: Sequence[Entry], found: Axis) -> dict[str, Any]:
    s = track.sequence
    facts: dict[str, object] = {
        "format": kept[0].datagram.decoder.title,
        "unit": 1.0,
        "sender": key[0],
        "kind": key[1],
        "source_id": key[2],
        "start_s": _start(kept, found.times),
        "clock": "sender" if track.by_source else "arrival",
        "lost": s.lost,
        "duplicates": s.duplicates,
        "late": s.late,
        "restarts": s.restarts,
    }
    said = list(capture.notes)
    if found.note:
        said.append(found.note)
    if s.lost:
        said.append(f"{s.lost} of {s.received + s.lost} frames did not arrive; the motion goes on between their neighbours.")
    if s.restarts:
        said.append(f"The sender began anew {s.restarts} times; the motion goes on after as long a gap as it took.")
    return {"facts": facts, "notes": tuple(said)}


def _start(kept: Sequence[Entry], times: Array) -> float:
    """When the first sample was, in seconds after the capture's first packet: by the soonest packet of the first ten seconds."""
    early = max(1, int(np.searchsorted(times, 10.0)))
    return max(0.0, float(np.min(np.array([entry.arrival for entry in kept[:early]]) - times[:early])))


def _same_axis(a: Track, b: Track) -> bool:
    """Whether two tracks' times are of one clock of one sender."""
    return a is b or (a.key[0] == b.key[0] and a.by_source and b.by_source and not a.sequence.restarts and not b.sequence.restarts)


def _shared(track: Track, other: Track, times: Array) -> Array:
    """``times`` on the axis of ``track`` as times on that of ``other``."""
    if _same_axis(track, other) or not len(times):
        return times
    offset = track.clock.offset(float(times[-1])) if track.by_source else 0.0
    theirs = other.clock.offset(float(other.times[-1])) if other.by_source and other.times else 0.0
    return times + offset - theirs


def _rigid(item: Track | Follower) -> tuple[Array, Array, Array, list[Entry]] | None:
    """A prop's times ``(F,)``, rotations ``(F, 4)`` and places ``(F, 3)``."""
    _, entries = _entries(item)
    frames, kept = _frames(item, entries)
    good = [i for i, f in enumerate(frames) if f.rotations is not None and f.positions is not None]
    if not good:
        return None
    kept = [kept[i] for i in good]
    rotations: Array = np.array([frames[i].rotations[0] for i in good], dtype=np.float64)  # type: ignore[index]
    places: Array = np.array([frames[i].positions[0] for i in good], dtype=np.float64)  # type: ignore[index]
    return np.array([entry.time for entry in kept]), quat.continuous(rotations), places, kept


def _prop_track(capture: Capture, key: Key, leader: Track, raw: Array) -> PropTrack | None:
    """A prop at a performer's times."""
    item = capture.feed.all()[key]
    found = _rigid(item)
    if found is None:
        return None
    times, rotations, places, _ = found
    i0, i1, w = timeline.bracket(times, _shared(leader, _entries(item)[0], raw))
    mixed = places[i0] * (1.0 - w[:, None]) + places[i1] * w[:, None]
    return PropTrack(quat.continuous(quat.slerp(rotations[i0], rotations[i1], w)), mixed)


def _prop_take(capture: Capture, key: Key, names: Mapping[str, str]) -> Take | None:
    item = capture.feed.all()[key]
    found = _rigid(item)
    if found is None:
        return None
    _, rotations, places, kept = found
    track = _entries(item)[0]
    on = _axis(track, kept)
    skeleton = Skeleton((item.name or key[2],), np.array([-1]), np.zeros((1, 3)))
    who = names.get(key[2]) or item.name
    told = _told(capture, key, track, kept, on)
    return Take(who, skeleton, on.times, rotations[:, None], places[:, None], rate=on.rate, performer=who, **told)


def _faces(capture: Capture, key: Key, keys: Sequence[Key], track: Track, raw: Array) -> dict[str, Array]:
    """The morphs that arrive apart from the body, at its times: of the same id, or of the sender where it has one performer alone."""
    alone = sum(k[0] == key[0] and k[1] == "body" for k in keys) == 1
    out: dict[str, Array] = {}
    for other in keys:
        if other[1] != "morphs" or other[0] != key[0] or not (alone or other[2] == key[2]):
            continue
        item = capture.feed.all()[other]
        frames, kept = _frames(item, _entries(item)[1])
        times = np.array([entry.time for entry in kept])
        at = _shared(track, _entries(item)[0], raw)
        for name in dict.fromkeys(n for frame in frames for n in frame.curves):
            has = np.array([name in frame.curves for frame in frames])
            out[name] = np.interp(at, times[has], [frame.curves[name] for frame in frames if name in frame.curves])
    return out
