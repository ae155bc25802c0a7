// SPDX-License-Identifier: GPL-3.0-or-later
// Where feet go in a clip: ways, speeds, contacts.
import { Vector3 } from "three";

const RATE = 60;
const MOST = 3000; // samples of a clip
const SLOW = 0.28; // metres a second, of a person of 1.75 m: slower feet near the ground stand
const LOW = 0.045; // of the height: how far above its lowest place a standing foot may be
const SHORTEST = 0.06; // seconds

const SIDES = {
  left: /left|(^|[_.\- ])l([_.\- ]|$)|^[a-z]*_?l_|^L(?=[A-Z])|[a-z0-9]L$|_L$|^l(?=foot|toe|ankle|ball)/,
  right: /right|(^|[_.\- ])r([_.\- ]|$)|^[a-z]*_?r_|^R(?=[A-Z])|[a-z0-9]R$|_R$|^r(?=foot|toe|ankle|ball)/,
};

/** { left: [ankle, toes], right: ... } as objects: those that are named, else those that sound like it. */
export function footNames(joints, given) {
  const out = {};
  for (const side of ["left", "right"]) {
    if (given) {
      const found = (given[side] ?? []).map((name) => joints.find((j) => j.name === name)).filter(Boolean);
      if (found.length) out[side] = found;
      continue;
    }
    const ours = joints.filter((j) => SIDES[side].test(j.name) || SIDES[side].test(j.name.toLowerCase()));
    const foot = ours.find((j) => /foot|ankle/i.test(j.name) && !/ik|pole|target|ctrl/i.test(j.name));
    const toes = ours.find((j) => /toe|ball/i.test(j.name) && !/ik|pole|target|ctrl/i.test(j.name));
    if (foot) out[side] = toes ? [foot, toes] : [foot];
  }
  return out;
}

/** Sample a clip: { times, feet: { left: { points, speed, contacts, prints } } }. */
export function study(actor, clip, known = {}) {
  const { duration } = actor.clips[clip];
  const count = Math.max(2, Math.min(MOST, Math.round(duration * RATE) + 1));
  const times = Float32Array.from({ length: count }, (_, i) => (duration * i) / (count - 1));
  const step = duration / (count - 1) || 1 / RATE;
  const sides = Object.entries(actor.feet);
  const ways = sides.map(([, joints]) => joints.map(() => new Float32Array(count * 3)));
  const at = new Vector3();
  const inverse = actor.group.matrixWorld.clone().invert();
  let start = null;
  for (let i = 0; i < count; i++) {
    actor.pose(clip, times[i]);
    start ??= actor.place(new Vector3()).applyMatrix4(inverse);
    sides.forEach(([, joints], s) => joints.forEach((joint, k) => at.setFromMatrixPosition(joint.matrixWorld).applyMatrix4(inverse).toArray(ways[s][k], i * 3)));
  }
  const feet = {};
  const lowest = ways.flat().length ? ways.map((parts) => parts.map((way) => low(way))) : [];
  sides.forEach(([side], s) => {
    const speeds = ways[s].map((way) => speed(way, step));
    const size = actor.height / 1.75;
    // the slower of ankle and toes: a heel that lifts or toes that rise are still on the ground
    const slow = Float32Array.from({ length: count }, (_, i) => Math.min(...speeds.map((v) => v[i])));
    const standing = Array.from({ length: count }, (_, i) => ways[s].some((way, k) => speeds[k][i] < SLOW * size && way[i * 3 + 1] - lowest[s][k] < LOW * actor.height));
    const contacts = known?.[side] ?? spans(standing, times);
    const points = ways[s].at(-1);
    const prints = contacts.map(([from, to]) => {
      const mid = Math.min(count - 1, Math.round((0.5 * (from + to)) / step));
      const heel = new Vector3().fromArray(ways[s][0], mid * 3);
      const toe = new Vector3().fromArray(points, mid * 3);
      const ahead = toe.clone().sub(heel);
      return { at: new Vector3((heel.x + toe.x) / 2, Math.min(heel.y, toe.y) - Math.min(...lowest[s]), (heel.z + toe.z) / 2), heading: Math.atan2(ahead.x, ahead.z) };
    });
    feet[side] = { points, speed: slow, contacts, prints };
  });
  return { times, duration, feet, start };
}

function low(way) {
  let out = Infinity;
  for (let i = 1; i < way.length; i += 3) out = Math.min(out, way[i]);
  return out;
}

/** Metres a second, by central differences. */
function speed(way, step) {
  const count = way.length / 3;
  return Float32Array.from({ length: count }, (_, i) => {
    const a = Math.max(i - 1, 0), b = Math.min(i + 1, count - 1);
    return Math.hypot(way[b * 3] - way[a * 3], way[b * 3 + 1] - way[a * 3 + 1], way[b * 3 + 2] - way[a * 3 + 2]) / ((b - a) * step || 1);
  });
}

function spans(standing, times) {
  const out = [];
  let from = -1;
  standing.forEach((on, i) => {
    if (on && from < 0) from = i;
    if ((!on || i === standing.length - 1) && from >= 0) {
      const to = on ? i : i - 1;
      if (times[to] - times[from] >= SHORTEST) out.push([times[from], times[to]]);
      from = -1;
    }
  });
  return out;
}
