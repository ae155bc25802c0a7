# SPDX-License-Identifier: GPL-3.0-or-later
"""Export: the character's actions as files, with their sizes and measured errors to show."""

from __future__ import annotations

import os
from dataclasses import dataclass

import bpy
from bpy.props import StringProperty

from ..blender import export
from ..blender.export import ExportReport
from ..motion.errors import FileError, MocapError
from . import characters, export_settings, run

MOST_NOTES = 4
_reports: dict[str, Shown] = {}


@dataclass(frozen=True)
class Shown:
    """What the panel shows of the last export of a character: the folder, and for each file its name, size and error in words."""

    folder: str
    files: tuple[tuple[str, str, str], ...]
    gap: str
    notes: tuple[str, ...]


def last(obj: bpy.types.Object) -> Shown | None:
    """What was exported last of a character in this session."""
    return _reports.get(obj.name)


def forget_all() -> None:
    """Let go of everything."""
    _reports.clear()


def size_words(size: int) -> str:
    """``812 bytes``, ``47.5 KB``, ``1.02 MB``."""
    if size < 1000:
        return f"{size} bytes"
    return f"{size / 1e3:.3g} KB" if size < 999_500 else f"{size / 1e6:.3g} MB"


def error_words(error: float | None) -> str:
    """The measured error of a file."""
    if error is None:
        return ""
    return "exact" if error < 5e-6 else f"{1000.0 * error:.2g} mm off at most"


def shown(report: ExportReport, folder: str) -> Shown:
    """A report in words."""
    files = tuple((one.path.name, size_words(one.size), error_words(one.error)) for one in report.files)
    gap = "" if report.gap is None else f"{1000.0 * report.gap:.2g} mm from Blender between keys"
    return Shown(folder, files, gap, report.notes)


class MOCAP_OT_export(characters.OnCharacter, bpy.types.Operator):
    """Export actions of the character as files for the web and for game engines. Nothing in the scene is changed"""

    bl_idname = "mocap.export"
    bl_label = "Export"
    bl_options = {"REGISTER"}

    directory: StringProperty(
        name="Folder", description="Where the files go. Empty: as the panel says", subtype="DIR_PATH", options={"SKIP_SAVE"}
    )

    def execute(self, context: bpy.types.Context) -> set[str]:
        settings = context.scene.mocap.export
        try:
            obj = characters.named(context, "")
            run.end_preview(context.scene, obj)
            folder = made_folder(self.directory or settings.folder)
            chosen = export_settings.chosen(settings, obj)
            original = bpy.path.abspath(settings.character) if settings.character else None
            with run.progress(context, 100, run.LONG_WORK if len(chosen) > 1 else 0):
                report = export.export_actions(obj, chosen, folder, export_settings.options(settings), character=original)
        except MocapError as error:
            self.report({"ERROR"}, str(error))
            return {"CANCELLED"}
        found = shown(report, folder)
        _reports[obj.name] = found
        for note in report.notes[:MOST_NOTES]:
            self.report({"WARNING"}, note)
        count = len(report.files)
        self.report({"INFO"}, f"{count} file{'' if count == 1 else 's'} written to {folder}.")
        return {"FINISHED"}


def made_folder(name: str) -> str:
    """The folder, created where needed.

    Raises
    ------
    FileError
        It is relative to a file that was never saved, or cannot be made.
    """
    if name.startswith("//") and not bpy.data.filepath:
        raise FileError("The folder is relative to this file, which is not saved yet; save it, or choose another folder.")
    folder = os.path.abspath(bpy.path.abspath(name))
    try:
        os.makedirs(folder, exist_ok=True)
    except (OSError, ValueError) as error:
        raise FileError(f"The folder cannot be made ({getattr(error, 'strerror', None) or error}).", folder) from None
    return folder


class MOCAP_OT_list_actions(characters.OnCharacter, bpy.types.Operator):
    """List the character's actions anew"""

    bl_idname = "mocap.list_actions"
    bl_label = "List Actions"
    bl_options = {"INTERNAL", "UNDO"}

    def execute(self, context: bpy.types.Context) -> set[str]:
        try:
            export_settings.fill_list(context.scene.mocap.export, characters.named(context, ""))
        except MocapError as error:
            self.report({"ERROR"}, str(error))
            return {"CANCELLED"}
        return {"FINISHED"}
