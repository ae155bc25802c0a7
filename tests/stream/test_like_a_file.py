# SPDX-License-Identifier: GPL-3.0-or-later
"""A recorded MVNX take, sent as MVN's network streamer would send it, is the file's motion again and retargets like it."""

from __future__ import annotations

import numpy as np
import pytest

from mocap_addon import formats, retarget, rig
from mocap_addon.motion import quat
from mocap_addon.stream import humanoid
from mocap_addon.stream.frame import Sender, to_take
from mocap_addon.stream.protocols import decoder
from tests.paths import SHARED, need

from .bodies import of_kind, packets, received

FILES = ("mvnx3_fullbody_240hz_4f.mvnx", "mvnx4_upperbody_60hz_112f.mvnx")


@pytest.fixture(params=FILES)
def recorded(request):
    return formats.read(need(SHARED / "xsens" / request.param))[0]


@pytest.mark.parametrize("null_pose", [True, False])
def test_mvn(recorded, null_pose):
    protocol = decoder("mvn")
    types = ("13", "02") if null_pose else ("02",)
    frames, state = received(protocol, packets(protocol, recorded, Sender(options={"types": types})))
    bodies = of_kind(frames, "body")
    assert len(bodies) == recorded.frames and state.counts.broken == state.counts.incomplete == 0
    found = protocol.skeleton(bodies[0].source, state)
    live = to_take(bodies, found, recorded.times)
    shown = [found.index(n) for n in recorded.skeleton.names if n in found]
    kept = [recorded.skeleton.index(n) for n in recorded.skeleton.names if n in found]
    assert len(shown) >= 23
    turned = quat.mul(recorded.global_rotations, quat.inv(recorded.skeleton.rest_global_rotations))
    np.testing.assert_array_less(quat.angle(live.global_rotations[:, shown], turned[:, kept]), np.radians(0.01))
    np.testing.assert_allclose(live.global_positions[:, shown], recorded.global_positions[:, kept], atol=1e-6)
    rest = recorded.skeleton.rest_global_positions[kept] if null_pose else None
    if rest is not None:
        np.testing.assert_allclose(found.rest_global_positions[shown][:23], rest[:23], atol=1e-5)
    target = humanoid.standard(humanoid.BONES)
    there = rig.match(target)
    results = []
    for take in (recorded, live):
        table = retarget.build_table(take.skeleton, rig.match(take.skeleton), target, there)
        results.append(retarget.retarget(take, table, target))
    file, stream = results
    assert file.bones == stream.bones
    assert np.degrees(quat.angle(file.rotations, stream.rotations)).max() < 0.001
