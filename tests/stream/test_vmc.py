# SPDX-License-Identifier: GPL-3.0-or-later
"""VMC beyond its vector: where frames end, what is lost, times that are none, everything beside the bones."""

from __future__ import annotations

import struct

import numpy as np

from mocap_addon.motion import quat
from mocap_addon.stream import humanoid, osc
from mocap_addon.stream.frame import Sender, frames_of, to_take
from mocap_addon.stream.vmc import Vmc

from .bodies import moving, of_kind, packets, received

VMC = Vmc()


def bone(name: str, x: float = 0.0, *rest: float) -> bytes:
    row = (x, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
    return osc.encode("/VMC/Ext/Bone/Pos", name, *row[: 7 - len(rest)], *rest)


def time(seconds: float) -> bytes:
    return osc.encode("/VMC/Ext/T", seconds)


def bundle(*elements: bytes) -> bytes:
    return osc.bundles(elements, 1 << 20)[0]


def test_a_frame_ends_with_the_next_time_with_ok_and_with_a_bone_again():
    for mark in (time(0.5), osc.encode("/VMC/Ext/OK", 1), bone("Hips", 2.0)):
        state = VMC.state()
        got = [VMC.decode(data, state) for data in (bone("Hips", 1.0), bone("Spine"), mark)]
        assert [len(g) for g in got] == [0, 0, 1]
        assert got[2][0].joints == ("Hips", "Spine") and got[2][0].positions[0, 0] == -1.0


def test_from_the_second_frame_on_it_ends_with_its_last_bone():
    state = VMC.state()
    first = [time(0.0), bone("Hips", 1.0), bone("Spine"), bone("Head")]
    for data in first:
        assert VMC.decode(data, state) == []
    counts = [len(VMC.decode(data, state)) for data in (time(0.1), bone("Hips", 2.0), bone("Spine"), bone("Head"))]
    assert counts == [1, 0, 0, 1]
    counts = [len(VMC.decode(data, state)) for data in (time(0.2), bone("Spine"), bone("Head"), bone("Hips", 3.0))]
    assert counts == [0, 0, 0, 1]


def test_a_lost_bone_holds_its_last_value_and_is_marked():
    state = VMC.state()
    for t in (0.0, 0.1):
        for data in (time(t), bone("Hips", t), bone("Spine"), bone("Head", 5.0)):
            VMC.decode(data, state)
    got = [f for data in (time(0.2), bone("Hips", 0.2), bone("Spine"), time(0.3)) for f in VMC.decode(data, state)]
    (frame,) = got
    assert frame.joints == ("Hips", "Spine", "Head") and frame.valid.tolist() == [True, True, False]
    assert frame.positions[2, 0] == -5.0 and frame.time == np.float32(0.2)


def test_two_frames_in_one_bundle():
    state = VMC.state()
    data = bundle(time(0.0), bone("Hips", 1.0), bone("Head"), time(0.1), bone("Hips", 2.0), bone("Head"))
    got = VMC.decode(data, state) + VMC.flush(state)
    assert [f.positions[0, 0] for f in got] == [-1.0, -2.0] and [f.time for f in got] == [0.0, np.float32(0.1)]


def test_ints_doubles_and_surplus_arguments():
    state = VMC.state()
    name = b"Hips\0\0\0\0"
    ints = b"/VMC/Ext/Bone/Pos\0\0\0" + b",sffffiif\0\0\0" + name + struct.pack(">4f2if", 1.5, 2, 3, 0, 0, 0, 1)
    doubles = b"/VMC/Ext/Bone/Pos\0\0\0" + b",sddddddd\0\0\0" + b"Head\0\0\0\0" + struct.pack(">7d", 1.5, 2, 3, 0, 0, 0, 1)
    surplus = (
        b"/VMC/Ext/Bone/Pos\0\0\0"
        + b",sfffffffsTNf\0\0\0"
        + b"Neck\0\0\0\0"
        + struct.pack(">7f", 1.5, 2, 3, 0, 0, 0, 1)
        + b"new\0"
        + bytes(4)
    )
    assert len(ints) == len(b"/VMC/Ext/Bone/Pos\0\0\0") + 12 + 8 + 28
    for data in (ints, doubles, surplus):
        assert VMC.decode(data, state) == []
    (frame,) = VMC.flush(state)
    assert frame.joints == ("Hips", "Neck", "Head") and state.counts.broken == 0
    np.testing.assert_allclose(frame.positions, [(-1.5, -3, 2)] * 3)


def test_times_that_are_none():
    """An epoch in a float32 steps by 128 s; a clock that stands says nothing either; one that runs does."""
    for times, good in (
        ([1.7e9, 1.7e9, 1.7e9 + 128], False),
        ([5.0] * 8, False),
        ([5.0, 5.0156, 5.0312], True),
        ([float("nan"), float("inf"), float("-inf")], False),
    ):
        state = VMC.state()
        shown = [f.time for t in times for f in VMC.decode(bundle(time(t), bone("Hips"), bone("Head")), state) + VMC.flush(state)]
        assert (shown[-1] is not None) == good, times
        assert all(h.time is None or good or h.time == 5.0 for t in times for h in VMC.header(bundle(time(t)), state))


def test_trackers_cameras_and_blends():
    row = (1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 1.0)
    data = bundle(
        osc.encode("/VMC/Ext/Tra/Pos", "LHR-1", *row),
        osc.encode("/VMC/Ext/Hmd/Pos", "HMD", *row),
        osc.encode("/VMC/Ext/Con/Pos/Local", "raw", *row),
        osc.encode("/VMC/Ext/Cam", "Camera", *row, 60.0),
        osc.encode("/VMC/Ext/Blend/Val", "Joy", 0.5),
        osc.encode("/VMC/Ext/Blend/Val", "Blink", 1),
        osc.encode("/VMC/Ext/Blend/Apply"),
        osc.encode("/VMC/Ext/VRM", "path", "title"),
        osc.encode("/VMC/Ext/Rcv", 1, 39539),
    )
    frames, state = received(VMC, [data])
    assert {f.source for f in of_kind(frames, "prop")} == {"LHR-1", "HMD", "Camera"}
    np.testing.assert_array_equal(of_kind(frames, "prop")[0].positions, [(-1, -3, 2)])
    assert next(f for f in frames if f.source == "Camera").curves == {"fov": 60.0}
    assert [f.curves for f in of_kind(frames, "morphs")] == [{"Joy": 0.5, "Blink": 1.0}]
    assert state.counts.broken == 0


def test_blends_wait_for_apply():
    state = VMC.state()
    assert VMC.decode(osc.encode("/VMC/Ext/Blend/Val", "Joy", 0.5), state) == []
    assert VMC.decode(osc.encode("/VMC/Ext/Blend/Apply"), state)[0].curves == {"Joy": 0.5}


def test_the_root_carries_the_hips():
    turn = (0.0, 0.5**0.5, 0.0, 0.5**0.5)  # 90 degrees about Unity's up
    data = [osc.encode("/VMC/Ext/Root/Pos", "root", 1.0, 0.0, 2.0, *turn, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0), bone("Hips", 1.0), bone("Spine")]
    frames, _ = received(VMC, data)
    (frame,) = frames
    # Unity turns x into -z about up by 90 degrees (left-handed): 1, 0, 2 and 0, 0, -1
    np.testing.assert_allclose(frame.positions[0], (-1.0, -1.0, 0.0), atol=1e-6)
    np.testing.assert_allclose(frame.rotations[1], (1, 0, 0, 0), atol=1e-12)


def test_the_body_s_bones_are_the_model_s():
    """Places of bones are the model's own lengths; where a sender has none, an average body stands in."""
    take = moving(humanoid.standard(), frames=2, props=())
    frames, state = received(VMC, packets(VMC, take))
    found = VMC.skeleton("VMC", state)
    np.testing.assert_allclose(found.rest_translations[1:], take.skeleton.rest_translations[1:], atol=1e-6)
    state = VMC.state()
    for name in take.skeleton.names:
        VMC.decode(bone(name), state)
    VMC.flush(state)
    assert 0.8 < VMC.skeleton("VMC", state).rest_translations[0, 2] < 1.1
    assert VMC.skeleton("VMC", VMC.state()) is None
    assert len(frames) >= 2


def test_shapes_that_are_remembered_read_as_the_ones_that_are_not():
    """A bundle read by its remembered shape is what the reader of messages makes of it, also when another shape has the same length."""
    takes = [moving(humanoid.standard(humanoid.BONES), frames=5, seed=s, props=()) for s in (0, 1)]
    sent = [d for t in takes for d in packets(VMC, t, Sender(mtu=65000))]
    other = [d.replace(b"LeftUpperArm", b"UpperArmLeft") for d in sent]
    stream = [x for pair in zip(sent, other, strict=True) for x in pair]
    kept, fresh = VMC.state(), VMC.state()
    for data in stream:
        fresh.templates.clear()
        a, b = VMC.decode(data, kept), VMC.decode(data, fresh)
        assert [(f.kind, f.joints, f.time) for f in a] == [(f.kind, f.joints, f.time) for f in b]
        for x, y in zip(a, b, strict=True):
            np.testing.assert_array_equal(x.rotations, y.rotations)
            assert (x.valid is None) == (y.valid is None)
    assert len(kept.templates) == 1 and len(next(iter(kept.templates.values()))) == 2


def test_what_is_no_vmc():
    for data, where in (
        (osc.encode("/avatar/parameters", 1.0), "unknown"),
        (b"hello", "unknown"),
        (b"#bundle\0", "broken"),
        (bundle(bone("Hips"))[:-4], "broken"),
        (b"/VMC/Ext/Bone/Pos\0\0\0,sfff\0\0\0Hips\0\0\0\0", "broken"),
    ):
        state = VMC.state()
        assert VMC.decode(data, state) == [] and getattr(state.counts, where) == 1, data
    state = VMC.state()
    odd = bundle(
        bone("Hips"), osc.encode("/VMC/Ext/Bone/Pos", "Head", 1.0), bone("Spine"), osc.encode("/VMC/Ext/Bone/Pos", "Tail", *(0.0,) * 6, 1.0)
    )
    assert VMC.decode(odd, state) == [] and state.counts.broken == 1
    assert VMC.flush(state)[0].joints == ("Hips", "Spine")


def test_a_stream_joined_in_the_middle():
    take = moving(humanoid.standard(), frames=5, props=())
    sent = packets(VMC, take, Sender(options={"bundle": False}))
    per = len(sent) // 5
    frames, state = received(VMC, sent[per + 10 :])
    bodies = of_kind(frames, "body")
    again = to_take(bodies[1:], VMC.skeleton("VMC", state), take.times[2:])
    shown = [again.skeleton.index(n) for n in take.skeleton.names]
    assert quat.angle(again.global_rotations[:, shown], take.global_rotations[2:]).max() < 1e-5
    assert frames_of(take, 0)
