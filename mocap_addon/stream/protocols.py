# SPDX-License-Identifier: GPL-3.0-or-later
"""Every protocol, and which one a datagram or a TCP stream is of."""

from __future__ import annotations

from collections.abc import Mapping

from ..motion.errors import MocapError
from .chingmu import ChingMu
from .frame import Decoder
from .mvn import Mvn
from .natnet import NatNet
from .noitom import Noitom
from .own_json import OwnJson
from .rokoko import Rokoko
from .vmc import Vmc
from .vrpn import Vrpn

PROTOCOLS: Mapping[str, Decoder] = {d.name: d for d in (Mvn(), Vmc(), OwnJson(), ChingMu(), Rokoko(), Noitom(), NatNet(), Vrpn())}
"""By name, in the order in which they are tried: what is told most surely comes first."""


def decoder(name: str) -> Decoder:
    """The protocol called ``name``; :class:`MocapError` with the names there are."""
    found = PROTOCOLS.get(name)
    if found is None:
        raise MocapError(f'There is no protocol called "{name}"; there are {", ".join(PROTOCOLS)}.')
    return found


def recognise(data: bytes) -> Decoder | None:
    """The protocol of a datagram, or of the first bytes of a TCP stream; None when nobody knows it. Never raises."""
    for candidate in PROTOCOLS.values():
        if candidate.recognises(data):
            return candidate
    return None
