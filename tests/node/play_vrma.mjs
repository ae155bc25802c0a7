// SPDX-License-Identifier: GPL-3.0-or-later
// {character, vrma, times}: a VRM animation on a VRM character by three-vrm-animation; where its humanoid bones are, and its expressions' weights.
import { readFileSync } from "node:fs";
import { answer, opened, packed, printed, request } from "./common.mjs";
import { AnimationMixer, Vector3 } from "three";
import { GLTFLoader } from "three/addons/loaders/GLTFLoader.js";

const { VRMLoaderPlugin } = await import("@pixiv/three-vrm");
const { VRMAnimationLoaderPlugin, createVRMAnimationClip } = await import("@pixiv/three-vrm-animation");
const asked = request();
function load(path, plugin) {
  const [json, binary] = opened(path);
  const loader = new GLTFLoader();
  loader.register(plugin);
  return new Promise((resolve, reject) => loader.parse(packed(json, binary), "", resolve, reject));
}
const character = await load(asked.character, (parser) => new VRMLoaderPlugin(parser));
const file = await load(asked.vrma, (parser) => new VRMAnimationLoaderPlugin(parser));
const vrm = character.userData.vrm;
const animation = file.userData.vrmAnimations[0];
const clip = createVRMAnimationClip(animation, vrm);
const mixer = new AnimationMixer(vrm.scene);
const action = mixer.clipAction(clip).play();
const frames = asked.times.map((time) => {
  action.time = time;
  mixer.update(0);
  vrm.humanoid.update();
  vrm.scene.updateMatrixWorld(true);
  const out = {};
  for (const [name, bone] of Object.entries(vrm.humanoid.rawHumanBones)) {
    const p = bone.node.getWorldPosition(new Vector3());
    out[name] = [p.x, p.y, p.z];
  }
  return out;
});
const known = vrm.expressionManager?.expressions.map((one) => one.expressionName) ?? [];
const expressions = asked.times.map((time) => {
  action.time = time;
  mixer.update(0);
  return Object.fromEntries(known.map((name) => [name, vrm.expressionManager.getValue(name)]));
});
const found = Object.fromEntries(["preset", "custom"].map((kind) => [kind, [...animation.expressionTracks[kind].keys()]]));
answer({ frames, expressions, found, names: Object.fromEntries(Object.entries(vrm.humanoid.rawHumanBones).map(([n, b]) => [n, b.node.userData.name ?? b.node.name])), printed: printed(), duration: clip.duration });
