# SPDX-License-Identifier: GPL-3.0-or-later
"""The pose shown against the truth: SciPy's rotation vectors between the frames that were delivered, and matrices multiplied out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mocap_addon.motion import quat
from mocap_addon.motion.take import Take
from mocap_addon.stream.feed import Feed, Port
from mocap_addon.stream.frame import Frame, Sender, frames_of, local_pose
from mocap_addon.stream.packets import Packet
from mocap_addon.stream.performers import MOST_ENTRIES
from mocap_addon.stream.protocols import PROTOCOLS, decoder
from mocap_addon.stream.sample import sample
from tests.stream.wire import dance

MVN = decoder("mvn")
HERE = ("127.0.0.1", 9763)
RATE = 125  # whole milliseconds, so that MVN's time code is exact


def packet(time: float, data: bytes, port: int = 5000, to: int = 9763) -> Packet:
    return Packet(round((1000.0 + time) * 1e9), "udp", ("127.0.0.1", port), ("127.0.0.1", to), data)


def sent(take: Take, first: int = 0, clock: float = 0.0) -> list[tuple[float, bytes]]:
    """Every frame with the sender's time that it carries."""
    out, sender = [], Sender(rate=RATE)
    for i in range(take.frames):
        sender.number, sender.time = first + i, clock + float(take.times[i])
        (data,) = MVN.encode(frames_of(take, i, source="Ann"), sender)[-1:]
        out.append((sender.time, data))
    return out


def truth(take: Take, delivered: np.ndarray, at: float) -> tuple[np.ndarray, np.ndarray]:
    """(J, 4) xyzw local rotations and (J, 3) places of the slerp of delivered samples at ``at``: nothing of the package is used."""
    times = take.times[delivered]
    k = int(np.clip(np.searchsorted(times, at, side="right") - 1, 0, len(times) - 2))
    a, b = delivered[k], delivered[k + 1]
    w = (at - take.times[a]) / (take.times[b] - take.times[a])
    first, second = (Rotation.from_quat(take.local_rotations[i][:, [1, 2, 3, 0]]) for i in (a, b))
    rotations = first * Rotation.from_rotvec((first.inv() * second).as_rotvec() * w)
    root = take.local_translations[a, 0] * (1 - w) + take.local_translations[b, 0] * w
    whole, places = [], []
    for j, p in enumerate(take.skeleton.parents):
        if p < 0:
            whole.append(rotations[j])
            places.append(root)
        else:
            whole.append(whole[p] * rotations[j])
            places.append(places[p] + whole[p].apply(take.skeleton.rest_translations[j].copy()))
    return rotations.as_quat(), np.array(places)


def angle(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.degrees((Rotation.from_quat(a).inv() * Rotation.from_quat(b)).magnitude().max()))


def test_the_pose_is_the_slerp_of_what_was_delivered_and_the_clock_is_right():
    """20 ms of jitter, 2 % loss, 5 % duplicates, the order mixed, 100 ppm of drift, and a restart of the sender with its numbers and its
    clock."""
    rng = np.random.default_rng(11)
    take = dance(MVN.standard(), RATE, RATE * 15)
    half = take.frames // 2
    runs = [(0, half, 300.0), (half, take.frames, 0.0)]
    events, offsets = [], []
    for begin, end, clock in runs:
        part = sent(take.block(begin, end), clock=clock - float(take.times[begin]))
        for i, (source, data) in enumerate(part):
            true = float(take.times[begin + i]) * 1.0001  # our clock runs away from the sender's
            offsets.append(true - source)
            if rng.uniform() < 0.02 and i > 3:
                continue
            for _ in range(1 + (rng.uniform() < 0.05)):
                events.append((true + rng.uniform(0.0, 0.02), begin + i, data))
    events.sort(key=lambda e: e[0])
    feed, back, arrived, seen = Feed([MVN]), 0.1, [], set()
    feed.seconds(packet(0.0, b"").time)
    worst_angle = worst_place = 0.0
    clock_errors, checked = [], 0
    k = 0
    for n, tick in enumerate(np.arange(0.5, events[-1][0], 1 / 60)):
        while k < len(events) and events[k][0] <= tick:
            feed.add(packet(events[k][0], events[k][2]))
            if events[k][1] not in seen:
                seen.add(events[k][1])
                arrived.append(events[k][1])
            k += 1
        ((key, moment),) = sample(feed.all().values(), float(tick), back).items()
        track = feed.tracks[key]
        run = 1 if track.sequence.restarts else 0
        newest = max(n for n in arrived[-40:] if (n >= half) == bool(run))
        clock_errors.append(abs(tick - back - moment.time - (offsets[newest] - track._shift)))
        if n % 7 or moment.held:
            continue
        in_run = np.array(sorted(n for n in arrived if (n >= half) == bool(run)))
        source = moment.time - track._shift - runs[run][2] + float(take.times[runs[run][0]])
        if source < take.times[in_run[0]]:
            continue
        rotations, places = truth(take, in_run, source)
        assert moment.skeleton is not None
        worst_angle = max(worst_angle, angle(rotations, moment.rotations[:, [1, 2, 3, 0]]))
        worst_place = max(worst_place, float(np.abs(places - moment.positions).max()))
        checked += 1
    assert checked > 90 and track.sequence.restarts == 1
    assert worst_angle < 0.02 and worst_place < 1e-4
    assert np.percentile(clock_errors, 99) < 0.002
    figures = track.statistics(events[-1][0])
    assert figures.received == len(seen) and figures.clock == "sender"
    assert figures.lost == pytest.approx(take.frames - len(seen), abs=4) and figures.duplicates > 50


def fed(take: Take, seconds: float, **more) -> Feed:
    feed = Feed([MVN], **more)
    for source, data in sent(take):
        if source <= seconds:
            feed.add(packet(source, data))
    return feed


def test_bone_lengths_stay_between_frames_and_rotations_go_the_short_way():
    take = dance(MVN.standard(), RATE, RATE * 2)
    take.local_rotations[::2] *= -1.0  # senders do not keep the sign
    feed = fed(take, 2.0)
    lengths = np.linalg.norm(take.skeleton.rest_translations, axis=1)[1:]
    for now in np.linspace(1.0, 1.5, 37):
        (moment,) = sample(feed.all().values(), float(now)).values()
        places = moment.positions
        now_lengths = np.linalg.norm(places[1:] - places[take.skeleton.parents[1:]], axis=1)
        assert np.abs(now_lengths - lengths).max() < 1e-6
        near = take.local_rotations[round(moment.time * RATE)]
        assert np.degrees(quat.angle(near, moment.rotations)).max() < 3.0


def test_held_when_nothing_newer_came_then_stale():
    feed = fed(dance(MVN.standard(), RATE, RATE), 1.0)
    last = 1.0 - 1 / RATE
    (fresh,) = sample(feed.all().values(), last).values()
    (held,) = sample(feed.all().values(), last + 0.3).values()
    (stale,) = sample(feed.all().values(), last + 0.7).values()
    assert (fresh.held, fresh.stale, held.held, held.stale, stale.stale) == (False, False, True, False, True)
    assert stale.age == pytest.approx(0.7) and np.array_equal(held.rotations, stale.rotations)


def test_twice_the_back_sample_is_twice_as_late():
    feed = fed(dance(MVN.standard(), RATE, RATE), 1.0)
    (near,), (far,) = (sample(feed.all().values(), 0.9, back).values() for back in (0.1, 0.2))
    assert near.time - far.time == pytest.approx(0.1, abs=1e-4)


def test_only_the_bodies_round_the_moment_are_decoded():
    take = dance(MVN.standard(), RATE, RATE * 4)
    feed = fed(take, 4.0)
    (track,) = feed.tracks.values()
    state = track.entries[-1].datagram.state
    before = state.counts.frames
    sample([track], 3.9)
    assert state.counts.frames - before <= 2
    assert before < take.frames / 4


def test_an_hour_of_five_performers_needs_no_more_than_a_minute():
    """The bounded ring: what is held depends on seconds, not on how long a session runs."""
    take = dance(MVN.standard(), RATE, RATE)
    packets = sent(take)
    feed = Feed([MVN])
    for second in range(30):
        for i, (time, _) in enumerate(packets):
            header = bytearray(packets[i][1])
            header[6:10] = (second * RATE + i).to_bytes(4, "big")
            header[12:16] = round((second + time) * 1000).to_bytes(4, "big")
            feed.add(packet(second + time, bytes(header)))
    (track,) = feed.tracks.values()
    assert len(track.entries) == len(track.times) <= 4 * RATE + 64 <= MOST_ENTRIES
    assert len(track._history) < 60 and track.sequence.received == 30 * RATE


def test_two_senders_on_one_port_are_two_and_one_that_comes_back_is_one():
    take = dance(MVN.standard(), RATE, RATE)
    feed = Feed([MVN])
    for time, data in sent(take):
        feed.add(packet(time, data, port=5000))
        feed.add(packet(time + 0.001, data, port=6000))
    assert len(feed.tracks) == 2
    for time, data in sent(take):
        feed.add(packet(10.0 + time, data, port=7000))  # one of them was started again, on another port
    assert len(feed.tracks) == 2


def test_a_sender_with_another_port_for_every_packet_is_one():
    feed = Feed([MVN])
    for i, (time, data) in enumerate(sent(dance(MVN.standard(), RATE, 200))):
        feed.add(packet(time, data, port=20000 + i))
    best = max(t.sequence.received for t in feed.tracks.values())
    assert len(feed.tracks) <= 9 and best > 180


def test_the_protocol_is_recognised_by_itself_and_what_nobody_knows_is_counted():
    feed = Feed(tuple(PROTOCOLS.values()))
    for time, data in sent(dance(MVN.standard(), RATE, 20)):
        feed.add(packet(time, data, to=39539))  # the usual port of another protocol
        feed.add(packet(time, b"what is that?" * 3, port=1, to=39539))
    assert [k[0] for k in feed.tracks] == ["mvn 127.0.0.1 to 39539"]
    assert [s.unknown for s in feed.slots.values()] == [0, 20]


def test_a_port_set_to_a_protocol_takes_no_other():
    feed = Feed(tuple(PROTOCOLS.values()), {9763: Port("vmc")})
    for time, data in sent(dance(MVN.standard(), RATE, 20)):
        feed.add(packet(time, data))
    (slot,) = feed.slots.values()
    assert not feed.tracks and slot.totals()["unknown"] + slot.totals()["broken"] == 20


def prop_datagrams(places: list[float], numbers: list[int | None]) -> list[bytes]:
    json = decoder("json")
    out = []
    for x, number in zip(places, numbers, strict=True):
        frame = Frame("Sword", "prop", number, None, ("Sword",), np.array([[x, 0.0, 1.0]]), np.array([[1.0, 0, 0, 0]]), name="Sword")
        out += json.encode([frame], Sender(number=number or 0))
    return out


def test_props_whose_number_stands_still_are_new_when_they_move():
    """S1: bodies are told apart by frame number, props by their transform."""
    from mocap_addon.stream.performers import Datagram, Track

    json = decoder("json")
    track = Track(("json x", "prop", "Sword"))
    state = json.state()
    data = prop_datagrams([0.0, 0.0, 0.0, 1.0, 2.0, 2.0], [0] * 6)
    taken = [len(track.add(0, None, i / 60, Datagram(d, json, state))) for i, d in enumerate(data)]
    assert taken == [1, 0, 0, 1, 1, 0]
    # It stood still until it was last seen to, and only then began to move.
    assert track.times == [0.0, 2 / 60, 3 / 60, 4 / 60, 5 / 60]


def test_a_body_whose_number_stands_still_is_shown_all_the_same():
    from mocap_addon.stream.performers import Datagram, Track

    track, state = Track(("mvn x", "body", "0")), MVN.state()
    taken = sum(len(track.add(0, i / 60, i / 60, Datagram(b"%d" % i, MVN, state))) for i in range(60))
    assert taken > 45


def test_late_frames_are_put_where_they_belong():
    from mocap_addon.stream.performers import Datagram, Track

    track, state = Track(("mvn x", "body", "0")), MVN.state()
    for number in (0, 1, 4, 2, 3, 5):
        track.add(number, number / 60, 0.1 + max(number, 4) / 60, Datagram(b"%d" % number, MVN, state))
    assert [e.number for e in track.entries] == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("name", ["vmc", "vrpn"])
def test_a_moment_that_arrives_in_pieces_is_one_frame(name):
    """Sent in many small packets with pauses of 10 ms between them: what was shown too early is completed, not kept."""
    take = dance(decoder(name).standard(), 10, 8)
    sender, feed = Sender(rate=10, options={"bundle": False}), Feed([decoder(name)])
    for i in range(take.frames):
        sender.number, sender.time = i, i / 10
        pieces = decoder(name).encode(frames_of(take, i, source="Ann"), sender)
        for k, data in enumerate(pieces):
            at = round((1000 + i / 10 + (0.012 if k > len(pieces) // 2 else 0.0)) * 1e9)
            feed.add(Packet(at, "udp" if name == "vmc" else "tcp", ("127.0.0.1", 5000), HERE, data, start=i == k == 0))
            feed.silence(feed.seconds(at))
    feed.silence()
    (track,) = (t for t in feed.tracks.values() if t.kind == "body")
    assert [round(e.source_time, 3) for e in track.entries] == [i / 10 for i in range(8)]
    for i, entry in enumerate(track.entries[1:], 1):
        frame = entry.datagram.frame("body", track.source)
        skeleton = decoder(name).skeleton(track.source, entry.datagram.state)
        rotations, _ = local_pose(frame, skeleton)
        at = [take.skeleton.index(n) for n in skeleton.names if n in take.skeleton]
        of = [k for k, n in enumerate(skeleton.names) if n in take.skeleton]
        assert np.degrees(quat.angle(take.local_rotations[i, at], rotations[of])).max() < 0.05, i
