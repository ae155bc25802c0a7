// SPDX-License-Identifier: GPL-3.0-or-later
// Builds ../mocap_addon/viewer/viewer.html: one file, nothing fetched. `npm ci && npm run build`.
import { build } from "esbuild";
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const here = (name) => fileURLToPath(new URL(name, import.meta.url));
const target = process.argv[2] ?? here("../mocap_addon/viewer/viewer.html");
const three = JSON.parse(readFileSync(here("node_modules/three/package.json"), "utf8"));

const banner = `/* Mocap viewer, GPL-3.0-or-later. Contains three.js ${three.version}, MIT License, Copyright 2010-2026 three.js authors. */`;
const { outputFiles } = await build({
  entryPoints: [here("src/main.js")],
  bundle: true,
  minify: true,
  format: "iife",
  target: ["es2021"],
  legalComments: "none",
  charset: "ascii",
  banner: { js: banner },
  write: false,
  logLevel: "warning",
});
const style = await build({ entryPoints: [here("src/style.css")], minify: true, write: false, logLevel: "warning" });
const script = outputFiles[0].text.replaceAll("</script", "<\\/script").replaceAll("<!--", "<\\!--");
const page = readFileSync(here("src/index.html"), "utf8")
  .replace("/*STYLE*/", () => style.outputFiles[0].text.trim())
  .replace("/*SCRIPT*/", () => script.trim());
writeFileSync(target, page);
console.log(`${target}: ${(page.length / 1e6).toFixed(2)} MB`);
