# SPDX-License-Identifier: GPL-3.0-or-later
"""What servers want to hear before they send: for a source's ``hello``."""

from __future__ import annotations

from .natnet import NatNet
from .supervisor import Source
from .vrpn import COOKIE, Vrpn

NATNET_COMMANDS = 1510
"""The port that takes commands; motion goes to 1511, by multicast to 239.255.42.99."""


def greeted(source: Source, server: str | None = None) -> Source:
    """The source with what its protocol's server has to be told; as it is where that is nothing.

    Parameters
    ----------
    source : Source
        With ``protocol`` set.
    server : str, optional
        NatNet: the address of the computer that runs Motive.
    """
    if source.hello:
        return source
    hello: list[dict[str, object]] = []
    if source.protocol == "vrpn" and source.transport == "tcp":
        decoder = Vrpn()
        hello = [{"data": decoder.answers(COOKIE, decoder.state()).hex()}]
    elif source.protocol == "natnet" and server:
        to = [server, NATNET_COMMANDS]
        hello = [{"data": NatNet().greeting().hex(), "to": to, "every": 10.0}, {"data": NatNet().request().hex(), "to": to, "every": 10.0}]
    if not hello:
        return source
    return Source(source.port, source.transport, source.host, source.group, source.protocol, source.options, tuple(hello))
