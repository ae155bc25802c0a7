# SPDX-License-Identifier: GPL-3.0-or-later
"""The keys of a Unity clip: nearly all of its bytes, as arrays.

Unity writes every key of a curve with the same lines. What is left of a key without its digits is its *shape*; a list whose text without
digits is its first key's shape over and over has one layout, which is read from that first key. The lists of one shape are then
read together, their numbers alone, with a fixed number of array operations. Lists of several shapes (files edited by hand, or
kept since older versions) are taken key by key; what is damaged goes through the plain reader, which says on which line.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..motion.errors import FileError
from . import numbers
from .unity_yaml import Map, Node, Parser, Span, Text, line_of

Array = NDArray[np.float64]

_DIGITS = b"0123456789.+-eE"
_INFINITE = b"99999999.9999999"
"""What stands for an infinite slope while numbers are read: no float32 is near it, and it is of the fast reader's plain form."""
_INFINITE_VALUE = 99999999.9999999
_FIELDS = ("time", "value", "inSlope", "outSlope", "weightedMode", "inWeight", "outWeight")
_PLAIN = re.compile(rb"[a-zA-Z0-9_ \n{}:,.+-]*")
_BLANK = bytes(32 if chr(c) in "abcdefghijklmnopqrstuvwxyzABCDFGHIJKLMNOPQRSTUVWXYZ_{}:,\n" else c for c in range(256))
_COMPONENTS = "xyzw"


@dataclass(frozen=True, eq=False)
class Keys:
    """Keys of a curve of ``C`` components.

    Parameters
    ----------
    times : (K,) array
        Seconds, not falling.
    values, in_slopes, out_slopes : (K, C) arrays
        Units a second; infinite where the curve steps.
    in_weights, out_weights : (K, C) arrays or None
        Shares of the piece, 1/3 where the key has none. None: 1/3 everywhere.
    """

    times: Array
    values: Array
    in_slopes: Array
    out_slopes: Array
    in_weights: Array | None = None
    out_weights: Array | None = None


@dataclass(frozen=True)
class _Layout:
    """Where in a key's numbers each field is: field -> columns, one a component."""

    columns: dict[str, tuple[int, ...]]
    width: int


class _Odd(Exception):  # noqa: N818
    """The fast way does not apply."""


def read(data: bytes, spans: Sequence[Span], path: Path) -> list[Keys]:
    """The keys of the lists ``spans``, in their order.

    Raises
    ------
    FileError
        With the line on which a key is damaged.
    """
    todo = [_Piece(i, span.start, span.stop, span.indent) for i, span in enumerate(spans)]
    pieces: list[_Piece] = []
    groups: dict[tuple[bytes, int], list[_Piece]] = {}
    while todo:
        piece = todo.pop()
        shape = _shape(data, piece)
        if shape is None:
            todo += _split(data, piece)
        else:
            groups.setdefault((shape, piece.indent), []).append(piece)
            pieces.append(piece)
    for members in groups.values():
        try:
            layout, rows = _group(data, members, path)
        except _Odd:
            layout, rows = _one_by_one(data, members, path)
        at = 0
        for piece in members:
            piece.table = (layout, rows[at : at + piece.count])
            at += piece.count
    tables: list[list[tuple[_Layout, Array]]] = [[] for _ in spans]
    for piece in sorted(pieces, key=lambda one: one.start):
        assert piece.table is not None
        tables[piece.curve].append(piece.table)
    return [_keys(data, span, table, path) for span, table in zip(spans, tables, strict=True)]


class _Piece:
    """A stretch of one curve's keys: all of them, or one."""

    __slots__ = ("count", "curve", "indent", "start", "stop", "table", "whole")

    def __init__(self, curve: int, start: int, stop: int, indent: int, whole: bool = True) -> None:
        self.curve, self.start, self.stop, self.indent, self.whole = curve, start, stop, indent, whole
        self.count = 1
        self.table: tuple[_Layout, Array] | None = None


def _shape(data: bytes, piece: _Piece) -> bytes | None:
    """The shape of a piece's keys, which are counted; None where they are not all of one shape (never for a single key)."""
    text = data[piece.start : piece.stop].replace(b"Infinity", b"")
    bare = text.translate(None, _DIGITS)
    if not bare.endswith(b"\n"):
        bare += b"\n"
    if not piece.whole:
        return bare
    piece.count = text.count(b"\n" + b" " * piece.indent + b"- ") + 1
    size, rest = divmod(len(bare), piece.count)
    return bare[:size] if not rest and bare == bare[:size] * piece.count else None


def _split(data: bytes, piece: _Piece) -> list[_Piece]:
    """Its keys, one by one."""
    cut = b"\n" + b" " * piece.indent + b"- "
    starts = [piece.start]
    at = data.find(cut, piece.start, piece.stop)
    while at >= 0:
        starts.append(at + 1)
        at = data.find(cut, at + 1, piece.stop)
    return [_Piece(piece.curve, a, b, piece.indent, whole=False) for a, b in zip(starts, [*starts[1:], piece.stop], strict=True)]


def _group(data: bytes, members: list[_Piece], path: Path) -> tuple[_Layout, Array]:
    """The numbers of all keys of one shape ``(K, N)``."""
    text = b"\n".join(data[piece.start : piece.stop] for piece in members)
    first = members[0]
    key = _split(data, first)[0] if first.whole else first
    layout = _layout(data, key, path)
    if b"E" in text or _PLAIN.fullmatch(data, key.start, key.stop) is None:
        raise _Odd
    count = sum(piece.count for piece in members)
    infinite = b"Infinity" in text
    if infinite:
        text = text.replace(b"Infinity", _INFINITE)
    text = text.replace(b"e-", b"E-").replace(b"e+", b"E+")  # exponents: of all letters the only ones that stay
    if text.count(b"e") != count * data[key.start : key.stop].replace(b"e-", b"").replace(b"e+", b"").count(b"e"):
        raise _Odd  # a letter e where none belongs would fall out with the names
    found = numbers.parse(text.replace(b"- ", b"  ").translate(_BLANK))
    if found.unreadable or len(found.values) != count * layout.width or not np.all(np.isfinite(found.values)):
        raise _Odd
    rows = found.values.reshape(count, layout.width)
    if infinite:
        rows = np.where(np.abs(rows) == _INFINITE_VALUE, np.copysign(np.inf, rows), rows)
    return layout, rows


def _layout(data: bytes, key: _Piece, path: Path) -> _Layout:
    """Which number of a key is what; :class:`_Odd` where it holds other things than named numbers."""
    parsed = Parser(data, key.start, key.stop, path).parse()
    if not isinstance(parsed, list) or len(parsed) != 1 or not isinstance(parsed[0], Map):
        raise _Odd
    columns: dict[str, tuple[int, ...]] = {}
    at = 0
    for name, value in parsed[0].items():
        if isinstance(value, Map):
            if not all(_is_number(v) for v in value.values()):
                raise _Odd
            inside = list(value)
            if name in _FIELDS:
                if inside != list(_COMPONENTS[: len(inside)]):
                    raise _Odd
                columns[name] = tuple(range(at, at + len(inside)))
            at += len(inside)
        elif _is_number(value):
            if name in _FIELDS:
                columns[name] = (at,)
            at += 1
        else:
            raise _Odd
    if "time" not in columns or "value" not in columns:
        raise _Odd
    return _Layout(columns, at)


def _is_number(node: Node) -> bool:
    return isinstance(node, Text) and (node.lstrip("-") == "Infinity" or numbers.to_float(node.encode("utf-8", "replace")) is not None)


def _one_by_one(data: bytes, members: list[_Piece], path: Path) -> tuple[_Layout, Array]:
    """The slow way, which finds what is wrong."""
    rows: list[list[float]] = []
    layout: _Layout | None = None
    for piece in members:
        parsed = Parser(data, piece.start, piece.stop, path).parse()
        if not isinstance(parsed, list) or len(parsed) != piece.count:
            raise FileError("The keys of this curve are not a list; the file is damaged here.", path, line_of(data, piece.start))
        for item in parsed:
            columns, row = _plain_key(data, item, piece, path)
            layout = layout or _Layout(columns, len(row))
            if columns != layout.columns:
                raise FileError("A key of this curve lacks a value; the file is damaged here.", path, _line(data, item, piece))
            rows.append(row)
    assert layout is not None
    return layout, np.array(rows, dtype=np.float64).reshape(len(rows), layout.width)


def _plain_key(data: bytes, item: Node, piece: _Piece, path: Path) -> tuple[dict[str, tuple[int, ...]], list[float]]:
    if not isinstance(item, Map) or "time" not in item or "value" not in item:
        raise FileError("A key of this curve lacks its time or its value; the file is damaged here.", path, _line(data, item, piece))
    row: list[float] = []
    columns: dict[str, tuple[int, ...]] = {}
    for name in _FIELDS:
        value = item.get(name)
        if value is None:
            continue
        parts: list[Node] = [value]
        if isinstance(value, Map):
            if not value or list(value) != list(_COMPONENTS[: len(value)]):
                raise FileError(
                    f"The {name} of a key has other parts than x, y, z, w; the file is damaged here.", path, _line(data, value, piece)
                )
            parts = list(value.values())
        columns[name] = tuple(range(len(row), len(row) + len(parts)))
        row += [number(data, part, path, finite=name not in ("inSlope", "outSlope"), where=item.at) for part in parts]
    return columns, row


def number(data: bytes, node: Node, path: Path, *, finite: bool = True, where: int = 0) -> float:
    """A scalar as a number; :class:`FileError` with its line where it is none."""
    text = str(node).strip() if isinstance(node, Text) else ""
    at = node.at if isinstance(node, Text) and node.at >= 0 else where
    if text in ("Infinity", "-Infinity", "+Infinity", ".inf", "-.inf", "inf", "-inf"):
        value: float | None = -np.inf if text[0] == "-" else np.inf
    else:
        value = numbers.to_float(text.encode("utf-8", "replace")) if text else None
    if value is None or np.isnan(value) or (finite and not np.isfinite(value)):
        raise FileError(f'Here a number was expected, not "{text[:30]}"; the file is damaged here.', path, line_of(data, at))
    return value


def _line(data: bytes, node: Node, piece: _Piece) -> int:
    return line_of(data, node.at if isinstance(node, Map | Text) and node.at >= 0 else piece.start)


def _keys(data: bytes, span: Span, tables: list[tuple[_Layout, Array]], path: Path) -> Keys:
    """One curve's keys from its stretches."""
    widths = {len(layout.columns["value"]) for layout, _ in tables}
    if len(widths) != 1:
        raise FileError(
            "The keys of this curve have different numbers of components; the file is damaged here.", path, line_of(data, span.start)
        )
    width = widths.pop()

    def column(name: str, default: float) -> Array:
        parts: list[Array] = []
        for layout, rows in tables:
            at = layout.columns.get(name)
            if at is not None and len(at) not in (1, width):
                raise FileError(
                    f"The {name} of this curve has another number of components than its values.", path, line_of(data, span.start)
                )
            if at is None:
                parts.append(np.full((len(rows), 1 if name in ("time", "weightedMode") else width), default))
            elif len(at) == width or name in ("time", "weightedMode"):
                parts.append(rows[:, at[0] : at[0] + len(at)])  # a key's components stand side by side
            else:
                parts.append(np.repeat(rows[:, at[0] : at[0] + 1], width, axis=1))
        return np.concatenate(parts) if len(parts) > 1 else parts[0]

    times = column("time", 0.0)[:, 0]
    values = column("value", 0.0)
    if not (np.isfinite(times).all() and np.isfinite(values).all()):
        raise FileError("A key of this curve has an infinite time or value; the file is damaged here.", path, line_of(data, span.start))
    in_slopes, out_slopes = column("inSlope", 0.0), column("outSlope", 0.0)
    mode = column("weightedMode", 0.0)
    weights: list[Array | None] = [None, None]
    if mode.any():
        for side, name in enumerate(("inWeight", "outWeight")):
            on = (mode.astype(np.int64) & (1 << side)) != 0
            weights[side] = np.where(on, np.clip(column(name, 1.0 / 3.0), 0.0, 1.0), 1.0 / 3.0)
    if (times[1:] < times[:-1]).any():  # Unity keeps its keys in order; so does what it makes of keys that are not
        order = np.argsort(times, kind="stable")
        times, values, in_slopes, out_slopes = times[order], values[order], in_slopes[order], out_slopes[order]
        weights = [None if w is None else w[order] for w in weights]
    return Keys(times, values, in_slopes, out_slopes, *weights)
