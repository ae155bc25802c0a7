// SPDX-License-Identifier: GPL-3.0-or-later
// {path}: what the reader that comes with three.js makes of a KTX2 file.
import { readFileSync } from "node:fs";
import { answer, request } from "./common.mjs";
import { read } from "three/addons/libs/ktx-parse.module.js";

const found = read(new Uint8Array(readFileSync(request().path)));
answer({
  vkFormat: found.vkFormat,
  width: found.pixelWidth,
  height: found.pixelHeight,
  layers: found.layerCount,
  levels: found.levels.map((level) => level.levelData.byteLength),
  samples: found.dataFormatDescriptor[0].samples.length,
  writer: String(found.keyValue.KTXwriter).replace(/\0$/, ""),
});
