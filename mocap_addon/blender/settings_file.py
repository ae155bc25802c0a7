# SPDX-License-Identifier: GPL-3.0-or-later
"""All settings of a retarget in one file: the bone table's TOML with a ``[settings]`` part.

Table files without that part are older ones, or a table alone; both load. What a file holds that this version does not know is kept and
named in a sentence, never dropped in silence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from typing import Any, cast

from ..motion.errors import MocapError, RigError
from ..retarget import Adjustments, Mask
from ..retarget.extras import Extras
from ..retarget.root_motion import RootMotion
from ..rig.table import CorrectionTable
from .job_options import JobOptions, options_data, options_of

SETTINGS = "settings"
"""The part of the file, and its key in ``CorrectionTable.extra``."""

_OF_ONE_SCENE = ("frame_start", "name")
"""Where in a scene one take starts, and what it is called, is not for other takes."""


def with_settings(table: CorrectionTable, options: JobOptions) -> CorrectionTable:
    """The table with the settings, for :func:`mocap_addon.rig.save_table`. Keys of its own settings that are not known here are kept."""
    before = table.extra.get(SETTINGS)
    strange = {k: v for k, v in before.items() if k not in _known()} if isinstance(before, Mapping) else {}
    data = {k: v for k, v in options_data(options).items() if k not in _OF_ONE_SCENE}
    return replace(table, extra={**table.extra, SETTINGS: {**_plain(data), **strange}})


def settings_in(table: CorrectionTable) -> JobOptions | None:
    """The settings that a table was saved with; None where it is a table alone.

    Raises
    ------
    MocapError
        They are not what they should be, saying which.
    """
    stored = table.extra.get(SETTINGS)
    if stored is None:
        return None
    if not isinstance(stored, Mapping):
        raise RigError("The part [settings] of the table must be a group of settings.")
    data = cast("Mapping[str, Any]", stored)
    options = JobOptions()
    for key, value in data.items():
        if key in _known():
            options = replace(options, **{key: _one(key, value)})
    return options


def strange_keys(table: CorrectionTable) -> list[str]:
    """One sentence on what a table file holds that this version does not know; empty where it knows all."""
    found = [key for key in table.extra if key not in (SETTINGS, "row")]
    rows = table.extra.get("row")
    if isinstance(rows, Mapping):
        found += [f"{key} of {bone}" for bone, more in rows.items() for key in cast("Mapping[str, object]", more)]
    stored = table.extra.get(SETTINGS)
    if isinstance(stored, Mapping):
        found += _strange(cast("Mapping[str, object]", stored), _plain_defaults(), SETTINGS)
    if not found:
        return []
    shown = ", ".join(found[:6]) + (f" and {len(found) - 6} more" if len(found) > 6 else "")
    return [f"The table file has keys that this version does not know ({shown}); they are kept and change nothing."]


def _one(key: str, value: object) -> Any:
    is_group = isinstance(_plain_defaults()[key], Mapping)
    if is_group != isinstance(value, Mapping):
        raise RigError(f"The setting {key} in the table file must {'' if is_group else 'not '}be a group of settings.")
    try:
        found = getattr(options_of({"options": {key: value}}), key)
        return _checked(key, found)
    except MocapError as error:
        raise RigError(f"The settings in the table file are not right: {error}") from None
    except (TypeError, ValueError, KeyError, AttributeError, ZeroDivisionError):
        raise RigError(f"The setting {key} in the table file is not right; correct it, or delete it to have the usual one.") from None


def _checked(key: str, value: Any) -> Any:
    """Raises where a value is of no use; the classes check themselves what they can."""
    usual = getattr(JobOptions(), key)
    kinds: dict[str, tuple[type, ...]] = {"adjustments": (Adjustments,), "mask": (Mask,), "root": (RootMotion,), "extras": (Extras,)}
    if key in kinds and not isinstance(value, kinds[key]):
        raise TypeError
    if key == "travel" and not (isinstance(value, int | float) and not isinstance(value, bool) and 0.0 < value < 1e6):
        raise TypeError
    if key == "reference_frame" and not (value == "rest" or (isinstance(value, int) and not isinstance(value, bool) and value >= 0)):
        raise TypeError
    if key == "controls" and value not in ("auto", "deform", "fk", "ik_legs", "ik"):
        raise TypeError
    if key == "adjustments" and not all(isinstance(v, int | float) for v in vars(value).values()):
        raise TypeError
    return float(value) if isinstance(usual, float) else value


def _known() -> set[str]:
    return {f.name for f in fields(JobOptions)} - set(_OF_ONE_SCENE)


def _plain_defaults() -> Mapping[str, object]:
    return {k: v for k, v in options_data(JobOptions()).items() if k not in _OF_ONE_SCENE}


def _strange(data: Mapping[str, object], known: Mapping[str, object], where: str) -> Iterable[str]:
    for key, value in data.items():
        place = f"{where}.{key}"
        if key not in known:
            yield place
        elif key != "names" and isinstance(value, Mapping) and isinstance(known[key], Mapping):
            yield from _strange(cast("Mapping[str, object]", value), cast("Mapping[str, object]", known[key]), place)


def _plain(value: Any) -> Any:
    """Without what is None: TOML has no such thing, and what is left out is as usual."""
    if isinstance(value, Mapping):
        return {k: _plain(v) for k, v in cast("Mapping[str, Any]", value).items() if v is not None}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in cast("Iterable[Any]", value)]
    return value
