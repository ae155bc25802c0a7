# SPDX-License-Identifier: GPL-3.0-or-later
"""Update: actions made again after their take, table or sliders changed, with the hand edits kept. And the body sliders' reset."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import bpy
from bpy.props import EnumProperty, FloatProperty

from ..blender import job, recipes, update
from ..formats import ReadOptions
from ..motion.errors import MocapError
from ..motion.take import Take
from . import body, characters, outdated, preview, run, table_sync, takes

MOST_NOTES = 4
_NOTHING = "Retarget a take onto this character first."


def assigned(obj: bpy.types.Object) -> bpy.types.Action | None:
    """The character's action, when it was made here."""
    action = obj.animation_data.action if obj.animation_data else None
    return action if action is not None and recipes.recipe_of(action) is not None else None


class MOCAP_OT_update(bpy.types.Operator):
    """Make actions again after a change, hand edits kept"""

    bl_idname = "mocap.update"
    bl_label = "Update"
    bl_description = (
        "Make the action again with the bone table and body sliders as they are now, from the take's file as it is now, "
        "with the settings it was made with. What you changed by hand in the action is kept"
    )
    bl_options = {"REGISTER", "UNDO"}

    which: EnumProperty(
        name="Actions",
        items=(
            ("ONE", "This Action", "The action that the character plays"),
            ("ALL", "All Actions", "Every action made for the character"),
        ),
        options={"SKIP_SAVE"},
    )

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        obj = characters.of(context)
        if obj is None or not update.actions_of(obj):
            cls.poll_message_set(characters.NO_CHARACTER if obj is None else _NOTHING)
            return False
        return True

    def execute(self, context: bpy.types.Context) -> set[str]:
        errors: list[str] = []
        done: list[update.UpdateResult] = []
        try:
            obj = characters.named(context, "")
            found = update.actions_of(obj) if self.which == "ALL" else [a for a in (assigned(obj),) if a is not None]
            if not found:
                raise MocapError("The action that the character plays was not made here; press Update All, or retarget a take.")
            run.end_preview(context.scene, obj)
        except MocapError as error:
            self.report({"ERROR"}, str(error))
            return {"CANCELLED"}
        with run.progress(context, len(found), run.LONG_WORK if len(found) > 1 else 0) as step:
            for action in found:
                try:
                    done.append(_made_again(context.scene, obj, action))
                except MocapError as error:
                    errors.append(str(error))
                if step is not None:
                    step()
        if not done:
            self.report({"ERROR"}, "\n".join(errors))
            return {"CANCELLED"}
        for error in errors:
            self.report({"WARNING"}, error)
        for note in list(dict.fromkeys(note for result in done for note in result.notes))[:MOST_NOTES]:
            self.report({"WARNING"}, note)
        self.report({"INFO"}, _sentence(done))
        return {"FINISHED"}


def _made_again(scene: bpy.types.Scene, obj: bpy.types.Object, action: bpy.types.Action) -> update.UpdateResult:
    table, stored = table_sync.to_table(obj), outdated.stored_table(action)
    if table is not None and stored is not None and not outdated.suits(table, stored):
        table = None  # made for a take of another skeleton: the action keeps its own
    options = replace(job.options_of(recipes.recipe_of(action) or {}), adjustments=body.adjustments(obj, scene))
    result = update.update_action(obj, action, table=table, options=options, read=_read)
    if table is not None:
        table_sync.set_measures(obj, result.table)
    return result


def _read(path: str, options: ReadOptions) -> Sequence[Take]:
    return takes.read(path, options).takes


def _sentence(done: Sequence[update.UpdateResult]) -> str:
    changed = [result for result in done if result.rewritten]
    edited = sorted({bone for result in done for bone in result.edited})
    what = f'Action "{done[0].action.name}"' if len(done) == 1 else f"{len(changed)} of {len(done)} actions"
    if not changed:
        return f"{what}: nothing has changed." if len(done) == 1 else "Nothing has changed."
    kept = f"; hand edits of {len(edited)} {'bone' if len(edited) == 1 else 'bones'} kept" if edited else ""
    return f"{what} made again{kept}."


class MOCAP_OT_hand_edits(bpy.types.Operator):
    """Show more or less of what was changed by hand in the action since it was made. Nothing is lost"""

    bl_idname = "mocap.hand_edits"
    bl_label = "Hand Edits"
    bl_options = {"REGISTER", "UNDO"}

    influence: FloatProperty(
        name="Influence",
        description="How much of the changes made by hand shows: 0 is the take alone",
        default=1.0,
        min=0.0,
        max=1.0,
        subtype="FACTOR",
        options={"SKIP_SAVE"},
    )

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        obj = characters.of(context)
        if obj is None or assigned(obj) is None:
            cls.poll_message_set(_NOTHING)
            return False
        return True

    def invoke(self, context: bpy.types.Context, event: bpy.types.Event) -> set[str]:
        obj = characters.of(context)
        found = update.summary(obj, assigned(obj))
        if not self.properties.is_property_set("influence"):
            self.influence = found.influence if found is not None else 1.0
        return context.window_manager.invoke_props_dialog(self)

    def draw(self, context: bpy.types.Context) -> None:
        self.layout.prop(self, "influence", slider=True)

    def execute(self, context: bpy.types.Context) -> set[str]:
        obj = characters.of(context)
        try:
            update.set_edit_influence(obj, assigned(obj), self.influence)
        except MocapError as error:
            self.report({"ERROR"}, str(error))
            return {"CANCELLED"}
        return {"FINISHED"}


class MOCAP_OT_reset_body(bpy.types.Operator):
    """Set all body sliders back"""

    bl_idname = "mocap.reset_body"
    bl_label = "Reset Body"
    bl_options = {"REGISTER", "UNDO"}

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        obj = characters.of(context)
        if obj is None or not body.moved(obj):
            cls.poll_message_set("All sliders are at their start.")
            return False
        return True

    def execute(self, context: bpy.types.Context) -> set[str]:
        obj = characters.of(context)
        body.reset(obj)
        preview.refresh(context.scene, obj)
        return {"FINISHED"}
