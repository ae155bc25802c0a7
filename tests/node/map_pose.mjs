// SPDX-License-Identifier: GPL-3.0-or-later
// {map, character, requests: [{from, to, at, share, mixer?}]}: where the player puts every bone; with a clip file also how far AnimationMixer is off.
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { answer, loadFile, request } from "./common.mjs";
import { register } from "node:module";
import { AnimationClip, AnimationMixer, Vector3 } from "three";

// the player lies outside this folder: its "three" is ours
register("data:text/javascript," + encodeURIComponent(`
  export const resolve = (name, context, next) => next(name, name === "three" ? { ...context, parentURL: ${JSON.stringify(import.meta.url)} } : context);
`));
const { TransformMap } = await import("../../mocap_addon/viewer/mocap-player.js");

const { map: path, character, requests } = request();
const json = JSON.parse(readFileSync(path, "utf8"));
const bytes = readFileSync(join(dirname(path), json.data));
const map = new TransformMap(json, bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
const gltf = await loadFile(character);
const out = [];
for (const { from, to, at, share, mixer: clips } of requests) {
  const worlds = map.worlds(map.pose(map.clip(from), at, map.clip(to), at, share));
  const places = Object.fromEntries(map.names.map((name, i) => [name, new Vector3().setFromMatrixPosition(worlds[i]).toArray()]));
  if (clips) {
    const mixer = new AnimationMixer(gltf.scene);
    const all = JSON.parse(readFileSync(clips, "utf8")).map((one) => AnimationClip.parse(one));
    [from, to].forEach((name, k) => {
      const action = mixer.clipAction(all.find((clip) => clip.name === name));
      action.play();
      action.setEffectiveWeight(k ? share : 1 - share);
    });
    mixer.update(at);
    gltf.scene.updateMatrixWorld(true);
    places.apart = Math.max(...map.names.slice(1).map((name) => {
      const bone = gltf.scene.getObjectByName(name);
      return bone ? new Vector3().setFromMatrixPosition(bone.matrixWorld).distanceTo(new Vector3(...places[name])) : 0;
    }));
    mixer.stopAllAction();
    mixer.uncacheRoot(gltf.scene);
  }
  out.push(places);
}
answer(out);
