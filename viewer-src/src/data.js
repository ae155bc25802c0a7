// SPDX-License-Identifier: GPL-3.0-or-later
// What the page shows: written into it, or files that a person opens.
import { AnimationClip } from "three";
import { GLTFLoader } from "three/addons/loaders/GLTFLoader.js";

/** The data that the add-on wrote into this page, or null. */
export function embedded() {
  const text = document.getElementById("mocap-data")?.textContent.trim();
  return text ? JSON.parse(text) : null;
}

export function bytes(base64) {
  const raw = atob(base64);
  const out = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) out[i] = raw.charCodeAt(i);
  return out.buffer;
}

export function parse(buffer) {
  return new Promise((resolve, reject) => new GLTFLoader().parse(buffer, "", resolve, reject));
}

/** Opened files as one character: a GLB, and clips of three.js that belong to it. */
export async function opened(files) {
  const list = [...files];
  const glb = list.find((file) => /\.(glb|vrm|gltf)$/i.test(file.name));
  const clips = [];
  for (const file of list.filter((one) => /\.json$/i.test(one.name))) {
    const data = JSON.parse(await file.text());
    if (!Array.isArray(data)) throw new Error(`${file.name} is not a list of clips.`);
    clips.push(...data.map((one) => AnimationClip.parse(one)));
  }
  return { name: glb?.name.replace(/\.\w+$/, "") ?? "", buffer: glb ? await glb.arrayBuffer() : null, clips };
}
