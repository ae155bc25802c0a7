// SPDX-License-Identifier: GPL-3.0-or-later
// {plain, additive}: two clip files; what three.js makes of the first as an additive clip, beside the second.
import { readFileSync } from "node:fs";
import { answer, request } from "./common.mjs";
import { AnimationClip, AnimationUtils } from "three";

const asked = request();
const [plain, ours] = [asked.plain, asked.additive].map((path) => AnimationClip.parse(JSON.parse(readFileSync(path, "utf8"))[0]));
AnimationUtils.makeClipAdditive(plain, 0);
const listed = (clip) => Object.fromEntries(clip.tracks.map((t) => [t.name, { times: [...t.times], values: [...t.values] }]));
answer({ three: listed(plain), ours: listed(ours), blendModes: [plain.blendMode, ours.blendMode] });
