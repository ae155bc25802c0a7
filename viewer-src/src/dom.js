// SPDX-License-Identifier: GPL-3.0-or-later
/** Elements: h("button.icon", { onclick }, child, "text"). */
export function h(what, attributes = {}, ...children) {
  const [tag, ...classes] = what.split(".");
  const element = document.createElement(tag || "div");
  if (classes.length) element.className = classes.join(" ");
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "html") element.innerHTML = value;
    else if (name.startsWith("aria-")) element.setAttribute(name, String(value));
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child != null));
  return element;
}

const icon = (path) => `<svg viewBox="0 0 24 24" aria-hidden="true"><path d="${path}"/></svg>`;
export const ICONS = {
  play: icon("M7 4.5v15a1 1 0 0 0 1.5.9l12-7.5a1 1 0 0 0 0-1.8l-12-7.5A1 1 0 0 0 7 4.5z"),
  pause: icon("M7 4h3.5v16H7zM13.5 4H17v16h-3.5z"),
  back: icon("M18 6l-8 6 8 6zM6 5v14"),
  on: icon("M6 6l8 6-8 6zM18 5v14"),
  open: icon("M3 7a2 2 0 0 1 2-2h4l2 2.5h8a2 2 0 0 1 2 2V17a2 2 0 0 1-2 2H5a2 2 0 0 1-2-2z"),
  frame: icon("M4 9V5a1 1 0 0 1 1-1h4M15 4h4a1 1 0 0 1 1 1v4M20 15v4a1 1 0 0 1-1 1h-4M9 20H5a1 1 0 0 1-1-1v-4"),
  mark: icon("M5 19V6l7 8 7-8v13"),
};

export function seconds(t) {
  const m = Math.floor(t / 60);
  return m > 0 ? `${m}:${(t % 60).toFixed(2).padStart(5, "0")}` : t.toFixed(2);
}
