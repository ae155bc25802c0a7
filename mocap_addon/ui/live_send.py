# SPDX-License-Identifier: GPL-3.0-or-later
"""A take, or a character's own animation, as a live stream in any of the protocols, from a timer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import bpy

from ..blender import sources
from ..motion.errors import MocapError
from ..motion.take import Take
from ..retarget.sending import on_protocol
from ..stream import protocols, send
from ..stream.frame import Sender
from ..stream.supervisor import StreamError
from . import characters, preview, takes


@dataclass
class Sending:
    """What is being sent, and to where."""

    player: send.Player
    outlet: send.Outlet
    name: str
    to: str
    message: str = ""


_sending: Sending | None = None


def sending() -> Sending | None:
    """What is being sent."""
    return _sending


def start(scene: bpy.types.Scene) -> Sending:
    """Begin to send what the panel is set to.

    Raises
    ------
    MocapError
        There is no take, the address is another computer's and Blender may not go online, or it cannot be sent to.
    """
    global _sending
    stop()
    settings = scene.mocap.live
    host, port = settings.send_host.strip() or "127.0.0.1", int(settings.send_port)
    check_allowed(host)
    decoder = protocols.decoder(settings.send_protocol.lower())
    take = on_protocol(take_of(scene), decoder)
    outlet = send.Outlet(host, port, "udp" if "udp" in decoder.transports else "tcp-server")
    sender = Sender()

    def rounds(shift: float) -> Iterator[send.Moment]:
        return send.moments([take], decoder, sender=sender, shift=shift)

    _sending = Sending(send.Player(rounds, outlet, speed=settings.send_speed, loop=settings.send_loop), outlet, take.name, f"{host}:{port}")
    if not bpy.app.background and not bpy.app.timers.is_registered(_tick):
        bpy.app.timers.register(_tick, first_interval=0.0, persistent=True)
    return _sending


def stop() -> None:
    """Send no more. Safe to call again."""
    global _sending
    found, _sending = _sending, None
    if bpy.app.timers.is_registered(_tick):
        bpy.app.timers.unregister(_tick)
    if found is not None:
        found.outlet.close()


def take_of(scene: bpy.types.Scene) -> Take:
    """The panel's take; without one the animation of the character in use.

    Raises
    ------
    MocapError
        There is neither.
    """
    if takes.chosen(scene):
        return preview.panel_take(scene)
    obj = characters.of(bpy.context)
    if obj is None:
        raise MocapError("There is nothing to send; choose a take, or select an armature that moves.")
    return sources.read_rig(obj)


def check_allowed(host: str) -> None:
    """Raise :class:`StreamError` where motion would leave this computer and Blender's Preferences do not allow it."""
    own = host.startswith("127.") or host in ("localhost", "::1")
    if not own and hasattr(bpy.app, "online_access") and not bpy.app.online_access:
        raise StreamError(f"{host} is another computer; turn on Allow Online Access in the Preferences (System) to send motion there.")


def tick() -> float | None:
    """Send what is due; seconds until more is. Never raises."""
    if _sending is None:
        return None
    try:
        wait = _sending.player.tick()
    except Exception as error:
        _sending.message = str(error)
        wait = None
    if wait is None:
        stop()
    return wait


def _tick() -> float | None:
    wait = tick()
    return None if wait is None else max(0.0, min(wait, 0.05))
