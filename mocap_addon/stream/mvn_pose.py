# SPDX-License-Identifier: GPL-3.0-or-later
"""MVN's poses: items to places and rotations in the project's axes, one sample at a time or many at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..motion import quat
from . import mvn_wire
from .axes import MVN, MVN_Y_UP, UNITY, Y_UP, Axes
from .base import BrokenPacketError
from .frame import NO_CURVES, Frame, Space
from .mvn_layout import UNITY_ORDER, Layout, layout
from .mvn_state import Character, MvnState
from .mvn_wire import Header

Array = NDArray[np.float64]
POSES = frozenset((b"01", b"02", b"05"))
_ORDERS: dict[Axes, tuple[NDArray[np.intp], Array]] = {a: a.vector_turn for a in (MVN, MVN_Y_UP, UNITY)}
_LOW, _HIGH = 0.95**2, 1.05**2
_FAR = 1e5


def read(whole: bytes, items: int, head: Header, state: MvnState) -> list[Frame]:
    """The frames of one sample whose items stand in ``whole``."""
    width = mvn_wire.ITEM_BYTES[head.kind] // 4
    values = np.frombuffer(whole, ">f4", items * width).reshape(items, width)
    character = state.character(head.character)
    if head.kind == b"05":
        return _unity(values, head, state, character)
    learn(character, values, (head.body, head.props, head.fingers))
    lay = character.layout
    assert lay is not None
    places, turns = _quaternions(values, state, lay) if head.kind == b"02" else _euler(values, state, lay)
    frames = _frames(places, turns, head, character, lay)
    own = frames[0]
    if own.positions is not None and own.rotations is not None and (character.pose is None or character.pose[0] is not lay):
        character.pose = (lay, own.positions, own.rotations)
    return frames


def learn(character: Character, values: NDArray[np.float32], declared: tuple[int, int, int]) -> None:
    """Which segments the items are, where that is not known yet or has changed."""
    ids = values.view(">u4")[:, 0]
    seen = ids.tobytes()
    if character.layout is not None and seen == character.id_bytes and declared == character.declared:
        return
    if int(ids.max()) > 4096:
        raise BrokenPacketError("a segment's number is out of range")
    found = layout(tuple(ids.tolist()), declared)
    if not found.names:
        raise BrokenPacketError("no segment of a body")
    character.layout, character.id_bytes, character.declared = found, seen, declared


def ready(head: Header, state: MvnState) -> Character | None:
    """The performer, where a sample like this one was read before, so that many can be read at once."""
    character = state.characters.get(head.character)
    if character is None or character.layout is None or not character.layout.in_order or character.layout.props:
        return None
    if state.axes is None or b"02" not in state.units or character.pose is None:
        return None
    return character if character.declared == (head.body, head.props, head.fingers) else None


def read_many(
    bodies: Sequence[bytes], heads: Sequence[Header], codes: Sequence[str | None], character: Character, state: MvnState
) -> list[Frame | None]:
    """Samples of type 02 of one performer and layout, all at once. None where one is not like the others: read that alone."""
    lay, axes = character.layout, state.axes
    assert lay is not None and axes is not None
    n, items = len(bodies), len(lay.names)
    values = np.frombuffer(b"".join(bodies), ">f4").reshape(n, items, 8)
    same = (values.view(">u4")[:, :, 0] == np.frombuffer(character.id_bytes, ">u4")).all(axis=1)
    index, signs = _ORDERS[axes]
    with np.errstate(all="ignore"):
        turned = values.astype(np.float64)[:, :, index + 1] * signs
        places, turns = turned[:, :, :3], turned[:, :, 3:]
        if (unit := state.units[b"02"]) != 1.0:
            places = places * unit
        square = np.einsum("fji,fji->fj", turns, turns)
        good = same & (square >= _LOW).all(axis=1) & (square <= _HIGH).all(axis=1) & (np.abs(places) <= _FAR).all(axis=(1, 2))
        turns = turns / np.sqrt(square)[:, :, None]
    source = str(heads[0].character)
    name = character.name or source
    return [
        Frame(source, "body", h.sample, h.time_code / 1000.0, lay.names, places[i], turns[i], "global", NO_CURVES, codes[i], None, name)
        if ok
        else None
        for i, (h, ok) in enumerate(zip(heads, good.tolist(), strict=True))
    ]


def _quaternions(values: NDArray[np.float32], state: MvnState, lay: Layout) -> tuple[Array, Array]:
    if state.axes is None:
        state.axes = _axes_of(values, state, lay)
    unit = state.units.get(b"02") or _unit_of(values, b"02", state, lay)
    index, signs = _ORDERS[state.axes]
    turned = values.astype(np.float64)[:, index + 1] * signs
    return _scaled(turned[:, :3], unit), turned[:, 3:]


def _euler(values: NDArray[np.float32], state: MvnState, lay: Layout) -> tuple[Array, Array]:
    unit = state.units.get(b"01") or _unit_of(values, b"01", state, lay)
    order = str(state.options.get("euler_order", "ZYX"))
    angles = np.radians(values[:, 4:7].astype(np.float64))
    if not np.abs(angles).max() < 1e3:
        raise BrokenPacketError("an angle is no angle")
    in_order = angles[:, ["XYZ".index(c) for c in order]]
    return _scaled(Y_UP.points(values[:, 1:4].astype(np.float64)), unit), Y_UP.from_wxyz(quat.from_euler(in_order, order))


def _unity(values: NDArray[np.float32], head: Header, state: MvnState, character: Character) -> list[Frame]:
    """Type 05: 23 segments in another order, local but for the pelvis; props are global."""
    if len(values) < 23:
        raise BrokenPacketError("fewer than 23 segments")
    lay = layout(tuple(range(1, 24)), (23, 0, 0))
    index, signs = _ORDERS[UNITY]
    turned = values.astype(np.float64)[:, index + 1] * signs
    in_order = np.empty((23, 7))
    in_order[list(UNITY_ORDER)] = turned[:23]
    unit = state.units.get(b"05")
    if unit is None:
        unit = decided(float(np.linalg.norm(in_order[1:7, :3].sum(axis=0))), b"05", state)
    places, turns = _scaled(in_order[:, :3], unit), _rotations(in_order[:, 3:])
    character.offsets = places
    frames = [_body(head, character, lay, places, turns, "local")]
    for k in range(len(values) - 23):
        row = turned[23 + k : 24 + k]
        frames.append(_prop(head, f"Prop{k + 1}", _scaled(row[:, :3], unit), _rotations(row[:, 3:])))
    return frames


def _frames(places: Array, turns: Array, head: Header, character: Character, lay: Layout) -> list[Frame]:
    own_places, own_turns = (places, turns) if lay.in_order else (places[lay.items], turns[lay.items])
    square = np.einsum("ij,ij->i", own_turns, own_turns)
    valid: NDArray[np.bool_] | None = None
    if not (square.min() >= _LOW and square.max() <= _HIGH):
        good = (square >= _LOW) & (square <= _HIGH)
        if not good[:23].all():
            raise BrokenPacketError("a quaternion is not of unit length")
        own_turns, square = own_turns.copy(), square.copy()
        own_turns[~good], square[~good] = (1.0, 0.0, 0.0, 0.0), 1.0
        valid = good
    frames = [_body(head, character, lay, own_places, own_turns / np.sqrt(square)[:, None], "global", valid)]
    for name, item in lay.props:
        row = turns[item : item + 1]
        length = float((row * row).sum())
        if _LOW <= length <= _HIGH:
            frames.append(_prop(head, name, places[item : item + 1], row / length**0.5))
    return frames


def _body(
    head: Header, character: Character, lay: Layout, places: Array, turns: Array, space: Space, valid: NDArray[np.bool_] | None = None
) -> Frame:
    source = str(head.character)
    text, name = character.code_at(head.sample), character.name or source
    return Frame(source, "body", head.sample, head.time_code / 1000.0, lay.names, places, turns, space, NO_CURVES, text, valid, name)


def _prop(head: Header, name: str, places: Array, turns: Array) -> Frame:
    return Frame(f"{head.character}/{name}", "prop", head.sample, head.time_code / 1000.0, (name,), places, turns, name=name)


def _scaled(places: Array, unit: float) -> Array:
    scaled = places * unit if unit != 1.0 else places
    if not (scaled.min() >= -_FAR and scaled.max() <= _FAR):
        raise BrokenPacketError("a place is out of any room")
    return scaled


def _rotations(turns: Array) -> Array:
    square = (turns * turns).sum(axis=-1)
    if not (square.min() >= _LOW and square.max() <= _HIGH):
        raise BrokenPacketError("a quaternion is not of unit length")
    return turns / np.sqrt(square)[:, None]


def _unit_of(values: NDArray[np.float32], kind: bytes, state: MvnState, lay: Layout) -> float:
    if lay.pairs is None:
        return 1.0
    a, b = (int(lay.items[j]) for j in lay.pairs)
    return decided(float(np.linalg.norm(values[b, 1:4].astype(np.float64) - values[a, 1:4].astype(np.float64))), kind, state)


def decided(span: float, kind: bytes, state: MvnState) -> float:
    """Metres per unit, decided once: pelvis and head lie half a metre apart."""
    chosen = state.options.get("unit")
    if chosen in ("m", "cm"):
        state.units[kind] = 1.0 if chosen == "m" else 0.01
        return state.units[kind]
    if not 0.05 < span < 500.0:
        return 1.0
    state.units[kind] = 0.01 if span > 5.0 else 1.0
    if span > 5.0:
        state.note("Lengths are taken as centimetres: pelvis and head are more than 5 units apart.")
    return state.units[kind]


def _axes_of(values: NDArray[np.float32], state: MvnState, lay: Layout) -> Axes:
    """Z up, or Y up where the spine leaves the pelvis along its Y axis."""
    chosen = state.options.get("up")
    if chosen in ("y", "z"):
        return MVN_Y_UP if chosen == "y" else MVN
    if "Pelvis" not in lay.names or "L5" not in lay.names:
        return MVN
    a, b = (values[int(lay.items[lay.names.index(n)])].astype(np.float64) for n in ("Pelvis", "L5"))
    up = quat.rotate(quat.inv(a[4:8]), b[1:4] - a[1:4])
    if np.isfinite(up).all() and abs(up[1]) > 2.0 * abs(up[2]):
        state.note("The streamer is set to Y up.")
        return MVN_Y_UP
    return MVN
