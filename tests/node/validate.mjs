// SPDX-License-Identifier: GPL-3.0-or-later
// [path, ...]: what Khronos' validator says of glTF files.
import { readFileSync } from "node:fs";
import { answer, request } from "./common.mjs";
import validator from "gltf-validator";

const out = [];
for (const path of request()) {
  const report = await validator.validateBytes(new Uint8Array(readFileSync(path)), { maxIssues: 1000 });
  const { numErrors, numWarnings, messages } = report.issues;
  out.push({ errors: numErrors, warnings: numWarnings, codes: [...new Set(messages.filter((m) => m.severity < 2).map((m) => `${m.code} ${m.pointer}`))] });
}
answer(out);
