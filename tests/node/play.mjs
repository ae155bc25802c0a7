// SPDX-License-Identifier: GPL-3.0-or-later
// {character, clip, times}: plays the first clip of a file on a character, and says where every node is at the times (seconds).
import { readFileSync } from "node:fs";
import { answer, byNode, loadFile, printed, request } from "./common.mjs";
import { AnimationClip, AnimationMixer, PropertyBinding, Quaternion, Vector3 } from "three";

const { character, clip: path, times } = request();
const gltf = await loadFile(character);
const nodes = byNode(gltf);
const json = gltf.parser.json.nodes;
const loading = printed();

const clip = AnimationClip.parse(JSON.parse(readFileSync(path, "utf8"))[0]);
const mixer = new AnimationMixer(gltf.scene);
const action = mixer.clipAction(clip).play();
const index = new Map([...nodes].map(([i, object]) => [object, i]));
const bound = {};
for (const track of clip.tracks) {
  const parsed = PropertyBinding.parseTrackName(track.name);
  bound[track.name] = index.get(PropertyBinding.findNode(gltf.scene, parsed.nodeName)) ?? -1;
}

const frames = times.map((time) => {
  action.time = time;
  mixer.update(0);
  gltf.scene.updateMatrixWorld(true);
  const places = {};
  for (const [i, object] of nodes) {
    const p = object.getWorldPosition(new Vector3());
    const q = object.getWorldQuaternion(new Quaternion());
    places[i] = [p.x, p.y, p.z, q.w, q.x, q.y, q.z];
  }
  return places;
});
answer({ names: json.map((node) => node.name ?? ""), bound, frames, loading, playing: printed(), valid: clip.validate(), duration: clip.duration });
