// SPDX-License-Identifier: GPL-3.0-or-later
// [gltf, ...]: the name that the loader gives each node, and whether a track of that name reaches it.
import { answer, byNode, load, request } from "./common.mjs";
import { PropertyBinding } from "three";

const out = [];
for (const json of request()) {
  const gltf = await load(json);
  const nodes = byNode(gltf);
  const names = json.nodes.map((_, i) => nodes.get(i)?.name ?? null);
  const found = json.nodes.map((_, i) => nodes.has(i) && PropertyBinding.findNode(gltf.scene, PropertyBinding.parseTrackName(`${names[i]}.quaternion`).nodeName) === nodes.get(i));
  out.push({ names, found });
}
answer(out);
