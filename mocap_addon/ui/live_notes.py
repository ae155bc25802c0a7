# SPDX-License-Identifier: GPL-3.0-or-later
"""Who is who in a stream, and what is kept of it beside a recording, so that it is shown the same way again."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

import bpy
import numpy as np

from .. import rig
from ..blender import live_pose, settings_file
from ..motion.errors import MocapError
from ..rig.table import CorrectionTable
from ..stream.performers import Key
from ..stream.session import LiveSession
from ..stream.sidecar import Sidecar, reference_pose
from . import body, settings, table_sync


def identity(key: Key) -> str:
    """Who somebody is from one start of the sender to the next: protocol, the sender's host, kind and name, but not its port."""
    protocol, _, address = key[0].partition(" ")
    return "|".join((protocol, address.rpartition(":")[0], key[1], key[2]))


def reference_of(binding, skeleton) -> tuple[np.ndarray | None, np.ndarray | None]:
    """The performer's calibrated pose, local; None where there is none for these joints."""
    return reference_pose(binding.reference, skeleton.names) or (None, None)


def keep(session: LiveSession, rigs: Mapping[str, live_pose.Rig], scene: bpy.types.Scene, notes: Sidecar) -> None:
    """Note what a person calls the performers, by which table each is shown, and the pose that it was calibrated in.

    ``rigs``: by identity, what shows the performers now.
    """
    listed = {b.identity: b for b in scene.mocap.live.performers}
    notes.performers |= {who.rpartition("|")[2]: binding.name for who, binding in listed.items()}
    for key in session.feed.all():
        binding = listed.get(identity(key))
        if binding is None:
            continue
        if binding.reference:
            notes.references[" ".join(key)] = binding.reference
        with suppress(MocapError):  # a recording does not wait for a number that cannot be written
            table = _table_of(rigs, binding)
            if table is not None:
                notes.tables[" ".join(key)] = rig.dumps(_with_settings(table, binding.target, scene))


def _table_of(rigs: Mapping[str, live_pose.Rig], binding) -> CorrectionTable | None:
    """By which table a performer is shown; None where it moves no character."""
    known, obj = rigs.get(binding.identity), binding.target
    if obj is None or obj.type != "ARMATURE":
        return None
    return known.table if known is not None and known.obj == obj else table_sync.to_table(obj)


def _with_settings(table: CorrectionTable, obj: bpy.types.Object, scene: bpy.types.Scene) -> CorrectionTable:
    options = replace(settings.job_options(scene.mocap), rate="source", adjustments=body.adjustments(obj, scene))
    return settings_file.with_settings(table, options)
