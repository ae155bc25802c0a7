// SPDX-License-Identifier: GPL-3.0-or-later
// other.mjs resample TOLERANCE IN OUT: glTF Transform's resample(). other.mjs plain IN OUT: the file without compression, to be measured.
import { NodeIO } from "@gltf-transform/core";
import { ALL_EXTENSIONS, EXTMeshoptCompression } from "@gltf-transform/extensions";
import { dequantize, prune, resample } from "@gltf-transform/functions";
import { MeshoptDecoder, MeshoptEncoder } from "meshoptimizer";

await MeshoptDecoder.ready;
await MeshoptEncoder.ready;
const io = new NodeIO().registerExtensions(ALL_EXTENSIONS).registerDependencies({ "meshopt.decoder": MeshoptDecoder, "meshopt.encoder": MeshoptEncoder });
const words = process.argv.slice(2);
const [input, output] = words.slice(-2);
const document = await io.read(input);
if (words[0] === "resample") await document.transform(resample({ tolerance: Number(words[1]) }), prune({ keepLeaves: true }));
else for (const extension of document.getRoot().listExtensionsUsed()) if (extension.extensionName === EXTMeshoptCompression.EXTENSION_NAME) extension.dispose();
if (words[0] === "plain") await document.transform(dequantize());
await io.write(output, document);
