// SPDX-License-Identifier: GPL-3.0-or-later
// A character with its clips: posed at any time, with bones, trails and footprints drawn over it.
import {
  AnimationMixer, Box3, BufferAttribute, BufferGeometry, CircleGeometry, Color, DynamicDrawUsage, Float32BufferAttribute, Group, InstancedMesh, Line,
  LineBasicMaterial, Matrix4, MeshBasicMaterial, MeshStandardMaterial, OctahedronGeometry, Quaternion, Vector3,
} from "three";
import { footNames, study } from "./feet.js";

const UP = new Vector3(0, 1, 0);
export const LEFT = 0x43c59e;
export const RIGHT = 0xf5a65b;

export class Actor {
  /** @param gltf what GLTFLoader gives @param options { color, feet: { left, right } } */
  constructor(gltf, { color = 0xdde3ee, feet = null } = {}) {
    this.group = new Group();
    this.scene = gltf.scene;
    this.clips = gltf.animations;
    this.group.add(this.scene);
    this.mixer = new AnimationMixer(this.scene);
    this.meshes = [];
    const joints = new Set();
    this.scene.traverse((object) => {
      if (object.isMesh) {
        this.meshes.push(object);
        object.castShadow = object.receiveShadow = true;
        object.frustumCulled = false;
      }
      if (object.isSkinnedMesh) object.skeleton.bones.forEach((bone) => joints.add(bone));
    });
    const named = new Set(this.clips.flatMap((clip) => clip.tracks.map((track) => track.name.split(".")[0])));
    if (joints.size === 0) this.scene.traverse((object) => object !== this.scene && !object.isMesh && named.size && joints.add(object));
    this.joints = [...joints];
    this.hasMesh = this.meshes.length > 0;
    this.scene.updateMatrixWorld(true);
    this.hips = this._hips(named);
    const low = new Vector3(Infinity, Infinity, Infinity);
    const high = low.clone().negate();
    const at = new Vector3();
    for (const joint of this.joints) {
      at.setFromMatrixPosition(joint.matrixWorld);
      low.min(at);
      high.max(at);
    }
    for (const mesh of this.meshes) {
      const box = new Box3().setFromObject(mesh);
      if (!box.isEmpty() && box.max.y - box.min.y < 100) high.max(box.max);
    }
    this.height = this.joints.length ? Math.max((high.y - Math.min(low.y, 0)) * (this.hasMesh ? 1.02 : 1.07), 0.2) : 1.8;
    this.feet = footNames(this.joints, feet);
    this.studies = new Map();
    this._bones(color);
    this.trails = new Group();
    this.group.add(this.trails);
    this.actions = this.clips.map((clip) => {
      const action = this.mixer.clipAction(clip);
      action.play();
      action.setEffectiveWeight(0);
      return action;
    });
  }

  _hips(named) {
    const byName = this.joints.find((j) => /hips|pelvis/i.test(j.name));
    const moving = this.clips[0]?.tracks.find((track) => track.name.endsWith(".position"))?.name.slice(0, -9);
    return byName ?? this.joints.find((j) => j.name === moving) ?? this.joints.find((j) => named.has(j.name)) ?? this.scene;
  }

  /** Pose: the clips by number, seconds, and how much of the second. */
  pose(clip, time, from = -1, fromTime = 0, share = 1) {
    this.actions.forEach((action, k) => {
      const weight = k === clip ? share : k === from ? 1 - share : 0;
      action.enabled = weight > 0 || k === clip;
      action.setEffectiveWeight(k === clip && from === clip ? 1 : weight);
      if (k === from) action.time = Math.min(Math.max(fromTime, 0), this.clips[k].duration);
      if (k === clip) action.time = Math.min(Math.max(time, 0), this.clips[k].duration);
    });
    this.mixer.update(0);
    this.group.updateMatrixWorld(true);
  }

  place(target) {
    return target.setFromMatrixPosition(this.hips.matrixWorld);
  }

  /** Speeds, contacts and ways of the feet in a clip; found once. */
  study(clip, known) {
    if (!this.studies.has(clip)) this.studies.set(clip, study(this, clip, known));
    return this.studies.get(clip);
  }

  // --- bones ---

  _bones(color) {
    const links = this.joints.filter((j) => this.joints.includes(j.parent)).map((j) => [j.parent, j]);
    const shape = new OctahedronGeometry(1, 0);
    const p = shape.attributes.position;
    for (let i = 0; i < p.count; i++) {
      const y = p.getY(i); // a long diamond from 0 to 1 along y, thickest at an eighth
      p.setXYZ(i, p.getX(i), y > 0.5 ? 1 : y < -0.5 ? 0 : 0.14, p.getZ(i));
    }
    shape.computeVertexNormals();
    const material = new MeshStandardMaterial({ color, roughness: 0.55, flatShading: true, emissive: color, emissiveIntensity: 0.22 });
    this.bones = new InstancedMesh(shape, material, Math.max(links.length, 1));
    this.bones.frustumCulled = false;
    this.bones.castShadow = true;
    this.bones.instanceMatrix.setUsage(DynamicDrawUsage);
    this.links = links;
    this.group.add(this.bones);
  }

  setBones(shown, over) {
    this.bones.visible = shown;
    this.bones.material.depthTest = !over;
    this.bones.material.transparent = over;
    this.bones.castShadow = !over;
    this.bones.renderOrder = over ? 5 : 0;
  }

  drawBones() {
    if (!this.bones.visible) return;
    const a = new Vector3(), b = new Vector3(), q = new Quaternion(), m = new Matrix4(), s = new Vector3();
    const inverse = this.group.matrixWorld.clone().invert();
    this.links.forEach(([from, to], i) => {
      a.setFromMatrixPosition(from.matrixWorld).applyMatrix4(inverse);
      b.setFromMatrixPosition(to.matrixWorld).applyMatrix4(inverse);
      const length = b.distanceTo(a);
      const thick = Math.min(Math.max(length * 0.11, this.height * 0.0028), this.height * 0.02);
      q.setFromUnitVectors(UP, length > 1e-6 ? b.sub(a).divideScalar(length) : UP);
      this.bones.setMatrixAt(i, m.compose(a, q, s.set(thick, length, thick)));
    });
    this.bones.instanceMatrix.needsUpdate = true;
  }

  // --- feet ---

  /** Lay out the trails and footprints of a clip. */
  layTrails(found) {
    for (const child of [...this.trails.children]) {
      child.geometry.dispose();
      child.material.dispose();
      child.removeFromParent();
    }
    this.lines = [];
    for (const [side, foot] of Object.entries(found.feet)) {
      const color = new Color(side === "left" ? LEFT : RIGHT);
      const geometry = new BufferGeometry();
      geometry.setAttribute("position", new Float32BufferAttribute(foot.points, 3));
      const colors = new BufferAttribute(new Float32Array((foot.points.length / 3) * 4), 4);
      colors.setUsage(DynamicDrawUsage);
      geometry.setAttribute("color", colors);
      const line = new Line(geometry, new LineBasicMaterial({ vertexColors: true, transparent: true, depthWrite: false }));
      line.frustumCulled = false;
      this.lines.push({ colors, color });
      this.trails.add(line);
      if (foot.prints.length) {
        const prints = new InstancedMesh(
          new CircleGeometry(1, 28).rotateX(-Math.PI / 2),
          new MeshBasicMaterial({ color, transparent: true, opacity: 0.3, depthWrite: false }),
          foot.prints.length,
        );
        prints.frustumCulled = false;
        foot.prints.forEach(({ at, heading }, i) => {
          const m = new Matrix4().makeRotationY(heading);
          m.scale(new Vector3(this.height * 0.024, 1, this.height * 0.05)).setPosition(at.x, at.y + 0.004, at.z);
          prints.setMatrixAt(i, m);
        });
        this.trails.add(prints);
      }
    }
    this.trailTimes = found.times;
  }

  /** The part of the trails that is near in time is bright. */
  drawTrails(time) {
    if (!this.trails.visible || !this.lines) return;
    for (const { colors, color } of this.lines) {
      const array = colors.array;
      for (let i = 0; i < this.trailTimes.length; i++) {
        const apart = this.trailTimes[i] - time;
        const near = apart <= 0 ? Math.exp(apart * 2.2) : Math.exp(-apart * 9);
        array.set([color.r, color.g, color.b, 0.1 + 0.9 * near], i * 4);
      }
      colors.needsUpdate = true;
    }
  }
}
