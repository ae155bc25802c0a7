// SPDX-License-Identifier: GPL-3.0-or-later
// The room: light, ground, camera.
import {
  ACESFilmicToneMapping, CircleGeometry, Color, DirectionalLight, Fog, HemisphereLight, Mesh, PCFShadowMap, PerspectiveCamera, Scene,
  ShaderMaterial, ShadowMaterial, Vector3, WebGLRenderer,
} from "three";
import { OrbitControls } from "three/addons/controls/OrbitControls.js";

const BACK = 0x14171c;

export class Stage {
  constructor(holder) {
    this.holder = holder;
    this.renderer = new WebGLRenderer({ antialias: true, powerPreference: "high-performance" });
    this.renderer.toneMapping = ACESFilmicToneMapping;
    this.renderer.toneMappingExposure = 1.15;
    this.renderer.shadowMap.enabled = true;
    this.renderer.shadowMap.type = PCFShadowMap;
    this.canvas = this.renderer.domElement;
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("aria-label", "The character in three dimensions: drag to turn, scroll to come closer");
    holder.prepend(this.canvas);

    this.scene = new Scene();
    this.scene.background = new Color(BACK);
    this.scene.fog = new Fog(BACK, 14, 46);
    this.camera = new PerspectiveCamera(34, 1, 0.02, 300);
    this.controls = new OrbitControls(this.camera, this.canvas);
    this.controls.enableDamping = true;
    this.controls.dampingFactor = 0.12;
    this.controls.maxPolarAngle = 1.62;
    this.controls.minDistance = 0.3;
    this.controls.maxDistance = 60;

    this.scene.add(new HemisphereLight(0xdfe8ff, 0x3a3840, 1.9));
    this.sun = new DirectionalLight(0xfff3e2, 2.6);
    this.sun.castShadow = true;
    this.sun.shadow.mapSize.set(2048, 2048);
    this.sun.shadow.bias = -0.0004;
    this.sun.shadow.normalBias = 0.012;
    this.sun.shadow.radius = 5;
    const rim = new DirectionalLight(0x8fb4ff, 1.1);
    rim.position.set(-3, 3, -5);
    this.scene.add(this.sun, this.sun.target, rim);

    this.ground = grid();
    this.shadow = new Mesh(new CircleGeometry(60, 48).rotateX(-Math.PI / 2), new ShadowMaterial({ opacity: 0.42 }));
    this.shadow.receiveShadow = true;
    this.shadow.position.y = 0.0005;
    this.scene.add(this.ground, this.shadow);
    this.followed = new Vector3();
    this.follows = true;
    new ResizeObserver(() => this.resize()).observe(holder);
    this.resize();
  }

  resize() {
    const { clientWidth: w, clientHeight: h } = this.holder;
    if (!w || !h) return;
    this.renderer.setPixelRatio(Math.min(devicePixelRatio || 1, 2));
    this.renderer.setSize(w, h, false);
    this.camera.aspect = w / h;
    this.camera.updateProjectionMatrix();
  }

  /** Look at what stands at `center`, `height` tall and `width` wide. */
  frame(center, height, width) {
    const half = (this.camera.fov * Math.PI) / 360;
    const far = Math.max((height * 0.72) / Math.tan(half), (width * 0.66) / (Math.tan(half) * this.camera.aspect));
    this.followed.copy(center).setY(0);
    this.controls.target.set(center.x, height * 0.5, center.z);
    this.camera.position.copy(this.controls.target).add(new Vector3(0.42, 0.16, 1).normalize().multiplyScalar(far));
    this.size = Math.max(height, width);
    const s = this.sun.shadow.camera;
    s.left = s.bottom = -1.6 * this.size;
    s.right = s.top = 1.6 * this.size;
    s.near = 0.1;
    s.far = 10 * this.size;
    s.updateProjectionMatrix();
    this.scene.fog.near = Math.max(14, far * 2);
    this.scene.fog.far = Math.max(46, far * 6);
    this.controls.update();
  }

  /** Go along with a point over the ground. */
  follow(point, seconds) {
    const share = seconds > 0 ? 1 - Math.exp(-5 * seconds) : 1;
    const dx = (point.x - this.followed.x) * share;
    const dz = (point.z - this.followed.z) * share;
    this.followed.x += dx;
    this.followed.z += dz;
    if (this.follows) {
      this.camera.position.x += dx;
      this.camera.position.z += dz;
      this.controls.target.x += dx;
      this.controls.target.z += dz;
    }
    const size = this.size ?? 2;
    this.sun.target.position.set(this.followed.x, 0, this.followed.z);
    this.sun.position.set(this.followed.x + 1.4 * size, 2.8 * size, this.followed.z + 1.8 * size);
    this.shadow.position.x = this.ground.position.x = this.followed.x;
    this.shadow.position.z = this.ground.position.z = this.followed.z;
    this.ground.material.uniforms.center.value.set(this.followed.x, this.followed.z);
  }

  render() {
    this.controls.update();
    this.renderer.render(this.scene, this.camera);
  }
}

/** A grid of a metre, finer lines between, that fades into the background. */
function grid() {
  const material = new ShaderMaterial({
    transparent: true,
    depthWrite: false,
    uniforms: { center: { value: { x: 0, y: 0, set(x, y) { this.x = x; this.y = y; } } }, reach: { value: 16 } },
    vertexShader: "varying vec2 at; void main() { vec4 w = modelMatrix * vec4(position, 1.0); at = w.xz; gl_Position = projectionMatrix * viewMatrix * w; }",
    fragmentShader: `
      varying vec2 at;
      uniform vec2 center;
      uniform float reach;
      float lines(vec2 p, float wide) {
        vec2 d = fwidth(p);
        vec2 a = abs(fract(p - 0.5) - 0.5);
        vec2 l = 1.0 - smoothstep(d * wide * 0.5, d * (wide * 0.5 + 1.0), a);
        return max(l.x, l.y) * clamp(1.0 - max(d.x, d.y) * 2.0, 0.0, 1.0);
      }
      void main() {
        float fade = 1.0 - smoothstep(reach * 0.25, reach, distance(at, center));
        float alpha = max(lines(at, 1.2) * 0.2, lines(at * 4.0, 0.8) * 0.06) * fade;
        gl_FragColor = vec4(vec3(0.62, 0.69, 0.82), alpha);
      }`,
  });
  const mesh = new Mesh(new CircleGeometry(40, 48).rotateX(-Math.PI / 2), material);
  mesh.renderOrder = -1;
  return mesh;
}
