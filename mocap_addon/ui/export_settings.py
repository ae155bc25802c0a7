# SPDX-License-Identifier: GPL-3.0-or-later
"""What the Export panel is set to, as Blender's properties; and as the options of :mod:`..blender.export`."""

# pyright: reportInvalidTypeForm=false
from __future__ import annotations

import bpy
from bpy.props import BoolProperty, CollectionProperty, EnumProperty, FloatProperty, IntProperty, StringProperty

from ..blender import sources
from ..blender.export import PRESETS, ExportOptions
from ..blender.export_formats import FORMATS
from ..motion.errors import MocapError

_WHAT_FOR = {
    "web": ("Web Game", "three.js clips and a GLB with the character, small, nothing off by more than 0.1 mm"),
    "film": ("Film Preview", "three.js clips and a GLB of every frame and every digit, as Blender shows it between frames too"),
    "crowd": ("Crowd", "A small GLB and a bone map with every clip in place, nothing off by more than 0.5 mm"),
    "unreal": ("Unreal", "FBX with a clean root bone, at Unreal's scale"),
    "unity": ("Unity", "FBX with Y up and a clean root, at Unity's scale"),
    "vrm": ("VRM", "VRM animations for any VRM character"),
}
_NONE = "CUSTOM"
_PRESET_ITEMS = (
    *((name.upper(), *_WHAT_FOR[name]) for name in PRESETS if name in _WHAT_FOR),
    (_NONE, "Own Settings", "Settings of your own"),
)
_FORMAT_ITEMS = tuple((name.upper(), one.label, f"Files that end in {one.suffix}", 1 << i) for i, (name, one) in enumerate(FORMATS.items()))
_WHICH = (
    ("NOW", "Playing Now", "What the character plays now: its action, or its NLA strips"),
    ("ALL", "All Actions", "Every action that moves the character's bones, assigned or not"),
    ("CHOSEN", "Chosen", "The actions ticked below"),
)
_SHARED = ("thin", "match", "additive", "in_place", "same_bones", "mesh", "together", "manifest")
_quiet = False


def _preset_chosen(self: MocapExport, _context: bpy.types.Context) -> None:
    if self.preset == _NONE:
        return
    global _quiet
    _quiet = True
    try:
        _fill(self, PRESETS[self.preset.lower()])
    finally:
        _quiet = False


def _own(self: MocapExport, _context: bpy.types.Context) -> None:
    """Something was changed by hand: the settings are no preset any more."""
    if not _quiet and self.preset != _NONE:
        self.preset = _NONE


def _fill(owner: MocapExport, options: ExportOptions) -> None:
    owner.formats = {name.upper() for name in options.formats}
    owner.use_bound = options.bound is not None
    if options.bound is not None:
        owner.bound = 1000.0 * options.bound
    for name in _SHARED:
        setattr(owner, name, getattr(options, name))
    owner.loop = {True: "YES", False: "NO", None: "AUTO"}[options.loop]
    owner.fbx = options.fbx.upper()
    owner.map_half, owner.map_ktx2 = options.map_precision == "float16", options.map_container == "ktx2"


class MocapExportAction(bpy.types.PropertyGroup):
    """One action of the character. ``name`` is its label."""

    action: StringProperty()
    slot: StringProperty()
    use: BoolProperty(name="Export", description="Export this action", default=True)


class MocapExport(bpy.types.PropertyGroup):
    """What the Export panel is set to."""

    preset: EnumProperty(name="For", description="What the files are for", items=_PRESET_ITEMS, default="WEB", update=_preset_chosen)
    formats: EnumProperty(
        name="Formats", description="What is written", items=_FORMAT_ITEMS, options={"ENUM_FLAG"}, default={"THREEJS", "GLB"}, update=_own
    )
    which: EnumProperty(name="Actions", description="Which actions are exported", items=_WHICH, default="NOW")
    actions: CollectionProperty(type=MocapExportAction)
    active_action: IntProperty()
    folder: StringProperty(name="Folder", description="Where the files go", subtype="DIR_PATH", default="//export")
    use_bound: BoolProperty(
        name="Small Files",
        description="Leave keys out and write numbers shorter, as long as nothing on the character is off by more than a limit",
        default=True,
        update=_own,
    )
    bound: FloatProperty(
        name="At Most Off (mm)",
        description="How far any point of the character may be from where it should, in millimetres. It is measured on what was written",
        default=0.1,
        min=0.001,
        soft_max=2.0,
        max=1000.0,
        precision=3,
        step=1,
        update=_own,
    )
    thin: BoolProperty(name="Leave Keys Out", description="Leave out keys that their neighbours give", default=True, update=_own)
    match: BoolProperty(
        name="Match Blender Between Keys",
        description="Blender and three.js go different ways between two keys. Add keys where that shows",
        update=_own,
    )
    loop: EnumProperty(
        name="Loop",
        description="Close the clips: their end is their beginning",
        items=(
            ("AUTO", "As the Action Says", "Actions that are set to be cyclic are closed"),
            ("YES", "Close", "Every clip ends where it begins"),
            ("NO", "Leave", "As they are"),
        ),
        update=_own,
    )
    additive: BoolProperty(
        name="Additive", description="Three.js clips as differences from their first pose, to be laid over others", update=_own
    )
    in_place: BoolProperty(
        name="In Place", description="Take the way over the ground off the character, and write it beside the clip", update=_own
    )
    same_bones: BoolProperty(
        name="Same Bones in All",
        description="Clips in one file all have the bones that any of them moves, so that they fade into each other evenly",
        default=True,
        update=_own,
    )
    mesh: BoolProperty(name="With the Character", description="GLB and FBX with the character's meshes", default=True, update=_own)
    together: BoolProperty(
        name="All Clips in One File", description="One file with all clips, where the format can", default=True, update=_own
    )
    manifest: BoolProperty(name="List of Clips", description="A list of the clips beside three.js files", default=True, update=_own)
    fbx: EnumProperty(
        name="FBX For",
        description="Which program the FBX is for",
        items=(("UNREAL", "Unreal", "Centimetres, Z up"), ("UNITY", "Unity", "Centimetres, Y up")),
        update=_own,
    )
    map_half: BoolProperty(
        name="Half Precision", description="The bone map at half the size; how far that is off is told in the file", update=_own
    )
    map_ktx2: BoolProperty(name="KTX2 Texture", description="The bone map's numbers as a KTX2 texture", update=_own)
    character: StringProperty(
        name="Original File",
        description="The glTF file the character came from, for clips that play on it. Empty: the character is exported",
        subtype="FILE_PATH",
    )


def options(owner: MocapExport) -> ExportOptions:
    """The panel's settings.

    Raises
    ------
    MocapError
        No format is chosen.
    """
    formats = tuple(name for name in FORMATS if name.upper() in owner.formats)
    if not formats:
        raise MocapError("No format is chosen; choose what to write in the Export panel.")
    return ExportOptions(
        formats,
        bound=round(0.001 * owner.bound, 9) if owner.use_bound else None,
        loop={"YES": True, "NO": False, "AUTO": None}[owner.loop],
        fbx=owner.fbx.lower(),
        map_precision="float16" if owner.map_half else "float32",
        map_container="ktx2" if owner.map_ktx2 else "bin",
        **{name: getattr(owner, name) for name in _SHARED},
    )


def fill_list(owner: MocapExport, obj: bpy.types.Object) -> None:
    """Show the actions of a character; what was ticked off stays off."""
    off = {(one.action, one.slot) for one in owner.actions if not one.use}
    owner.actions.clear()
    for found in sources.takes_of(obj):
        if found.kind == "action":
            row = owner.actions.add()
            row.name, row.action, row.slot = found.label, found.action, found.slot
            row.use = (found.action, found.slot) not in off


def chosen(owner: MocapExport, obj: bpy.types.Object) -> list[str | tuple[str, str]]:
    """The actions that are to be exported, for :func:`..blender.export.export_actions`.

    Raises
    ------
    MocapError
        There are none.
    """
    if owner.which == "NOW":
        return [""]
    there = [(found.action, found.slot) for found in sources.takes_of(obj) if found.kind == "action"]
    if owner.which == "CHOSEN":
        off = {(one.action, one.slot) for one in owner.actions if not one.use}
        listed = {(one.action, one.slot) for one in owner.actions}
        there = [one for one in there if one in listed and one not in off]
    if not there:
        raise MocapError(f'No action of "{obj.name}" is chosen; tick some in the Export panel, or choose All Actions.')
    return list(there)
