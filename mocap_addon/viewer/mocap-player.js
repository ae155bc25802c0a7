// SPDX-License-Identifier: GPL-3.0-or-later
// Plays bone transform maps in three.js (r160 and later, WebGL 2): crowds of one character, each on a clip, time and speed of its own,
// in one draw call a mesh. Rotations are slerped between frames and between clips in the bones' own frames, as AnimationMixer does it,
// and the chain of bones is composed after that, in the vertex shader: limbs keep their lengths, also in the middle of a cross-fade.
//
//   const map = await loadMap("hero.map.json");
//   const crowd = new MapCrowd(gltf.scene, map, 1000);
//   scene.add(crowd);
//   crowd.setMatrixAt(0, matrix);
//   crowd.setClip(0, "walk", { time: 0.3, speed: 1.1 });
//   crowd.setClip(0, "run", { fade: 0.4 });          // later: over 0.4 seconds
//   crowd.update(deltaSeconds);                      // every frame
import {
  BufferGeometry,
  DataArrayTexture,
  DataTexture,
  DataUtils,
  DynamicDrawUsage,
  FloatType,
  Group,
  HalfFloatType,
  InstancedBufferAttribute,
  InstancedMesh,
  Matrix4,
  MeshDepthMaterial,
  MeshDistanceMaterial,
  NearestFilter,
  RGBADepthPacking,
  RGBAFormat,
  Sphere,
  Box3,
  Uint16BufferAttribute,
  Float32BufferAttribute,
  Vector3,
} from "three";

const KIND = "mocap-transform-map";
const KTX2_LEVELS = 80; // where a KTX2 file tells the place of its first level
const REBASE = 60; // seconds after which times are counted anew: single precision wears out

/** Load a map: its JSON file, and beside it the texels. */
export async function loadMap(url, read = (address) => fetch(address)) {
  const answer = await read(url);
  if (!answer.ok) throw new Error(`The map ${url} cannot be loaded (${answer.status}).`);
  const json = await answer.json();
  if (json.kind !== KIND) throw new Error(`${url} is not a transform map.`);
  const data = await read(new URL(json.data, new URL(url, globalThis.location?.href ?? "file:///")).href);
  if (!data.ok) throw new Error(`The texels ${json.data} cannot be loaded (${data.status}).`);
  return new TransformMap(json, await data.arrayBuffer());
}

/** The clips of a character, from the JSON and the bytes of its texels (.bin or .ktx2). */
export class TransformMap {
  constructor(json, buffer) {
    if (json.kind !== KIND || json.version !== 1) throw new Error("This is not a transform map of version 1.");
    if (json.layout !== "tqs") throw new Error('This map holds matrices, which do not blend; write it with the layout "tqs" to play it here.');
    const half = json.component === "f16";
    const start = json.data.endsWith(".ktx2") ? Number(new DataView(buffer).getBigUint64(KTX2_LEVELS, true)) : 0;
    const count = json.width * json.height * json.layers * 4;
    if (buffer.byteLength < start + count * (half ? 2 : 4)) throw new Error("The texels of this map are cut off.");
    this.json = json;
    this.half = half;
    this.texels = json.texels;
    this.width = json.width;
    this.data = new (half ? Uint16Array : Float32Array)(buffer, start, count);
    this.names = json.bones.map((bone) => bone.name);
    this.parents = json.bones.map((bone) => bone.parent);
    this.clips = json.clips;
    this.index = new Map(this.names.map((name, i) => [name, i]));
    this.bounds = new Box3(new Vector3(...json.bounds.min), new Vector3(...json.bounds.max));
    this._texture = null;
  }

  /** The texels as a texture, one for all that play the map. */
  get texture() {
    if (!this._texture) {
      const { width, height, layers } = this.json;
      const texture = new DataArrayTexture(this.data, width, height, layers);
      texture.format = RGBAFormat;
      texture.type = this.half ? HalfFloatType : FloatType;
      texture.minFilter = texture.magFilter = NearestFilter;
      texture.generateMipmaps = false;
      texture.needsUpdate = true;
      this._texture = texture;
    }
    return this._texture;
  }

  /** A clip by name or number. */
  clip(which) {
    const found = typeof which === "number" ? this.clips[which] : this.clips.find((clip) => clip.name === which);
    if (!found) throw new Error(`The map has no clip "${which}"; it has ${this.clips.map((clip) => clip.name).join(", ")}.`);
    return found;
  }

  /** What is played of a clip `seconds` after its start: two rows and the share of the second. */
  rows(clip, seconds) {
    const last = clip.frames - 1;
    let at = seconds * clip.fps;
    if (last === 0) at = 0;
    else if (clip.loop) at -= Math.floor(at / last) * last;
    else at = Math.min(Math.max(at, 0), last);
    const first = Math.min(Math.floor(at), Math.max(last - 1, 0));
    return [clip.row + first, clip.row + Math.min(first + 1, last), at - first];
  }

  /** Local transforms of all bones, 10 numbers a bone (quaternion, translation, scale), on the main thread. `to` fades in by `share`. */
  pose(clip, seconds, to = null, toSeconds = 0, share = 1) {
    const [r0, r1, t] = this.rows(clip, seconds);
    const second = to && share > 0 ? this.rows(to, toSeconds) : null;
    const out = new Float64Array(this.names.length * 10);
    const a = new Float64Array(10);
    const b = new Float64Array(10);
    for (let bone = 0; bone < this.names.length; bone++) {
      mix(this._read(r0, bone, a), this._read(r1, bone, b), t, out, bone * 10);
      if (second) {
        const from = out.slice(bone * 10, bone * 10 + 10);
        const into = new Float64Array(10);
        mix(this._read(second[0], bone, a), this._read(second[1], bone, b), second[2], into, 0);
        mix(from, into, share, out, bone * 10);
      }
    }
    return out;
  }

  /** The bones in the character's scene, from a pose: one Matrix4 each. */
  worlds(pose) {
    const out = [];
    const local = new Matrix4();
    for (let bone = 0; bone < this.names.length; bone++) {
      compose(pose, bone * 10, local);
      out.push(this.parents[bone] < 0 ? local.clone() : new Matrix4().multiplyMatrices(out[this.parents[bone]], local));
    }
    return out;
  }

  _read(row, bone, out) {
    const at = (row * this.width + bone * this.texels) * 4;
    const number = this.half ? (i) => DataUtils.fromHalfFloat(this.data[at + i]) : (i) => this.data[at + i];
    for (let i = 0; i < 7; i++) out[i] = number(i);
    for (let i = 0; i < 3; i++) out[7 + i] = this.texels > 2 ? number(8 + i) : number(7);
    return out;
  }
}

function mix(a, b, t, out, at) {
  let dot = a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3];
  const sign = dot < 0 ? -1 : 1;
  let minus = 0;
  let plus = 0;
  for (let i = 0; i < 4; i++) {
    minus += (a[i] - sign * b[i]) ** 2;
    plus += (a[i] + sign * b[i]) ** 2;
  }
  const angle = 2 * Math.atan2(Math.sqrt(minus), Math.sqrt(plus));
  const wa = angle < 1e-6 ? 1 - t : Math.sin((1 - t) * angle);
  const wb = sign * (angle < 1e-6 ? t : Math.sin(t * angle));
  let length = 0;
  for (let i = 0; i < 4; i++) {
    out[at + i] = wa * a[i] + wb * b[i];
    length += out[at + i] ** 2;
  }
  for (let i = 0; i < 4; i++) out[at + i] /= Math.sqrt(length);
  for (let i = 4; i < 10; i++) out[at + i] = a[i] * (1 - t) + b[i] * t;
}

function compose(p, at, out) {
  const [x, y, z, w, tx, ty, tz, sx, sy, sz] = p.subarray(at, at + 10);
  return out.set(
    (1 - 2 * (y * y + z * z)) * sx, 2 * (x * y - z * w) * sy, 2 * (x * z + y * w) * sz, tx,
    2 * (x * y + z * w) * sx, (1 - 2 * (x * x + z * z)) * sy, 2 * (y * z - x * w) * sz, ty,
    2 * (x * z - y * w) * sx, 2 * (y * z + x * w) * sy, (1 - 2 * (x * x + y * y)) * sz, tz,
    0, 0, 0, 1,
  );
}

/** GLSL 3: `void mocapPose(inout vec3 position, inout vec3 normal, inout vec3 tangent)` moves a vertex as its instance plays. */
export const skinningGLSL = /* glsl */ `
attribute vec4 skinIndex;
attribute vec4 skinWeight;
// first row; last frame (below 0: holds its end instead of looping); frames a second; when it began (at 0 frames a second: the frame)
attribute vec4 mocapNow;
attribute vec4 mocapBefore; // the same of the clip that is faded out
attribute vec2 mocapFade;   // when the fade began, 1 / its seconds
uniform highp sampler2DArray mocapMap;
uniform highp sampler2D mocapSkin; // rows: parent of a bone; bone of a joint; three rows of its bind matrix
uniform float mocapTime;
uniform int mocapTexels;
uniform int mocapHeight;

vec4 mocapSlerp(vec4 a, vec4 b, float t) {
  b = dot(a, b) < 0.0 ? -b : b;
  float angle = 2.0 * atan(length(a - b), length(a + b));
  return normalize(angle < 1e-3 ? mix(a, b, t) : sin((1.0 - t) * angle) * a + sin(t * angle) * b);
}

vec3 mocapTurn(vec4 q, vec3 v) {
  vec3 c = 2.0 * cross(q.xyz, v);
  return v + q.w * c + cross(q.xyz, c);
}

// two rows and the share of the second
vec3 mocapRows(vec4 play) {
  float last = abs(play.y);
  float at = play.z == 0.0 ? play.w : (mocapTime - play.w) * play.z;
  at = play.y > 0.0 ? at - floor(at / last) * last : clamp(at, 0.0, last);
  float first = min(floor(at), max(last - 1.0, 0.0));
  return vec3(play.x + first, play.x + min(first + 1.0, last), at - first);
}

vec4 mocapTexel(int bone, int part, int row) {
  return texelFetch(mocapMap, ivec3(bone * mocapTexels + part, row % mocapHeight, row / mocapHeight), 0);
}

void mocapRead(int bone, vec3 rows, out vec4 q, out vec3 t, out vec3 s) {
  int a = int(rows.x);
  int b = int(rows.y);
  q = mocapSlerp(mocapTexel(bone, 0, a), mocapTexel(bone, 0, b), rows.z);
  vec4 place = mix(mocapTexel(bone, 1, a), mocapTexel(bone, 1, b), rows.z);
  t = place.xyz;
  s = mocapTexels > 2 ? mix(mocapTexel(bone, 2, a), mocapTexel(bone, 2, b), rows.z).xyz : vec3(place.w);
}

void mocapPose(inout vec3 position_, inout vec3 normal_, inout vec3 tangent_) {
  vec3 now = mocapRows(mocapNow);
  vec3 before = mocapRows(mocapBefore);
  float share = clamp((mocapTime - mocapFade.x) * mocapFade.y, 0.0, 1.0);
  vec3 p = vec3(0.0);
  vec3 n = vec3(0.0);
  vec3 g = vec3(0.0);
  for (int k = 0; k < 4; k++) {
    float weight = skinWeight[k];
    if (weight <= 0.0) continue;
    int joint = int(skinIndex[k] + 0.5);
    vec4 r0 = texelFetch(mocapSkin, ivec2(joint, 2), 0);
    vec4 r1 = texelFetch(mocapSkin, ivec2(joint, 3), 0);
    vec4 r2 = texelFetch(mocapSkin, ivec2(joint, 4), 0);
    vec4 v = vec4(position_, 1.0);
    vec3 a = vec3(dot(r0, v), dot(r1, v), dot(r2, v));
    vec3 b = vec3(dot(r0.xyz, normal_), dot(r1.xyz, normal_), dot(r2.xyz, normal_));
    vec3 c = vec3(dot(r0.xyz, tangent_), dot(r1.xyz, tangent_), dot(r2.xyz, tangent_));
    int bone = int(texelFetch(mocapSkin, ivec2(joint, 1), 0).x);
    for (int level = 0; level < 128 && bone >= 0; level++) {
      vec4 q;
      vec3 t;
      vec3 s;
      mocapRead(bone, now, q, t, s);
      if (share < 1.0) {
        vec4 q0;
        vec3 t0;
        vec3 s0;
        mocapRead(bone, before, q0, t0, s0);
        q = mocapSlerp(q0, q, share);
        t = mix(t0, t, share);
        s = mix(s0, s, share);
      }
      a = mocapTurn(q, a * s) + t;
      b = mocapTurn(q, b / s);
      c = mocapTurn(q, c * s);
      bone = int(texelFetch(mocapSkin, ivec2(bone, 0), 0).x);
    }
    p += weight * a;
    n += weight * normalize(b);
    g += weight * c;
  }
  position_ = p;
  normal_ = n;
  tangent_ = g;
}
`;

/** Many of one character. Add it to the scene where the character would stand; each has a matrix of its own in its frame. */
export class MapCrowd extends Group {
  /**
   * @param {import("three").Object3D} character what GLTFLoader made of the character's file (gltf.scene); it is not changed
   * @param {TransformMap} map
   * @param {number} count
   */
  constructor(character, map, count) {
    super();
    this.map = map;
    this.count = count;
    this.now = 0;
    this._counted = 0;
    this._time = { value: 0 };
    const attribute = (size) => {
      const made = new InstancedBufferAttribute(new Float32Array(count * size), size);
      made.setUsage(DynamicDrawUsage);
      return made;
    };
    this._now = attribute(4);
    this._before = attribute(4);
    this._fade = attribute(2);
    this._matrices = attribute(16);
    this._states = [];
    const first = map.clips[0];
    for (let i = 0; i < count; i++) {
      const play = { clip: first, speed: 1, start: 0, held: 0, loop: first.loop };
      this._states.push({ now: play, before: play, fadeStart: 0, fade: 0 });
      new Matrix4().toArray(this._matrices.array, i * 16);
      this._write(i);
    }
    character.updateMatrixWorld(true);
    character.traverse((object) => {
      if (object.isMesh && !object.isInstancedMesh) this._add(object, character);
    });
    if (this.children.length === 0) throw new Error("The character has no mesh to play the map on.");
  }

  /** Play a clip from `time` (seconds of the clip) on; over `fade` seconds from what is played now. `loop` as the clip says by default. */
  setClip(i, which, { time = 0, speed = 1, fade = 0, loop } = {}) {
    const state = this._states[i];
    const clip = this.map.clip(which);
    if (fade > 0 && this._share(state) >= 0.5) state.before = state.now; // else the fade before is broken off: what it began with fades out
    state.now = { clip, speed, loop: loop ?? clip.loop, held: time, start: speed === 0 ? 0 : this.now - time / speed };
    state.fade = fade;
    state.fadeStart = this.now;
    this._write(i);
  }

  /** Change the speed of what is played, without a jump. */
  setSpeed(i, speed) {
    const state = this._states[i];
    const held = this.timeOf(i);
    state.now = { ...state.now, speed, held, start: speed === 0 ? 0 : this.now - held / speed };
    this._write(i);
  }

  /** Seconds into the clip that is played, before looping. */
  timeOf(i) {
    return this._timeIn(this._states[i].now);
  }

  /** Where an instance stands. */
  setMatrixAt(i, matrix) {
    matrix.toArray(this._matrices.array, i * 16);
    this._matrices.needsUpdate = true;
    for (const mesh of this.children) mesh.boundingSphere = null;
  }

  /** Go on by so many seconds. Nothing is done for single instances. */
  update(seconds) {
    this.now += seconds;
    if (this.now - this._counted > REBASE) this._rebase();
    this._time.value = this.now - this._counted;
  }

  /** Where a bone of an instance is, in the crowd's frame: for what it holds in its hand. */
  boneMatrix(i, name, target = new Matrix4()) {
    const bone = this.map.index.get(name);
    if (bone === undefined) throw new Error(`The map has no bone "${name}".`);
    target.fromArray(this._matrices.array, i * 16);
    return target.multiply(this.map.worlds(this.poseOf(i))[bone]);
  }

  /** The local transforms of an instance's bones, as TransformMap.pose gives them. */
  poseOf(i) {
    const state = this._states[i];
    const share = this._share(state);
    const { now, before } = state;
    if (share >= 1) return this.map.pose({ ...now.clip, loop: now.loop }, this._timeIn(now));
    return this.map.pose({ ...before.clip, loop: before.loop }, this._timeIn(before), { ...now.clip, loop: now.loop }, this._timeIn(now), share);
  }

  dispose() {
    for (const mesh of this.children) {
      mesh.geometry.dispose();
      for (const material of [mesh.material, mesh.customDepthMaterial, mesh.customDistanceMaterial].flat()) material?.dispose();
      mesh.userData.mocapSkin.dispose();
      mesh.dispose();
    }
    this.clear();
  }

  _timeIn(play) {
    return play.speed === 0 ? play.held : (this.now - play.start) * play.speed;
  }

  _share(state) {
    return state.fade > 0 ? Math.min((this.now - state.fadeStart) / state.fade, 1) : 1;
  }

  _write(i) {
    const state = this._states[i];
    const put = (attribute, { clip, speed, start, held, loop }) => {
      const last = clip.frames - 1;
      const rate = clip.fps * speed;
      const period = last / Math.abs(rate);
      // counted from the loop that is going on: small numbers are exact in single precision
      const began = loop && last > 0 && speed !== 0 ? start + Math.floor((this.now - start) / period) * period : start;
      attribute.setXYZW(i, clip.row, loop ? last : -last, rate, speed === 0 ? held * clip.fps : began - this._counted);
      attribute.needsUpdate = true;
    };
    put(this._now, state.now);
    put(this._before, state.before);
    const fades = state.fade > 0;
    this._fade.setXY(i, fades ? state.fadeStart - this._counted : -1e6, fades ? 1 / state.fade : 1);
    this._fade.needsUpdate = true;
  }

  /** Count times from now on. */
  _rebase() {
    this._counted = this.now;
    this._states.forEach((state, i) => {
      if (this._share(state) >= 1) state.fade = 0;
      this._write(i);
    });
  }

  _add(mesh, character) {
    const { joints, binds, radius } = this._skin(mesh, character);
    const geometry = new BufferGeometry();
    geometry.index = mesh.geometry.index;
    Object.assign(geometry.attributes, mesh.geometry.attributes);
    geometry.groups = mesh.geometry.groups;
    geometry.drawRange = { ...mesh.geometry.drawRange };
    if (!mesh.isSkinnedMesh) {
      const vertices = geometry.attributes.position.count;
      geometry.setAttribute("skinIndex", new Uint16BufferAttribute(new Uint16Array(vertices * 4), 4));
      geometry.setAttribute("skinWeight", new Float32BufferAttribute(new Float32Array(vertices * 4).map((_, i) => (i % 4 ? 0 : 1)), 4));
    }
    geometry.setAttribute("mocapNow", this._now);
    geometry.setAttribute("mocapBefore", this._before);
    geometry.setAttribute("mocapFade", this._fade);
    const box = this.map.bounds.clone().expandByScalar(radius);
    geometry.boundingBox = box;
    geometry.boundingSphere = box.getBoundingSphere(new Sphere());
    const skin = skinTexture(this.map, joints, binds);
    const uniforms = {
      mocapMap: { value: this.map.texture },
      mocapSkin: { value: skin },
      mocapTime: this._time,
      mocapTexels: { value: this.map.texels },
      mocapHeight: { value: this.map.json.height },
    };
    const materials = [mesh.material].flat().map((material) => patched(material.clone(), uniforms));
    const made = new InstancedMesh(geometry, Array.isArray(mesh.material) ? materials : materials[0], 0);
    made.instanceMatrix = this._matrices;
    made.count = this.count;
    made.name = mesh.name;
    made.castShadow = mesh.castShadow;
    made.receiveShadow = mesh.receiveShadow;
    made.customDepthMaterial = patched(new MeshDepthMaterial({ depthPacking: RGBADepthPacking }), uniforms);
    made.customDistanceMaterial = patched(new MeshDistanceMaterial(), uniforms);
    made.raycast = () => {};
    made.userData.mocapSkin = skin;
    made.userData.mocapUniforms = uniforms;
    this.add(made);
  }

  /** The bones that a mesh hangs on: their numbers in the map, bind matrices, and how far its vertices reach from them. */
  _skin(mesh, character) {
    const joints = [];
    const binds = [];
    if (mesh.isSkinnedMesh) {
      mesh.skeleton.bones.forEach((bone, k) => {
        const index = this.map.index.get(bone.name);
        if (index === undefined) throw new Error(`The map has no bone "${bone.name}"; it was written for another character.`);
        joints.push(index);
        binds.push(mesh.skeleton.boneInverses[k].clone().multiply(mesh.bindMatrix));
      });
    } else {
      let holder = mesh;
      while (holder !== character && holder && !this.map.index.has(holder.name)) holder = holder.parent;
      const held = holder && holder !== character;
      joints.push(held ? this.map.index.get(holder.name) : -1);
      binds.push((held ? holder : character).matrixWorld.clone().invert().multiply(mesh.matrixWorld));
    }
    return { joints, binds, radius: reach(mesh, joints, binds, this.map) };
  }
}

/** How far vertices are from the bones that move them, in the scene's unit: what bounds of bones have to grow by. */
function reach(mesh, joints, binds, map) {
  const position = mesh.geometry.attributes.position;
  const { skinIndex, skinWeight } = mesh.geometry.attributes;
  const sizes = map.worlds(map.pose(map.clips[0], 0)).map((m) => m.getMaxScaleOnAxis());
  const at = new Vector3();
  let far = 0;
  for (let v = 0; v < position.count; v++) {
    for (let k = 0; k < (mesh.isSkinnedMesh ? 4 : 1); k++) {
      if (mesh.isSkinnedMesh && !(skinWeight.getComponent(v, k) > 0)) continue;
      const joint = mesh.isSkinnedMesh ? skinIndex.getComponent(v, k) : 0;
      at.fromBufferAttribute(position, v).applyMatrix4(binds[joint]);
      far = Math.max(far, at.length() * (sizes[joints[joint]] ?? 1));
    }
  }
  return far;
}

function skinTexture(map, joints, binds) {
  const width = Math.max(joints.length, map.parents.length);
  const data = new Float32Array(width * 5 * 4);
  map.parents.forEach((parent, bone) => (data[bone * 4] = parent));
  joints.forEach((bone, joint) => {
    data[(width + joint) * 4] = bone;
    const e = binds[joint].elements;
    for (let row = 0; row < 3; row++) data.set([e[row], e[4 + row], e[8 + row], e[12 + row]], ((2 + row) * width + joint) * 4);
  });
  const texture = new DataTexture(data, width, 5, RGBAFormat, FloatType);
  texture.needsUpdate = true;
  return texture;
}

/** A material whose vertices move as their instance plays. */
function patched(material, uniforms) {
  const before = material.onBeforeCompile;
  material.onBeforeCompile = (shader, renderer) => {
    before?.call(material, shader, renderer);
    Object.assign(shader.uniforms, uniforms);
    shader.vertexShader = shader.vertexShader
      .replace("#include <common>", `#include <common>\n${skinningGLSL}\nbool mocapDone = false;\nvec3 mocapPlace;`)
      .replace(
        "#include <beginnormal_vertex>",
        `#include <beginnormal_vertex>
        mocapPlace = position;
        #ifdef USE_TANGENT
        mocapPose(mocapPlace, objectNormal, objectTangent);
        #else
        vec3 mocapTangent = vec3(1.0, 0.0, 0.0);
        mocapPose(mocapPlace, objectNormal, mocapTangent);
        #endif
        mocapDone = true;`,
      )
      .replace(
        "#include <begin_vertex>",
        `#include <begin_vertex>
        if (!mocapDone) {
          mocapPlace = position;
          vec3 mocapNormal = vec3(0.0, 0.0, 1.0);
          vec3 mocapTangent2 = vec3(1.0, 0.0, 0.0);
          mocapPose(mocapPlace, mocapNormal, mocapTangent2);
        }
        transformed = mocapPlace;`,
      );
  };
  material.customProgramCacheKey = () => `mocap ${material.type}`;
  return material;
}
