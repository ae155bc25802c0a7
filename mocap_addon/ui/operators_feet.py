# SPDX-License-Identifier: GPL-3.0-or-later
"""Feet: baked, baked again, measured, forced on and off, shown."""

from __future__ import annotations

import math

import bpy
from bpy.props import EnumProperty, FloatProperty

from ..blender import feet, feet_gates, feet_reading
from ..blender.feet_recipe import feet_of, options_of
from ..motion.errors import MocapError
from . import characters, feet_memory, feet_overlay, feet_settings, run

MOST_NOTES = 4
_FIRST = "Choose a character that plays an action first."
_BAKE_FIRST = "Bake the feet first; then what was found can be changed."

SIDES = (("LEFT", "Left", "The left foot"), ("RIGHT", "Right", "The right foot"))


def playing(context: bpy.types.Context) -> bpy.types.Action | None:
    """The action of the character in use."""
    obj = characters.of(context)
    return obj.animation_data.action if obj is not None and obj.animation_data else None


class _OnAction:
    bl_options = {"REGISTER", "UNDO"}

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        if playing(context) is None:
            cls.poll_message_set(_FIRST)
            return False
        return True


class MOCAP_OT_bake_feet(_OnAction, bpy.types.Operator):
    """Put the feet of the character's action on the ground. A new action is made, and the one from before is kept"""

    bl_idname = "mocap.bake_feet"
    bl_label = "Bake Feet"

    how: EnumProperty(
        name="How",
        items=(
            (
                "SETTINGS",
                "As Set",
                "As the panel is set. Where the feet were baked before, they are baked anew from the action before that",
            ),
            ("AGAIN", "As Before", "As this action was baked, with the scene and the locks as they are now"),
        ),
        options={"SKIP_SAVE"},
    )

    def execute(self, context: bpy.types.Context) -> set[str]:
        try:
            obj = characters.named(context, "")
            run.end_preview(context.scene, obj)
            again = self.how == "AGAIN"
            done = feet.rebake_feet(obj) if again else feet.bake_feet(obj, feet_settings.options(context.scene.mocap.feet, obj))
        except MocapError as error:
            self.report({"ERROR"}, str(error))
            return {"CANCELLED"}
        feet_memory.keep(done)
        feet_overlay.redraw()
        for note in done.notes[:MOST_NOTES]:
            self.report({"WARNING"}, note)
        stands = len(done.result.footprints)
        self.report({"INFO"}, f'Action "{done.action.name}": {stands} footprints; "{done.before.name}" is kept.')
        return {"FINISHED"}


class MOCAP_OT_check_feet(_OnAction, bpy.types.Operator):
    """Measure how the feet of the character's action stand on the ground. Nothing is changed"""

    bl_idname = "mocap.check_feet"
    bl_label = "Measure"
    bl_options = {"REGISTER"}

    def execute(self, context: bpy.types.Context) -> set[str]:
        try:
            obj = characters.named(context, "")
            done = feet.check_feet(obj, feet_settings.options(context.scene.mocap.feet, obj))
        except MocapError as error:
            self.report({"ERROR"}, str(error))
            return {"CANCELLED"}
        feet_memory.keep(done)
        feet_overlay.redraw()
        self.report({"INFO"}, f'The feet of "{done.action.name}" were measured.')
        return {"FINISHED"}


class MOCAP_OT_feet_as_baked(bpy.types.Operator):
    """Set the panel as this action's feet were baked"""

    bl_idname = "mocap.feet_as_baked"
    bl_label = "Set as Baked"
    bl_options = {"REGISTER", "UNDO"}

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        if feet_of(playing(context)) is None:
            cls.poll_message_set("The feet of this action were not baked here.")
            return False
        return True

    def execute(self, context: bpy.types.Context) -> set[str]:
        feet_settings.fill(context.scene.mocap.feet, options_of(playing(context)))
        return {"FINISHED"}


class MOCAP_OT_foot_contact(bpy.types.Operator):
    """Change where a foot is planted. Bake again to see it"""

    bl_idname = "mocap.foot_contact"
    bl_label = "Foot Contact"
    bl_options = {"REGISTER", "UNDO"}

    side: EnumProperty(name="Foot", items=SIDES, options={"SKIP_SAVE"})
    what: EnumProperty(
        name="What",
        items=(
            ("ON", "Plant", "The foot is planted from the first to the last frame"),
            ("OFF", "Free", "The foot is free from the first to the last frame"),
            ("START", "Start Here", "The contact nearest to the current frame begins here"),
            ("END", "End Here", "The contact nearest to the current frame ends here"),
            ("FOUND", "As Found", "Everything as the last bake found it"),
        ),
        options={"SKIP_SAVE"},
    )
    start: FloatProperty(name="First frame", precision=1, options={"SKIP_SAVE"})
    end: FloatProperty(name="Last frame", description="The first frame after", precision=1, options={"SKIP_SAVE"})

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        obj = characters.of(context)
        if obj is None or feet_of(playing(context)) is None:
            cls.poll_message_set(_BAKE_FIRST)
            return False
        return True

    def invoke(self, context: bpy.types.Context, event: bpy.types.Event) -> set[str]:
        start, end = span_at(context, self.side)
        if not self.properties.is_property_set("start"):
            self.start = start
        if not self.properties.is_property_set("end"):
            self.end = end
        return self.execute(context)

    def draw(self, context: bpy.types.Context) -> None:
        self.layout.use_property_split = True
        self.layout.prop(self, "side")
        if self.what in ("ON", "OFF"):
            column = self.layout.column(align=True)
            column.prop(self, "start")
            column.prop(self, "end")

    def execute(self, context: bpy.types.Context) -> set[str]:
        obj = characters.of(context)
        curve = feet_gates.lock_curve(obj, self.side.lower())
        if curve is None:
            self.report({"ERROR"}, f'The {self.side.lower()} foot has no curve "foot_lock" in this action; bake the feet again.')
            return {"CANCELLED"}
        if self.what == "FOUND":
            baked = (feet_of(playing(context)) or {}).get("locks") or {}
            feet_gates.write_steps(curve, [tuple(key) for key in baked.get(feet_gates.FOOT_LOCK[self.side == "RIGHT"], [])])
        elif self.what in ("ON", "OFF"):
            start, end = (self.start, self.end) if self.end > self.start else span_at(context, self.side)
            feet_gates.set_interval(curve, start, end, 1.0 if self.what == "ON" else 0.0)
        elif not self._moved(context, curve):
            return {"CANCELLED"}
        feet_overlay.redraw()
        return {"FINISHED"}

    def _moved(self, context: bpy.types.Context, curve: bpy.types.FCurve) -> bool:
        frame = context.scene.frame_current_final
        found = feet_gates.intervals(curve)
        if not found:
            self.report({"ERROR"}, f"The {self.side.lower()} foot is planted nowhere; choose Plant first.")
            return False
        old = min(found, key=lambda one: abs((one[0] if self.what == "START" else one[1]) - frame))
        new = (frame, old[1]) if self.what == "START" else (old[0], frame)
        if not new[1] > new[0]:
            self.report({"ERROR"}, "A contact cannot end before it begins; go to a frame on its other side.")
            return False
        feet_gates.move_interval(curve, old, new)
        return True


def span_at(context: bpy.types.Context, side: str) -> tuple[float, float]:
    """What is meant by now: the preview range, else the contact or the gap around the current frame, else a third of a second."""
    scene = context.scene
    if scene.use_preview_range:
        return float(scene.frame_preview_start), float(scene.frame_preview_end)
    frame = scene.frame_current_final
    curve = feet_gates.lock_curve(characters.of(context), side.lower())
    edges = sorted({edge for one in (feet_gates.intervals(curve) if curve is not None else ()) for edge in one})
    before, after = [e for e in edges if e <= frame], [e for e in edges if e > frame]
    if before and after and math.isfinite(after[0]):
        return before[-1], after[0]
    return frame, frame + max(1.0, round(scene.render.fps / scene.render.fps_base / 3.0))


class MOCAP_OT_measure_soles(characters.OnCharacter, bpy.types.Operator):
    """Measure the soles on the character's skin, and fill the values in"""

    bl_idname = "mocap.measure_soles"
    bl_label = "Measure Soles"
    bl_options = {"REGISTER", "UNDO"}

    def execute(self, context: bpy.types.Context) -> set[str]:
        try:
            obj = characters.named(context, "")
            legs = feet_reading.feet_of_character(obj, context.scene)[0].legs
        except MocapError as error:
            self.report({"ERROR"}, str(error))
            return {"CANCELLED"}
        feet_settings.show_soles(obj, {leg.side: leg.sole for leg in legs})
        return {"FINISHED"}


class MOCAP_OT_ground_objects(bpy.types.Operator):
    """Change the list of objects that are the ground"""

    bl_idname = "mocap.ground_objects"
    bl_label = "Ground Objects"
    bl_options = {"REGISTER", "UNDO"}

    what: EnumProperty(
        name="What",
        items=(
            ("ADD", "Add Selected", "Put the selected objects into the list"),
            ("REMOVE", "Remove", "Take the highlighted object off the list"),
            ("CLEAR", "Clear", "Empty the list"),
        ),
        options={"SKIP_SAVE"},
    )

    def execute(self, context: bpy.types.Context) -> set[str]:
        owner = context.scene.mocap.feet
        if self.what == "CLEAR":
            owner.objects.clear()
        elif self.what == "REMOVE":
            owner.objects.remove(owner.active_object)
            owner.active_object = max(0, min(owner.active_object, len(owner.objects) - 1))
        else:
            there = {one.object for one in owner.objects}
            picked = [obj for obj in context.selected_objects if obj.type != "ARMATURE" and obj not in there]
            if not picked:
                self.report({"ERROR"}, "No objects that are not in the list yet are selected; select the ground in the 3D view.")
                return {"CANCELLED"}
            for obj in picked:
                owner.objects.add().object = obj
        return {"FINISHED"}
