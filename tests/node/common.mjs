// SPDX-License-Identifier: GPL-3.0-or-later
// Reading characters in three.js without a window. Loaded first by every script here.
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";

globalThis.self = globalThis; // GLTFLoader looks for it

const { GLTFLoader } = await import("three/addons/loaders/GLTFLoader.js");

const said = [];
for (const kind of ["warn", "error", "log"]) console[kind] = (...words) => said.push(`${kind}: ${words.map(String).join(" ")}`);

/** What three.js printed since the last call. */
export function printed() {
  return said.splice(0);
}

export function request() {
  return JSON.parse(readFileSync(0, "utf8"));
}

export function answer(value) {
  process.stdout.write(JSON.stringify(value));
}

/** The glTF file as [json, binary], with materials and images taken out (they would need a browser). */
export function opened(path) {
  const bytes = readFileSync(path);
  let json, binary;
  if (bytes.toString("latin1", 0, 4) === "glTF") {
    const length = bytes.readUInt32LE(12);
    json = JSON.parse(bytes.toString("utf8", 20, 20 + length));
    const at = 20 + length;
    binary = at < bytes.length ? bytes.subarray(at + 8, at + 8 + bytes.readUInt32LE(at)) : Buffer.alloc(0);
  } else {
    json = JSON.parse(bytes.toString("utf8"));
    binary = json.buffers?.length ? readFileSync(join(dirname(path), decodeURI(json.buffers[0].uri))) : Buffer.alloc(0);
  }
  for (const key of ["images", "textures", "samplers", "materials"]) delete json[key];
  for (const mesh of json.meshes ?? []) for (const primitive of mesh.primitives) delete primitive.material;
  return [json, binary];
}

export function packed(json, binary) {
  if (json.buffers?.length) json.buffers = [{ byteLength: binary.length }];
  const pad = (b, fill) => Buffer.concat([b, Buffer.alloc((4 - (b.length % 4)) % 4, fill)]);
  const text = pad(Buffer.from(JSON.stringify(json)), 0x20);
  const body = pad(binary, 0);
  const parts = [Buffer.alloc(20), text];
  if (body.length) {
    const head = Buffer.alloc(8);
    head.writeUInt32LE(body.length, 0);
    head.writeUInt32LE(0x004e4942, 4);
    parts.push(head, body);
  }
  parts[0].write("glTF", 0, "latin1");
  parts[0].writeUInt32LE(2, 4);
  parts[0].writeUInt32LE(parts.reduce((n, p) => n + p.length, 0), 8);
  parts[0].writeUInt32LE(text.length, 12);
  parts[0].writeUInt32LE(0x4e4f534a, 16);
  const all = Buffer.concat(parts);
  return all.buffer.slice(all.byteOffset, all.byteOffset + all.length);
}

export function load(json, binary = Buffer.alloc(0)) {
  return new Promise((resolve, reject) => new GLTFLoader().parse(packed(json, binary), "", resolve, reject));
}

export function loadFile(path) {
  return load(...opened(path));
}

/** Objects of three.js by the number of the node they came from. */
export function byNode(gltf) {
  const out = new Map();
  for (const [object, from] of gltf.parser.associations) {
    if (object.isObject3D && from?.nodes !== undefined && !out.has(from.nodes)) out.set(from.nodes, object);
  }
  return out;
}
