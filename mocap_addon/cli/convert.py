# SPDX-License-Identifier: GPL-3.0-or-later
"""``mocap convert``: takes onto a character, each into files of its own."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeVar

from ..motion.errors import FileError, MocapError
from ..motion.timeline import format_rate
from . import FAILED, OK, character_files, collected, interrupt, job_settings, naming, planting, reading, straight
from .output import Output

if TYPE_CHECKING:
    from ..blender.job import JobResult
    from ..motion.take import Take
    from ..rig.table import CorrectionTable
    from .exports import ExportChoices
    from .stage import Stage

T = TypeVar("T")


def run(options: argparse.Namespace, out: Output) -> int:
    """Convert every take; 1 if one failed."""
    if options.character is None:
        try:
            return straight.run(options, reading.expanded(options.takes), make_folder(options.out), out)
        except MocapError as error:
            out.failure(str(error))
            return FAILED
    try:
        paths, folder, table = _prepare(options)
    except MocapError as error:
        out.failure(str(error), character=options.character)
        return FAILED
    with interrupt.Held() as held, out.while_blender_works(verbose=options.verbose):
        from .stage import Stage

        try:
            stage = Stage(Path(options.character), options.armature)
        except MocapError as error:
            out.failure(str(error), character=options.character)
            return FAILED
        with stage:
            names = naming.Names(folder, [*paths, Path(options.character)])
            wanted = tuple(name for name in options.formats if name in naming.COLLECTED)
            together = collected.Collector(wanted, Path(options.character).stem, options.map_half, options.map_ktx2)
            try:
                return Converter(options, out, stage, folder, names, table, held, together).all(paths)
            finally:
                together.close()


def _prepare(options: argparse.Namespace) -> tuple[list[Path], Path, CorrectionTable | None]:
    """What can be found wrong before Blender starts."""
    character = Path(options.character)
    if not character.is_file():
        raise FileError("There is no such character file; check the path.", character)
    if not character_files.is_character(character):
        raise FileError(f"This is not a character file; give one that ends in {', '.join(character_files.KINDS)}.", character)
    character_files.describe(character)
    table = None
    if options.table is not None:
        from .. import rig

        table = rig.load_table(options.table)
    return reading.expanded(options.takes), make_folder(options.out), table


def make_folder(name: str) -> Path:
    """The output folder, created where needed; :class:`FileError` when it cannot be."""
    folder = Path(name)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise FileError("This is a file; give a folder for the results.", folder) from None
    except (OSError, ValueError) as error:
        raise FileError(f"The folder cannot be made ({getattr(error, 'strerror', None) or error}).", folder) from None
    return folder


@dataclass
class Converter:
    """One run of the verb over all its takes."""

    options: argparse.Namespace
    out: Output
    stage: Stage
    folder: Path
    names: naming.Names
    table: CorrectionTable | None
    held: interrupt.Held
    together: collected.Collector
    failed: bool = field(default=False, init=False)

    def all(self, paths: Iterable[Path]) -> int:
        """Every take of every file; one that fails does not keep the others."""
        for path in paths:
            start = perf_counter()
            takes = self._guarded(path, path.stem, partial(reading.read, path, self.options, blender=True)) or []
            seconds = (perf_counter() - start) / max(1, len(takes))
            for take in takes:
                self.held.check()
                self._guarded(path, take.name, partial(self._one, take, path, seconds))
        self.held.check()
        if self.together.clips:
            self._guarded(Path(self.options.character), self.together.name, self._all_in_one)
        return FAILED if self.failed else OK

    def _all_in_one(self) -> None:
        """What is written once for all takes."""
        record: dict[str, Any] = self.together.write(self.folder, self.names.stem(self.together.stem))
        record["character"] = self.options.character
        count = len(record["clips"])
        lines = [f"{count} clip{'' if count == 1 else 's'} on {Path(record['character']).name}"]
        self.out.result(record, [*lines, *(f"  {name:<8} {file}" for name, file in record["files"].items())])

    def _guarded(self, path: Path, name: str, work: Callable[[], T]) -> T | None:
        """What ``work`` gives; None after it failed and its sentence was said."""
        known = {"take": name, "source": str(path), "character": self.options.character}
        try:
            return work()
        except MocapError as error:
            self.out.failure(str(error), **known)
        except BrokenPipeError:
            raise
        except MemoryError:
            self.out.failure(f"{path.name}: There is not enough memory for this take.", **known)
        except Exception as error:
            self.out.unexpected(error, verbose=self.options.verbose, **known)
        self.failed = True
        return None

    def _export(self) -> ExportChoices:
        from .exports import ExportChoices

        o = self.options
        bound = None if o.max_error is None else 0.001 * o.max_error
        return ExportChoices(bound, o.match_blender, o.loop, not o.bones_only, o.fbx_for)

    def _one(self, take: Take, path: Path, read_seconds: float) -> None:
        from . import exports

        start = perf_counter()
        kept = self.table or self.stage.table_of(take)
        options = job_settings.job_options(self.options, kept)
        obj = self.stage.set(_rate(take, job_settings.rate(self.options, kept)))
        ready = perf_counter()
        result = self.stage.retarget(obj, take, self.table, options=options)
        result, feet = planting.planted(obj, result, self.options)
        done = perf_counter()
        finished = exports.Finished(obj, result, self.stage.gltf, self._export())
        self.together.add(finished, take)
        own = [name for name in self.options.formats if name not in naming.COLLECTED]
        files, notes = exports.write(own, finished, self.folder, self.names.stem(take.name or path.stem))
        timing = {
            "read": read_seconds,
            "character": ready - start,
            "retarget": result.timing.get("table", 0.0) + result.timing.get("retarget", 0.0),
            "write": result.timing.get("write", 0.0),
            "export": perf_counter() - done,
        }
        record = _record(take, path, result, self.stage.rate)
        record.update(character=self.options.character, armature=obj.name)
        if feet is not None:
            record["feet"] = feet
        record.update(warnings=list(dict.fromkeys([*job_settings.notes(self.table), *record["warnings"], *notes])), files=files)
        record["timing_s"] = {key: round(seconds, 4) for key, seconds in timing.items()}
        self.out.result(record, _lines(record, len(result.target.skeleton)))


def _rate(take: Take, wanted: Fraction | str) -> Fraction | None:
    """The scene's rate for a take; None keeps the scene's own."""
    if isinstance(wanted, Fraction):
        return wanted
    if wanted == "scene":
        return None
    if take.rate is not None:
        return take.rate
    if take.frames < 2:
        return None
    # Samples at uneven times: the rate of as many frames in the same time.
    return Fraction((take.frames - 1) / take.duration).limit_denominator(1001)


def _record(take: Take, path: Path, result: JobResult, rate: Fraction) -> dict[str, Any]:
    motion, table = result.motion, result.table
    frames = len(motion.times)
    return {
        "take": take.name,
        "source": str(path),
        "character": "",
        "action": result.action.name,
        "frames": frames,
        "fps": float(rate),
        "rate": str(rate),
        "duration_s": float(motion.times[-1] - motion.times[0]) if frames else 0.0,
        "mapped": [[row.role, " + ".join(row.source), row.target] for row in table.rows],
        "unmapped": list(table.unmapped_target),
        "unmapped_source": list(table.unmapped_source),
        "residual_deg": {row.target: round(row.residual, 4) for row in table.rows if row.residual == row.residual},
        "warnings": list(result.notes),
    }


def _lines(r: dict[str, Any], bones: int) -> list[str]:
    residual = max(r["residual_deg"].values(), default=0.0)
    rate = format_rate(Fraction(r["rate"]))
    frames = "1 frame" if r["frames"] == 1 else f"{r['frames']} frames"
    return [
        f"{r['take']} -> {Path(r['character']).name}: {frames} at {rate} fps, {r['duration_s']:.2f} s; "
        f"{len(r['mapped'])} of {bones} bones move, largest residual {residual:.1f} degrees",
        *planting.lines(r.get("feet")),
        *(f"  note: {note}" for note in r["warnings"]),
        *(f"  {name:<8} {file}" for name, file in r["files"].items()),
    ]
