// SPDX-License-Identifier: GPL-3.0-or-later
import { Vector3 } from "three";
import { Actor } from "./actor.js";
import { bytes, embedded, opened, parse } from "./data.js";
import { h, ICONS, seconds } from "./dom.js";
import { Plot } from "./plot.js";
import { Stage } from "./stage.js";

const BEFORE = 0xb48cf2;

class Viewer {
  constructor(root) {
    this.state = { clip: 0, time: 0, playing: true, speed: 1, fade: 0.3, compare: "side", mesh: true, bones: false, trails: true, follow: true };
    this.from = null; // what is faded out: { clip, time, left }
    this.before = new Map(); // clip -> actor
    this._page(root);
    this.stage = new Stage(this.el.stage);
    this.plot = new Plot(this.el.plot, (share) => this.seek(share * this.duration));
    this._events();
    let last = performance.now();
    const tick = (now) => {
      this._tick(Math.min(Math.max((now - last) / 1000, 0), 0.1));
      last = now;
      requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
  }

  get duration() {
    return this.actor?.clips[this.state.clip]?.duration ?? 0;
  }

  get rate() {
    return this.info(this.state.clip).rate ?? 30;
  }

  info(clip) {
    const name = this.actor?.clips[clip]?.name;
    return this.data?.clips?.find((one) => one.name === name) ?? {};
  }

  // --- what is shown ---

  async show(data) {
    const main = await parse(data.buffer ?? bytes(data.character.glb));
    if (data.extra?.length) main.animations.push(...data.extra);
    for (const actor of [this.actor, ...this.before.values()].filter(Boolean)) actor.group.removeFromParent();
    this.before.clear();
    this.data = data;
    this.actor = new Actor(main, { feet: data.feet });
    this.stage.scene.add(this.actor.group);
    this.sources = await Promise.all((data.sources ?? []).map(async (one) => ({ ...one, gltf: await parse(bytes(one.glb)) })));
    const actors = this.sources.map((one) => {
      const actor = new Actor(one.gltf, { color: BEFORE, feet: one.feet });
      actor.label = one.name;
      actor.group.visible = false;
      this.stage.scene.add(actor.group);
      return actor;
    });
    this.actor.clips.forEach((_, k) => {
      const source = this.info(k).before;
      if (source != null && actors[source]) this.before.set(k, actors[source]);
    });
    this.state.bones = !this.actor.hasMesh;
    this.el.bones.checked = this.state.bones;
    document.title = `${data.title ?? data.character?.name ?? "Character"} – Mocap`;
    this.el.title.textContent = data.title ?? data.character?.name ?? "Character";
    this.el.empty.hidden = true;
    this._listClips();
    if (this.actor.clips.length) this.choose(0, 0);
    else this._say("This character has no clips; open it together with a .clip.json file.");
    this._arrange();
    this.frame();
  }

  choose(clip, fade = this.state.fade) {
    const { state, actor } = this;
    if (!actor.clips[clip]) return;
    this.from = fade > 0 && clip !== state.clip ? { clip: state.clip, time: state.time, left: fade, fade } : null;
    state.clip = clip;
    state.time = 0;
    this.found = actor.study(clip, this.info(clip).contacts);
    actor.layTrails(this.found);
    const source = this.source;
    if (source) source.layTrails(source.study(0, this.sources[this.info(clip).before]?.contacts));
    this.el.clips.querySelectorAll(".clip").forEach((button, k) => button.setAttribute("aria-pressed", k === clip));
    this.el.clips.children[clip]?.scrollIntoView({ block: "nearest", inline: "nearest" });
    this.el.sub.textContent = actor.clips[clip].name;
    this._facts();
    this._arrange();
    this._pose();
  }

  /** The actor that stands for the clip before. */
  get source() {
    return this.before.get(this.state.clip);
  }

  seek(time) {
    this.from = null;
    this.state.time = Math.min(Math.max(time, 0), this.duration);
    this._pose();
  }

  play(playing = !this.state.playing) {
    this.state.playing = playing;
    this.el.play.innerHTML = playing ? ICONS.pause : ICONS.play;
    this.el.play.setAttribute("aria-label", playing ? "Pause" : "Play");
  }

  frame() {
    const { actor, source } = this;
    if (!actor) return;
    this._pose();
    const beside = this._beside();
    const center = actor.place(new Vector3());
    const height = Math.max(actor.height, beside ? source.height : 0);
    if (beside) center.lerp(source.place(new Vector3()), 0.5);
    this.stage.frame(center, height, beside ? this.gap * 2 : actor.height * 0.8);
  }

  _beside() {
    return this.source && this.state.compare === "side";
  }

  _arrange() {
    const { actor, source, state } = this;
    if (!actor) return;
    const compare = source ? state.compare : "off";
    this.gap = 0.62 * Math.max(actor.height, source?.height ?? 0);
    for (const one of new Set(this.before.values())) one.group.visible = one === source && compare !== "off";
    actor.group.position.x = compare === "side" ? this.gap / 2 : 0;
    if (source && this.found) {
      // both begin at one place, or beside each other
      const apart = this.found.start.clone().sub(source.study(0).start);
      source.group.position.set(apart.x - (compare === "side" ? this.gap / 2 : 0), 0, apart.z);
    }
    for (const mesh of actor.meshes) mesh.visible = state.mesh;
    actor.setBones(state.bones || !state.mesh, state.mesh && actor.hasMesh);
    source?.setBones(true, compare === "over");
    for (const one of [actor, source]) if (one) one.trails.visible = state.trails;
    this.el.compareSection.hidden = !source;
    for (const tag of [this.el.tagBefore, this.el.tagAfter]) tag.hidden = compare !== "side";
    if (source) this.el.tagBefore.textContent = `Before · ${source.label}`;
    this.el.tagAfter.textContent = `After · ${this.data?.character?.name ?? "character"}`;
    this.stage.follows = state.follow;
    if (this.found) this.plot.show(this.found, source && compare !== "off" ? source.study(0) : null);
    this.el.legendBefore.hidden = !source || compare === "off";
  }

  // --- every frame ---

  _tick(delta) {
    const { state, actor } = this;
    if (actor?.clips.length) {
      if (state.playing) {
        const step = delta * state.speed;
        state.time += step;
        if (state.time > this.duration) state.time = this.duration > 0 ? state.time % this.duration : 0;
        if (this.from) {
          this.from.time = (this.from.time + step) % (actor.clips[this.from.clip].duration || 1);
          this.from.left -= delta;
          if (this.from.left <= 0) this.from = null;
        }
      }
      this._pose(delta);
    }
    this.stage.render();
    if (this._beside()) this._tags();
  }

  _pose(delta = 0) {
    const { actor, source, state, from } = this;
    if (!actor) return;
    if (!actor.clips.length) return void actor.drawBones();
    const share = from ? 1 - from.left / from.fade : 1;
    actor.pose(state.clip, state.time, from?.clip ?? -1, from?.time ?? 0, share);
    actor.drawBones();
    actor.drawTrails(state.time);
    if (source?.group.visible) {
      source.pose(0, state.time);
      source.drawBones();
      source.drawTrails(state.time);
    }
    const at = actor.place(this._at ??= new Vector3());
    if (this._beside()) at.lerp(source.place(this._other ??= new Vector3()), 0.5);
    this.stage.follow(at, delta);
    this.plot.draw(state.time);
    const { scrub, clock, frameNumber } = this.el;
    const done = this.duration ? state.time / this.duration : 0;
    if (document.activeElement !== scrub || state.playing) scrub.value = done;
    scrub.style.setProperty("--done", `${done * 100}%`);
    clock.textContent = seconds(state.time);
    frameNumber.textContent = ` / ${seconds(this.duration)} s`;
    this.el.frames.textContent = `frame ${Math.round(state.time * this.rate)}`;
  }

  _tags() {
    const at = new Vector3();
    const narrow = this.el.stage.clientWidth < 620; // then each keeps to its half
    for (const [actor, tag, low, high] of [[this.source, this.el.tagBefore, 12, narrow ? 26 : 88], [this.actor, this.el.tagAfter, narrow ? 74 : 12, 88]]) {
      actor.place(at).project(this.stage.camera);
      tag.style.left = `${Math.min(Math.max((at.x * 0.5 + 0.5) * 100, narrow ? Math.max(low, 25) : low), high)}%`;
    }
  }

  // --- the page ---

  _page(root) {
    const el = (this.el = {});
    const button = (name, label, act) => h("button.icon", { "aria-label": label, title: label, html: ICONS[name], onclick: act });
    const toggle = (key, label, letter) => {
      el[key] = h("input", { type: "checkbox", onchange: (event) => this._set(key, event.target.checked) });
      el[key].checked = this.state[key];
      return h("label.switch", {}, label, h("kbd", {}, letter), el[key]);
    };
    const file = h("input", { type: "file", multiple: true, accept: ".glb,.vrm,.gltf,.json", hidden: true, onchange: () => this.open(file.files) });
    el.title = h("h1", {}, "Mocap");
    el.sub = h("span.sub", {});
    el.stage = h("main", { id: "stage" });
    el.tagBefore = h("div.tag.before", { hidden: true });
    el.tagAfter = h("div.tag", { hidden: true });
    el.empty = h("div.message", { hidden: true }, h("div", {}, h("strong", {}, "Drop a character here"), "A .glb or .vrm file with its clips, or with .clip.json files beside it"));
    el.clips = h("div.clips", { role: "group", "aria-label": "Clips" });
    el.facts = h("dl.facts");
    el.notes = h("ul.notes");
    el.notesSection = h("section", { hidden: true }, h("h2", {}, "Notes"), el.notes);
    el.fadeText = h("output", {}, "0.30 s");
    el.fade = h("input", { type: "range", min: 0, max: 1.5, step: 0.05, value: 0.3, "aria-label": "Seconds of a cross-fade", oninput: () => this._fade() });
    el.compare = h("div.choice", { role: "group", "aria-label": "Before and after" });
    for (const [key, label] of [["side", "Side by side"], ["over", "Overlaid"], ["off", "Off"]]) {
      el.compare.append(h("button", { "aria-pressed": key === this.state.compare, "data-key": key, onclick: () => this._compare(key) }, label));
    }
    el.compareSection = h("section", { hidden: true }, h("h2", {}, "Before and after"), el.compare);
    el.play = button("pause", "Pause", () => this.play());
    el.play.classList.add("play");
    el.clock = h("b", {}, "0.00");
    el.frameNumber = document.createTextNode("");
    el.frames = h("span.clock.optional", {});
    el.scrub = h("input", { type: "range", min: 0, max: 1, step: "any", value: 0, "aria-label": "Time", oninput: () => { this.play(false); this.seek(el.scrub.value * this.duration); } });
    el.speed = h("select", { "aria-label": "Speed", onchange: () => (this.state.speed = Number(el.speed.value)) });
    for (const speed of [0.1, 0.25, 0.5, 1, 2]) el.speed.append(h("option", { value: speed, selected: speed === 1 }, `${speed}×`));
    el.legendBefore = h("span.dashed", { hidden: true, style: "--c: var(--soft)" }, "Before");
    el.plot = h("div", { id: "plot" });
    root.append(
      h("header", {}, h("div.mark", { html: ICONS.mark }), el.title, el.sub, h("div.space"), h("button.button", { onclick: () => this.frame(), "aria-label": "Frame the character", title: "Frame the character (F)", html: ICONS.frame }), h("button.button", { onclick: () => file.click(), html: `${ICONS.open}<span>Open</span>` }), file),
      el.stage,
      h("aside", {},
        h("section.clips-section", {}, h("h2", {}, "Clips"), el.clips),
        el.compareSection,
        h("section", {}, h("h2", {}, "Show"), h("div.views", {}, toggle("mesh", "Character", "M"), toggle("bones", "Skeleton", "S"), toggle("trails", "Foot trails", "T"), toggle("follow", "Follow", "C"))),
        h("section", {}, h("h2", {}, "Cross-fade"), h("div.row", {}, el.fade, el.fadeText)),
        h("section", {}, h("h2", {}, "Clip"), el.facts),
        el.notesSection),
      h("footer", {},
        h("div.transport", {}, el.play, button("back", "One frame back", () => this._step(-1)), button("on", "One frame on", () => this._step(1)), h("span.clock", {}, el.clock, el.frameNumber), el.frames, h("div.space"), h("div.legend.optional", {}, h("span", { style: "--c: var(--left)" }, "Left foot"), h("span", { style: "--c: var(--right)" }, "Right foot, m/s"), el.legendBefore), el.speed),
        h("div.row", {}, el.scrub),
        el.plot),
    );
    el.stage.append(el.tagBefore, el.tagAfter, el.empty);
  }

  _events() {
    addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || /INPUT|SELECT/.test(event.target.tagName)) return;
      const number = Number(event.key);
      const acts = {
        " ": () => this.play(), ArrowLeft: () => this._step(-1), ArrowRight: () => this._step(1), f: () => this.frame(),
        m: () => this._toggle("mesh"), s: () => this._toggle("bones"), t: () => this._toggle("trails"), c: () => this._toggle("follow"),
      };
      const act = number >= 1 ? () => this.actor && this.choose(number - 1) : acts[event.key.length === 1 ? event.key.toLowerCase() : event.key];
      if (!act || (event.key === " " && event.target.tagName === "BUTTON")) return;
      event.preventDefault();
      act();
    });
    const over = h("div.drop", { hidden: true });
    this.el.stage.append(over);
    addEventListener("dragover", (event) => { event.preventDefault(); over.hidden = false; });
    addEventListener("dragleave", (event) => { if (!event.relatedTarget) over.hidden = true; });
    addEventListener("drop", (event) => { event.preventDefault(); over.hidden = true; this.open(event.dataTransfer.files); });
  }

  async open(files) {
    try {
      const { name, buffer, clips } = await opened(files);
      if (!buffer && !this.data) throw new Error("Open the character's .glb file, with its clips.");
      const base = buffer ? { buffer, character: { name }, title: name } : this.data;
      await this.show({ ...base, extra: [...(buffer ? [] : (base.extra ?? [])), ...clips] });
    } catch (error) {
      this._say(`This cannot be opened: ${error.message}`);
    }
  }

  _say(text) {
    this.el.toast?.remove();
    this.el.toast = h("div.toast", { role: "alert" }, text);
    this.el.stage.append(this.el.toast);
    setTimeout(() => this.el.toast?.remove(), 7000);
  }

  _set(key, value) {
    this.state[key] = value;
    this._arrange();
  }

  _toggle(key) {
    this.el[key].checked = !this.state[key];
    this._set(key, !this.state[key]);
  }

  _compare(key) {
    this.state.compare = key;
    this.el.compare.querySelectorAll("button").forEach((button) => button.setAttribute("aria-pressed", button.dataset.key === key));
    this._arrange();
    this.frame();
  }

  _fade() {
    this.state.fade = Number(this.el.fade.value);
    this.el.fadeText.textContent = `${this.state.fade.toFixed(2)} s`;
    this.el.fade.style.setProperty("--done", `${(this.state.fade / 1.5) * 100}%`);
  }

  _step(frames) {
    this.play(false);
    const at = Math.round(this.state.time * this.rate) + frames;
    const last = Math.round(this.duration * this.rate);
    this.seek((((at % (last + 1)) + last + 1) % (last + 1)) / this.rate);
  }

  _listClips() {
    this.el.clips.replaceChildren(
      ...this.actor.clips.map((clip, k) =>
        h("button.clip", { "aria-pressed": false, title: clip.name, onclick: () => this.choose(k) }, h("span.name", {}, clip.name), h("span.time", {}, `${seconds(clip.duration)} s`))),
    );
    this._fade();
  }

  _facts() {
    const { actor, found } = this;
    const info = this.info(this.state.clip);
    const contacts = Object.values(found.feet).map((foot) => foot.contacts.length);
    const slides = Object.values(found.feet).flatMap((foot) => foot.contacts.flatMap(([a, b]) => [...foot.speed].filter((_, i) => found.times[i] >= a && found.times[i] <= b)));
    const rows = [
      ["Length", `${seconds(this.duration)} s`],
      ["Rate", info.rate ? `${Math.round(info.rate * 100) / 100} fps` : null],
      ["Bones", actor.joints.length],
      ["Steps", contacts.length ? contacts.join(" + ") : null],
      ["Standing feet move", slides.length ? `${((100 * slides.reduce((a, b) => a + b, 0)) / slides.length).toFixed(1)} cm/s` : null],
      ["Error", info.error_mm != null ? `${info.error_mm.toFixed(3)} mm` : null],
    ];
    this.el.facts.replaceChildren(...rows.filter(([, value]) => value != null).flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, String(value))]));
    const notes = info.notes ?? [];
    this.el.notesSection.hidden = notes.length === 0;
    this.el.notes.replaceChildren(...notes.map((note) => h("li", {}, note)));
  }
}

const viewer = (window.mocapViewer = new Viewer(document.getElementById("app")));
const data = embedded();
viewer.ready = data ? viewer.show(data).catch((error) => viewer._say(`The data in this page cannot be shown: ${error.message}`)) : Promise.resolve();
if (!data) viewer.el.empty.hidden = false;
