// SPDX-License-Identifier: GPL-3.0-or-later
// Foot speed over time, and when feet stand; also what is dragged to go to another time.
const COLORS = { left: "#43c59e", right: "#f5a65b" };
const FONT = "11px system-ui, sans-serif";

export class Plot {
  constructor(holder, onSeek) {
    this.holder = holder;
    this.canvas = document.createElement("canvas");
    this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute("aria-label", "Speed of the feet and when they stand, over the clip");
    holder.append(this.canvas);
    this.data = null;
    this.before = null;
    this.time = 0;
    const seek = (event) => {
      const box = holder.getBoundingClientRect();
      onSeek(Math.min(Math.max((event.clientX - box.left - this.left) / (box.width - this.left - this.right), 0), 1));
    };
    holder.addEventListener("pointerdown", (event) => {
      holder.setPointerCapture(event.pointerId);
      seek(event);
      this.dragging = true;
    });
    holder.addEventListener("pointermove", (event) => this.dragging && seek(event));
    for (const end of ["pointerup", "pointercancel"]) holder.addEventListener(end, () => (this.dragging = false));
    new ResizeObserver(() => this._resize()).observe(holder);
  }

  left = 34;
  right = 4;

  show(data, before = null) {
    this.data = data;
    this.before = before;
    this._layer = null;
    this.draw(this.time);
  }

  _resize() {
    const scale = Math.min(devicePixelRatio || 1, 3);
    const { clientWidth: w, clientHeight: h } = this.holder;
    if (!w || !h) return;
    this.canvas.width = Math.round(w * scale);
    this.canvas.height = Math.round(h * scale);
    this.scale = scale;
    this._layer = null;
    this.draw(this.time);
  }

  draw(time) {
    this.time = time;
    if (!this.data || !this.scale) return;
    this._layer ??= this._paint();
    const c = this.canvas.getContext("2d");
    c.setTransform(1, 0, 0, 1, 0, 0);
    c.clearRect(0, 0, this.canvas.width, this.canvas.height);
    c.drawImage(this._layer, 0, 0);
    c.scale(this.scale, this.scale);
    const x = this._x(time);
    c.strokeStyle = "#fff";
    c.globalAlpha = 0.85;
    c.lineWidth = 1.5;
    c.beginPath();
    c.moveTo(x, 4);
    c.lineTo(x, this.holder.clientHeight - 2);
    c.stroke();
    c.globalAlpha = 1;
    for (const [side, foot] of Object.entries(this.data.feet)) {
      const i = Math.min(foot.speed.length - 1, Math.round((time / (this.data.duration || 1)) * (foot.speed.length - 1)));
      c.fillStyle = COLORS[side];
      c.beginPath();
      c.arc(x, this._y(foot.speed[i]), 3.2, 0, 7);
      c.fill();
    }
  }

  _x(t) {
    return this.left + (t / (this.data.duration || 1)) * (this.holder.clientWidth - this.left - this.right);
  }

  _y(v) {
    const bottom = this.holder.clientHeight - 34;
    return bottom - (Math.min(v, this.top) / this.top) * (bottom - 8);
  }

  _paint() {
    const layer = document.createElement("canvas");
    layer.width = this.canvas.width;
    layer.height = this.canvas.height;
    const c = layer.getContext("2d");
    c.scale(this.scale, this.scale);
    const w = this.holder.clientWidth, h = this.holder.clientHeight;
    const sets = [this.data, this.before].filter(Boolean);
    const all = sets.flatMap((set) => Object.values(set.feet).flatMap((foot) => [...foot.speed])).sort((a, b) => a - b);
    const high = all.length ? all[Math.floor((all.length - 1) * 0.995)] : 1;
    const unit = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50].find((u) => u * 3 >= high) ?? 100;
    this.top = Math.max(unit, Math.ceil(high / unit) * unit);
    c.font = FONT;
    c.textBaseline = "middle";
    for (let v = 0; v <= this.top + 1e-9; v += unit) {
      const y = Math.round(this._y(v)) + 0.5;
      c.strokeStyle = v === 0 ? "#39404d" : "#252a33";
      c.beginPath();
      c.moveTo(this.left, y);
      c.lineTo(w - this.right, y);
      c.stroke();
      c.fillStyle = "#6b7383";
      c.textAlign = "right";
      c.fillText(String(Math.round(v * 10) / 10), this.left - 7, y);
    }
    c.save();
    c.beginPath();
    c.rect(this.left, 0, w - this.left - this.right, h);
    c.clip();
    sets.reverse().forEach((set) => {
      const faint = set === this.before;
      for (const [side, foot] of Object.entries(set.feet)) {
        c.strokeStyle = COLORS[side];
        c.globalAlpha = faint ? 0.55 : 1;
        c.lineWidth = faint ? 1.1 : 1.7;
        c.setLineDash(faint ? [4, 3] : []);
        c.beginPath();
        foot.speed.forEach((v, i) => {
          const x = this.left + (set.times[i] / (this.data.duration || 1)) * (w - this.left - this.right);
          c[i ? "lineTo" : "moveTo"](x, this._y(v));
        });
        c.stroke();
      }
    });
    c.restore();
    c.globalAlpha = 1;
    Object.entries(this.data.feet).forEach(([side, foot], k) => {
      const y = h - 19 + k * 10;
      c.fillStyle = "#1f232b";
      c.fillRect(this.left, y, w - this.left - this.right, 6);
      c.fillStyle = COLORS[side];
      for (const [from, to] of foot.contacts) c.fillRect(this._x(from), y, Math.max(2, this._x(to) - this._x(from)), 6);
      c.textAlign = "right";
      c.fillText(side === "left" ? "L" : "R", this.left - 7, y + 3);
    });
    return layer;
  }
}
