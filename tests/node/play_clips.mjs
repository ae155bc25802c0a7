// SPDX-License-Identifier: GPL-3.0-or-later
// {character, clips?, glb?, clip?, times, vrma?}: plays one clip on a character, and says where every node is at the times (seconds).
// A list of these is answered by a list. clips: a three.js clip file; glb: a file whose animations are played on the character (it may be the character itself).
import { readFileSync } from "node:fs";
import { answer, byNode, loadFile, printed, request } from "./common.mjs";
import { AnimationLoader, AnimationMixer, PropertyBinding, Quaternion, Vector3 } from "three";

async function play(asked) {
  const gltf = await loadFile(asked.character);
  const nodes = byNode(gltf);
  const json = gltf.parser.json.nodes;
  let loading = printed();
  let found;
  if (asked.clips) found = new AnimationLoader().parse(JSON.parse(readFileSync(asked.clips, "utf8")));
  else if (asked.glb === asked.character || !asked.glb) found = gltf.animations;
  else {
    found = (await loadFile(asked.glb)).animations;
    loading = loading.concat(printed());
  }
  const clip = asked.clip === undefined ? found[0] : found.find((one) => one.name === asked.clip);
  const root = gltf.scene;
  const mixer = new AnimationMixer(root);
  const action = mixer.clipAction(clip).play();
  const index = new Map([...nodes].map(([i, object]) => [object, i]));
  const bound = {};
  for (const track of clip.tracks) {
    const parsed = PropertyBinding.parseTrackName(track.name);
    const object = PropertyBinding.findNode(root, parsed.nodeName);
    // -1: nothing; -2: the scene; -3: one of several parts of a mesh, which are no nodes
    bound[track.name] = object === root ? -2 : object ? (index.get(object) ?? -3) : -1;
  }
  const morphs = [];
  root.traverse((object) => { if (object.morphTargetInfluences) morphs.push(object); });
  const frames = asked.times.map((time) => {
    action.time = time;
    mixer.update(0);
    root.updateMatrixWorld(true);
    const places = {};
    for (const [i, object] of nodes) {
      const p = object.getWorldPosition(new Vector3());
      const q = object.getWorldQuaternion(new Quaternion());
      places[i] = [p.x, p.y, p.z, q.w, q.x, q.y, q.z];
    }
    return { places, morphs: morphs.map((m) => [...m.morphTargetInfluences]), data: { ...root.userData } };
  });
  return {
    names: json.map((node) => node.name ?? ""),
    three: json.map((_, i) => nodes.get(i)?.name ?? ""),
    bound,
    frames,
    loading,
    playing: printed(),
    valid: clip.validate(),
    duration: clip.duration,
    blendMode: clip.blendMode,
    userData: clip.userData,
    clips: found.map((one) => ({ name: one.name, duration: one.duration, uuid: one.uuid, tracks: one.tracks.map((t) => [t.name, t.times.length, t.times[0], t.times[t.times.length - 1], t.getInterpolation()]) })),
  };
}

const all = request();
if (Array.isArray(all)) {
  const out = [];
  for (const one of all) out.push(await play(one));
  answer(out);
} else answer(await play(all));
