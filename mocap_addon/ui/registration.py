# SPDX-License-Identifier: GPL-3.0-or-later
"""Everything Blender is told about, in one ordered list; taken back in the reverse order.

Nothing is caught here: a class that does not register must be seen, not missed.
"""

from __future__ import annotations

import atexit
from collections.abc import Callable

import bpy

from . import (
    characters,
    export_settings,
    feet_memory,
    feet_overlay,
    feet_panels,
    feet_settings,
    fitting,
    handlers,
    lists,
    live,
    live_hold,
    live_properties,
    live_send,
    operators_export,
    operators_feet,
    operators_live,
    operators_pose,
    operators_preview_page,
    operators_retarget,
    operators_root,
    operators_table,
    operators_take,
    operators_update,
    outdated,
    panels,
    panels_export,
    panels_live,
    presets,
    preview,
    properties,
    recent,
    rig_takes,
    takes,
)

CLASSES: tuple[type, ...] = (
    # children before the groups that hold them
    properties.MocapRow,
    feet_settings.MocapGroundObject,
    feet_settings.MocapFeet,
    feet_settings.MocapSole,
    properties.MocapObject,
    live_properties.MocapLiveSource,
    live_properties.MocapLiveBinding,
    live_properties.MocapLive,
    export_settings.MocapExportAction,
    export_settings.MocapExport,
    properties.MocapScene,
    operators_take.MOCAP_OT_open_take,
    operators_take.MOCAP_OT_read_take,
    operators_take.MOCAP_OT_use_armature,
    operators_table.MOCAP_OT_match_bones,
    operators_table.MOCAP_OT_load_table,
    operators_table.MOCAP_OT_save_table,
    operators_table.MOCAP_OT_reset_corrections,
    operators_table.MOCAP_OT_mirror_corrections,
    operators_pose.MOCAP_OT_preview,
    operators_pose.MOCAP_OT_edit_reference_pose,
    operators_pose.MOCAP_OT_apply_reference_pose,
    operators_pose.MOCAP_OT_cancel_reference_pose,
    operators_pose.MOCAP_OT_use_pose,
    operators_pose.MOCAP_OT_use_frame,
    operators_pose.MOCAP_OT_pick_bone,
    operators_root.MOCAP_OT_root_motion,
    operators_feet.MOCAP_OT_bake_feet,
    operators_feet.MOCAP_OT_check_feet,
    operators_feet.MOCAP_OT_feet_as_baked,
    operators_feet.MOCAP_OT_foot_contact,
    operators_feet.MOCAP_OT_measure_soles,
    operators_feet.MOCAP_OT_ground_objects,
    feet_panels.MOCAP_UL_ground,
    operators_retarget.MOCAP_OT_retarget,
    operators_retarget.MOCAP_OT_import_take,
    operators_update.MOCAP_OT_update,
    operators_update.MOCAP_OT_hand_edits,
    operators_update.MOCAP_OT_reset_body,
    operators_take.MOCAP_OT_open_character,
    presets.MOCAP_OT_keep_table,
    presets.MOCAP_OT_drop_table,
    presets.MOCAP_MT_table_presets,
    handlers.MOCAP_FH_take,
    handlers.MOCAP_FH_use_as_take,
    handlers.MOCAP_FH_use_as_character,
    lists.MOCAP_UL_bones,
    recent.MOCAP_MT_recent,
    panels.MOCAP_PT_take,
    panels.MOCAP_PT_take_overrides,
    panels.MOCAP_PT_character,
    panels.MOCAP_PT_bones,
    panels.MOCAP_PT_bone,
    panels.MOCAP_PT_reference_pose,
    panels.MOCAP_PT_body,
    panels.MOCAP_PT_retarget,
    panels.MOCAP_PT_root,
    panels.MOCAP_PT_extras,
    panels.MOCAP_PT_mask,
    *feet_panels.PANELS,
    *operators_live.CLASSES,
    *panels_live.CLASSES,
    operators_export.MOCAP_OT_export,
    operators_export.MOCAP_OT_list_actions,
    operators_preview_page.MOCAP_OT_preview_page,
    panels_export.MOCAP_UL_export_actions,
    panels_export.MOCAP_PT_export,
    panels_export.MOCAP_PT_export_settings,
)

POINTERS: tuple[tuple[type, type], ...] = (
    (bpy.types.Scene, properties.MocapScene),
    (bpy.types.Object, properties.MocapObject),
)
"""ID types and the one property group (``.mocap``) each of them gets."""

HANDLERS: tuple[tuple[list, Callable[..., None]], ...] = (
    (bpy.app.handlers.load_post, handlers.restore_tables),
    (bpy.app.handlers.load_post, preview.after_load),
    (bpy.app.handlers.load_post, live.after_load),
    (bpy.app.handlers.save_pre, live_hold.before_save),
    (bpy.app.handlers.save_post, live_hold.after_save),
    (bpy.app.handlers.save_post_fail, live_hold.after_save),
    (bpy.app.handlers.undo_post, live.after_undo),
    (bpy.app.handlers.redo_post, live.after_undo),
    (bpy.app.handlers.save_pre, preview.before_save),
    (bpy.app.handlers.save_post, preview.after_save),
    (bpy.app.handlers.save_post_fail, preview.after_save),
    (bpy.app.handlers.frame_change_pre, preview.before_frame_change),
    (bpy.app.handlers.frame_change_post, preview.after_frame_change),
    (bpy.app.handlers.undo_post, preview.after_undo),
    (bpy.app.handlers.redo_post, preview.after_undo),
    (bpy.app.handlers.depsgraph_update_post, rig_takes.after_change),
    (bpy.app.handlers.load_post, feet_overlay.after_change),
    (bpy.app.handlers.undo_post, feet_overlay.after_change),
    (bpy.app.handlers.redo_post, feet_overlay.after_change),
)
"""Blender's events and what answers them."""


def register() -> None:
    """Register the classes, then the properties that use them."""
    for cls in CLASSES:
        bpy.utils.register_class(cls)
    for owner, group in POINTERS:
        owner.mocap = bpy.props.PointerProperty(type=group)
    for event, answer in HANDLERS:
        event.append(answer)
    recent.load()
    presets.look()
    if not bpy.app.binary_path:
        # Blender as a Python module (4.5) waits for ever at exit when properties still have callbacks.
        atexit.register(unregister)


def unregister() -> None:
    """Undo :func:`register`, last thing first."""
    atexit.unregister(unregister)
    for event, answer in reversed(HANDLERS):
        event.remove(answer)
    live.stop()
    live_send.stop()
    preview.end_all()
    feet_overlay.end()
    feet_memory.forget_all()
    takes.forget_all()
    characters.forget_all()
    fitting.forget_all()
    outdated.forget_all()
    operators_export.forget_all()
    for owner, _group in reversed(POINTERS):
        del owner.mocap
    for cls in reversed(CLASSES):
        bpy.utils.unregister_class(cls)
