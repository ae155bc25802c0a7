// SPDX-License-Identifier: GPL-3.0-or-later
// A clip file's text: what AnimationLoader makes of it.
import { answer, printed, request } from "./common.mjs";
import { AnimationClip, AnimationLoader, AnimationMixer, Object3D } from "three";

const text = request();
const data = JSON.parse(text);
const clips = new AnimationLoader().parse(data);
const described = clips.map((clip) => ({
  name: clip.name,
  uuid: clip.uuid,
  duration: clip.duration,
  userData: clip.userData,
  valid: clip.validate(),
  tracks: clip.tracks.map((track) => ({
    name: track.name,
    type: track.ValueTypeName,
    interpolation: track.getInterpolation(),
    stride: track.getValueSize(),
    times: Array.from(track.times),
    values: Array.from(track.values),
  })),
}));

// A stand-in character that has every node, to see that each clip has an action of its own and runs.
const root = new Object3D();
for (const name of new Set(clips.flatMap((clip) => clip.tracks.map((track) => track.name.slice(0, track.name.lastIndexOf(".")))))) {
  const child = new Object3D();
  child.name = name;
  root.add(child);
}
const mixer = new AnimationMixer(root);
const actions = clips.map((clip) => mixer.clipAction(clip));
actions.forEach((action) => action.play());
mixer.update(0.25);
const alone = AnimationClip.parse(JSON.parse(text)[0] ?? { tracks: [] });
answer({
  clips: described,
  own_actions: new Set(actions).size,
  times: actions.map((action) => action.time),
  alone: alone.tracks.length,
  printed: printed(),
});
