// SPDX-License-Identifier: GPL-3.0-or-later
// [{map, clip, times}]: where the player of transform maps puts every bone at the times (seconds), on the main thread.
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { answer, request } from "./common.mjs";
import { register } from "node:module";
import { Vector3 } from "three";

// the player lies outside this folder: its "three" is ours
register("data:text/javascript," + encodeURIComponent(`
  export const resolve = (name, context, next) => next(name, name === "three" ? { ...context, parentURL: ${JSON.stringify(import.meta.url)} } : context);
`));
const { TransformMap } = await import("../../mocap_addon/viewer/mocap-player.js");

const out = [];
for (const { map: path, clip: name, times } of request()) {
  const json = JSON.parse(readFileSync(path, "utf8"));
  const bytes = readFileSync(join(dirname(path), json.data));
  const map = new TransformMap(json, bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
  const clip = map.clip(name);
  const frames = times.map((time) => {
    const worlds = map.worlds(map.pose(clip, time));
    return Object.fromEntries(map.names.map((bone, i) => [bone, new Vector3().setFromMatrixPosition(worlds[i]).toArray()]));
  });
  out.push({ frames, duration: clip.duration });
}
answer(out);
