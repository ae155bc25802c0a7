# SPDX-License-Identifier: GPL-3.0-or-later
"""Live motion: what is listened to, who drives what, and how a recording is named. Stored with the scene."""

# pyright: reportInvalidTypeForm=false
from __future__ import annotations

import bpy
from bpy.props import BoolProperty, CollectionProperty, EnumProperty, FloatProperty, IntProperty, PointerProperty, StringProperty

from ..stream.protocols import PROTOCOLS

TRANSPORTS = (
    ("UDP", "UDP", "Datagrams that a sender sends to this computer: the usual way"),
    ("TCP", "TCP", "Connect to a program that offers its motion at an address"),
    ("TCP-SERVER", "TCP, Listening", "Wait until a program connects to this computer"),
)
AUTO = ("AUTO", "Find Out", "The protocol is recognised by itself")
ITEMS = (
    AUTO,
    *((name.upper(), decoder.title, f"{decoder.title}, usually on port {decoder.default_port}") for name, decoder in PROTOCOLS.items()),
)
SEND_ITEMS = ITEMS[1:]
RATES = (
    ("SCENE", "Scene", "Keys on the scene's whole frames, by the sender's own clock"),
    ("SOURCE", "As Sent", "Every sample that was sent becomes a key, also between the scene's frames"),
)


def _changed(self: bpy.types.PropertyGroup, context: bpy.types.Context) -> None:
    from . import live

    live.sources_changed()


def _protocol_changed(self: MocapLiveSource, context: bpy.types.Context) -> None:
    decoder = PROTOCOLS.get(self.protocol.lower())
    if decoder is not None:
        self.port = decoder.default_port
        if "udp" not in decoder.transports:
            self.transport = "TCP"
    _changed(self, context)


def _binding_changed(self: MocapLiveBinding, context: bpy.types.Context) -> None:
    from . import live

    live.bindings_changed()


def _back_changed(self: MocapLive, context: bpy.types.Context) -> None:
    from . import live

    live.set_back(self.back)


class MocapLiveSource(bpy.types.PropertyGroup):
    """A port that is listened to."""

    protocol: EnumProperty(name="Protocol", description="What the sender speaks", items=ITEMS, update=_protocol_changed)
    port: IntProperty(name="Port", description="The port that the sender sends to", default=9763, min=1, max=65535, update=_changed)
    transport: EnumProperty(name="Transport", description="How the motion arrives", items=TRANSPORTS, update=_changed)
    host: StringProperty(
        name="Address",
        description="The address of this computer to listen at: 127.0.0.1 for senders on this computer alone, 0.0.0.0 for the whole "
        "network. For TCP: the address to connect to",
        default="127.0.0.1",
        update=_changed,
    )
    group: StringProperty(name="Multicast", description="A multicast group to join, such as 239.255.42.99. Empty: none", update=_changed)
    server: StringProperty(
        name="Motive At",
        description="Address of the computer that runs Motive, which is asked for names and skeletons. Empty: it is not asked",
        update=_changed,
    )


class MocapLiveBinding(bpy.types.PropertyGroup):
    """Somebody who was heard, and what moves as they do. ``name`` is for people, ``identity`` says who it is."""

    def _moves(self, obj: bpy.types.Object) -> bool:
        return obj.library is None and (obj.type == "ARMATURE") == (self.kind == "body")

    identity: StringProperty()
    kind: StringProperty()
    protocol: StringProperty()
    target: PointerProperty(
        name="Drives",
        description="The character, or for a prop the object, that moves as this one does",
        type=bpy.types.Object,
        poll=_moves,
        update=_binding_changed,
    )
    use: BoolProperty(name="Live", description="Show the motion on the character or object", default=True, update=_binding_changed)
    reference: StringProperty(description="The performer's pose that stands as the character does at rest, as text")


class MocapLive(bpy.types.PropertyGroup):
    """All of it."""

    sources: CollectionProperty(type=MocapLiveSource)
    active_source: IntProperty(name="Source", description="The port in use")
    performers: CollectionProperty(type=MocapLiveBinding)
    active_performer: IntProperty(name="Performer", description="The performer or prop in use")
    back: FloatProperty(
        name="Delay",
        description="How far behind the sender the motion is shown, so that late packets still count. Seconds",
        default=0.1,
        min=0.0,
        soft_max=1.0,
        precision=3,
        subtype="TIME_ABSOLUTE",
        unit="TIME_ABSOLUTE",
        update=_back_changed,
    )
    calibrate_in: FloatProperty(
        name="Countdown",
        description="Seconds until the pose is taken, time enough to step into it",
        default=3.0,
        min=0.0,
        soft_max=10.0,
        precision=0,
    )
    take: StringProperty(name="Take", description="What the take is called", default="Take")
    number: IntProperty(name="Number", description="The take's number; it counts on by itself", default=1, min=1)
    slate: StringProperty(name="Slate", description="Scene or shot, in front of the take's name. May be empty")
    rating: IntProperty(name="Rating", description="How good the last take was, 0 to 5 stars", min=0, max=5)
    preroll: FloatProperty(
        name="Pre-roll",
        description="Seconds from before the button was pressed that belong to the take",
        default=0.0,
        min=0.0,
        max=60.0,
        precision=1,
    )
    countdown: FloatProperty(
        name="Countdown", description="Seconds until recording begins", default=0.0, min=0.0, soft_max=10.0, precision=0
    )
    folder: StringProperty(
        name="Folder",
        description="Where recordings are kept. Empty: a folder named mocap beside the saved file, else the add-on's own",
        subtype="DIR_PATH",
    )
    keys: EnumProperty(name="Keys", description="Where the keys of a recorded take fall", items=RATES)
    send_protocol: EnumProperty(name="Protocol", description="What is spoken to the receiver", items=SEND_ITEMS)
    send_host: StringProperty(name="Address", description="Where the motion is sent", default="127.0.0.1")
    send_port: IntProperty(name="Port", description="The receiver's port", default=9763, min=1, max=65535)
    send_loop: BoolProperty(name="Repeat", description="Begin again at the end", default=True)
    send_speed: FloatProperty(name="Speed", description="Times the motion's own speed", default=1.0, min=0.05, soft_max=4.0)
