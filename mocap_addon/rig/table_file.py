# SPDX-License-Identifier: GPL-3.0-or-later
"""The correction table as a file a person can read and edit: TOML, one ``[[row]]`` a bone.

Only ``role``, ``target`` and ``source`` are needed in a row; what is left out has its default. A correction of zero is a
value like any other. Measured fields (``alignment``, ``residual``, ``hinge``, ``confidence``) are for information. Keys
this version does not know are kept and written back.
"""

from __future__ import annotations

import math
import os
import re
import sys
import tomllib
import uuid
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import cast, get_args

from ..motion.errors import FileError, MocapError
from .roles import HELPER, ROLES
from .table import VERSION, CorrectionTable, Row, Rule

_HEAD = """\
# Correction table: which bone follows which. One [[row]] a bone of the character.
#   role        what the bone is; every link of a spine, neck or finger has the same role; "helper": a bone that follows its namesake
#   target      the bone of the character
#   source      the joint of the take, or the joints of a chain from the body outwards
#   correction  degrees about the character's left, back and up, in this order, added by hand
#   movable     whether the bone's location is keyed too
#   rule        "copy", "blend" (two links, "blend" is the share of the second), "chord" (a whole chain)
#               or "twist" (a twist bone: "blend" is its share of the limb's roll, 0 is off; the source says whose roll)
# alignment, residual, hinge and confidence were measured; they are read but change nothing.
"""

_TOP = ("version", "source_family", "target_family", "unmapped_target", "unmapped_source", "notes", "row")
_ROW = ("role", "target", "source", "correction", "movable", "rule", "blend", "alignment", "residual", "hinge", "confidence")


_ARRAY = re.compile(r"^((?:\w|-)+ = )\[\n((?:    (?:-?[0-9][0-9.e+-]*|\"[^\n]*\"),\n)+)\]$", re.MULTILINE)
"""An array of numbers or of texts as tomli_w lays it out: one element a line (no text holds a line break: those are escaped)."""


# --- writing ---


def dumps(table: CorrectionTable) -> str:
    """The table as TOML text; :func:`loads` gives back an equal table.

    Raises
    ------
    MocapError
        When a number of the table is not finite where a value is needed, or ``extra`` holds what TOML cannot.
    """
    if not (_written and _written[0] is table):
        shape = repr(table)  # not by equality: what was not measured is not a number, which equals nothing
        if not (_written and _written[1] == shape):
            _written[:] = [table, shape, _dumped(table)]
        _written[0] = table
    return cast("str", _written[2])


_written: list[object] = []
"""The table last written, what it is like, and its text: takes of one suit onto one character share it, and every action keeps it."""


def _dumped(table: CorrectionTable) -> str:
    data: dict[str, object] = {"version": VERSION}
    data |= {"source_family": table.source_family, "target_family": table.target_family}
    data |= {key: list(value) for key in ("unmapped_target", "unmapped_source", "notes") if (value := getattr(table, key))}
    rows_extra = cast("Mapping[str, Mapping[str, object]]", table.extra.get("row", {}))
    data |= {key: value for key, value in table.extra.items() if key not in _TOP}
    data["row"] = [_row_data(row, rows_extra.get(row.target, {})) for row in table.rows]
    write = cast("Callable[..., str]", _tomli_w().dumps)
    try:
        return _HEAD + "\n" + _ARRAY.sub(_on_one_line, write(data, multiline_strings=False))
    except (TypeError, ValueError) as error:
        raise MocapError(f"The correction table cannot be written as TOML: {error}.") from None


def _on_one_line(found: re.Match[str]) -> str:
    """``[1.0, 2.0, 3.0]``, as a person would write it, while it is short."""
    inside = ", ".join(line.strip().removesuffix(",") for line in found[2].rstrip("\n").split("\n"))
    return f"{found[1]}[{inside}]" if len(inside) <= 100 else found[0]


def save_table(table: CorrectionTable, path: str | os.PathLike[str]) -> None:
    """Write the table to ``path``; the file is complete or untouched.

    Raises
    ------
    FileError
        When it cannot be written.
    """
    path = Path(path)
    text = dumps(table)
    aside = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
    try:
        aside.write_text(text, encoding="utf-8", newline="\n")
        os.replace(aside, path)
    except OSError as error:
        aside.unlink(missing_ok=True)
        raise FileError(f"the table cannot be written here ({error.strerror or error}); choose another place.", path) from None


def _row_data(row: Row, extra: Mapping[str, object]) -> dict[str, object]:
    for name in ("correction", "alignment", "blend", "confidence"):
        value = cast("float | tuple[float, ...]", getattr(row, name))
        if not all(math.isfinite(v) for v in (value if isinstance(value, tuple) else (value,))):
            raise MocapError(f'The {name} of the bone "{row.target}" is not a number; set it again before saving.')
    data: dict[str, object] = {"role": row.role, "target": row.target}
    data["source"] = row.source[0] if len(row.source) == 1 else list(row.source)
    data["correction"] = [float(v) for v in row.correction]
    data["movable"] = row.movable
    data["rule"] = row.rule
    if row.rule in ("blend", "twist") or row.blend != 0.0:
        data["blend"] = float(row.blend)
    data["alignment"] = [float(v) for v in row.alignment]
    data |= {name: float(value) for name, value in (("residual", row.residual), ("hinge", row.hinge)) if not math.isnan(value)}
    data["confidence"] = float(row.confidence)
    return data | {key: value for key, value in extra.items() if key not in _ROW}


def _tomli_w() -> ModuleType:
    """The module tomli_w: installed, or from the wheel beside the package when running from a checkout."""
    try:
        return import_module("tomli_w")
    except ImportError:
        wheels = sorted(Path(__file__).resolve().parents[2].glob("wheels/tomli_w-*.whl"))
        if not wheels:
            raise MocapError('The Python module "tomli_w" is missing, so no table can be written; install the add-on again.') from None
        sys.path.append(str(wheels[-1]))  # a pure wheel is importable as it is
        return import_module("tomli_w")


# --- reading ---


def load_table(path: str | os.PathLike[str]) -> CorrectionTable:
    """Read a table file.

    Raises
    ------
    FileError
        When it cannot be read, naming the file and the line or row.
    """
    path = Path(path)
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise FileError(f"the table cannot be read ({error.strerror or error}).", path) from None
    except UnicodeDecodeError:
        raise FileError("this is no text in UTF-8; a correction table is a TOML file.", path) from None
    return loads(text, path)


def loads(text: str, path: str | os.PathLike[str] | None = None) -> CorrectionTable:
    """A table from TOML text; ``path`` only names the place in messages.

    Raises
    ------
    FileError
        Naming the line (no TOML) or the row and key (a wrong value).
    """
    where = Path(path) if path is not None else None
    try:
        data: dict[str, object] = tomllib.loads(text.replace("\r\n", "\n"))
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        raise FileError(f"this is no valid TOML: {message[0].lower()}{message[1:]}.", where) from None
    read = _Reader(data, "the table", where)
    version = read.integer("version", 1)
    if version > VERSION:
        raise FileError(f"the table has version {version}, this add-on reads up to {VERSION}; update the add-on.", where)
    if version < 1:
        raise read.error("version", "must be 1 or more")
    rows_data = data.get("row", [])
    if not isinstance(rows_data, list) or not all(isinstance(row, dict) for row in cast("list[object]", rows_data)):
        raise read.error("row", "must be written as [[row]]")
    rows: list[Row] = []
    rows_extra: dict[str, dict[str, object]] = {}
    for number, row_data in enumerate(cast("list[dict[str, object]]", rows_data), start=1):
        row, extra = _read_row(row_data, number, where)
        if any(row.target == other.target for other in rows):
            raise FileError(f'row {number}: the bone "{row.target}" has a row already; each bone can have one.', where)
        rows.append(row)
        if extra:
            rows_extra[row.target] = extra
    extra = {key: value for key, value in data.items() if key not in _TOP}
    if rows_extra:
        extra["row"] = rows_extra
    return CorrectionTable(
        tuple(rows),
        read.text("source_family", ""),
        read.text("target_family", ""),
        read.texts("unmapped_target", ()),
        read.texts("unmapped_source", ()),
        read.texts("notes", ()),
        VERSION,
        extra,
    )


def _read_row(data: dict[str, object], number: int, where: Path | None) -> tuple[Row, dict[str, object]]:
    bone = data.get("target")
    read = _Reader(data, f'row {number} ("{bone}")' if isinstance(bone, str) else f"row {number}", where)
    role = read.text("role")
    if role not in ROLES and role != HELPER:
        near = next((known for known in ROLES if known.lower() == role.lower()), None)
        raise read.error("role", f'"{role}" is no role' + (f'; "{near}" was meant' if near else f"; roles are {', '.join(ROLES[:6])}, ..."))
    source = read.texts("source")
    rule = read.text("rule", "copy" if len(source) == 1 else "chord")
    if rule not in get_args(Rule):
        raise read.error("rule", f'must be "copy", "blend", "chord" or "twist", not "{rule}"')
    count = {"copy": len(source) == 1, "blend": len(source) == 2, "chord": len(source) >= 1, "twist": len(source) >= 1}[rule]
    if not count:
        raise read.error("source", f'has {len(source)} names, which the rule "{rule}" cannot use')
    blend = read.number("blend", 0.0)
    if not 0.0 <= blend <= 1.0:
        raise read.error("blend", f"must lie between 0 and 1, not at {blend:g}")
    row = Row(
        role,
        read.text("target"),
        source,
        cast("Rule", rule),
        blend,
        read.triple("correction"),
        read.flag("movable", False),
        read.triple("alignment"),
        read.number("residual", math.nan),
        read.number("hinge", math.nan),
        read.number("confidence", 1.0),
    )
    return row, {key: value for key, value in data.items() if key not in _ROW}


class _Reader:
    """Typed access to one TOML table; every error names the row and the key."""

    def __init__(self, data: Mapping[str, object], what: str, where: Path | None) -> None:
        self._data, self._what, self._where = data, what, where

    def error(self, key: str, problem: str) -> FileError:
        return FileError(f"{self._what}: {key} {problem}.", self._where)

    def _get(self, key: str, default: object) -> object:
        value = self._data.get(key, default)
        if value is None:
            raise self.error(key, "is missing")
        return value

    def text(self, key: str, default: str | None = None) -> str:
        value = self._get(key, default)
        if not isinstance(value, str) or (default is None and not value):
            raise self.error(key, f"must be a text in quotes, not {_shown(value)}")
        return value

    def texts(self, key: str, default: tuple[str, ...] | None = None) -> tuple[str, ...]:
        value = self._get(key, default)
        if isinstance(value, str) and value:
            return (value,)
        if isinstance(value, list | tuple):
            items = list(cast("list[object]", value))
            if all(isinstance(v, str) and v for v in items) and (items or default is not None):
                return tuple(cast("list[str]", items))
        raise self.error(key, f"must be a name or a list of names, not {_shown(cast('object', value))}")

    def integer(self, key: str, default: int) -> int:
        value = self._get(key, default)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.error(key, f"must be a whole number, not {_shown(value)}")
        return value

    def number(self, key: str, default: float) -> float:
        value = self._get(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or math.isinf(value):
            raise self.error(key, f"must be a number, not {_shown(value)}")
        if key in self._data and math.isnan(value) and key not in ("residual", "hinge"):
            raise self.error(key, "must be a number, not nan")
        return float(value)

    def flag(self, key: str, default: bool) -> bool:
        value = self._get(key, default)
        if not isinstance(value, bool):
            raise self.error(key, f"must be true or false, not {_shown(value)}")
        return value

    def triple(self, key: str) -> tuple[float, float, float]:
        value = self._get(key, [0.0, 0.0, 0.0])
        if isinstance(value, list):
            items = cast("list[object]", value)
            if len(items) == 3 and all(isinstance(v, int | float) and not isinstance(v, bool) and math.isfinite(v) for v in items):
                x, y, z = (float(v) for v in cast("list[float]", items))
                return x, y, z
        raise self.error(key, f"must be three numbers in brackets, not {_shown(cast('object', value))}")


def _shown(value: object) -> str:
    text = repr(value) if not isinstance(value, bool) else str(value).lower()
    return text if len(text) <= 40 else text[:37] + "..."
