// SPDX-License-Identifier: GPL-3.0-or-later
// Sends VMC with node-osc: {port, frames: [[{address, args}, ...], ...], bundle}. Numbers go as node-osc encodes them, whole ones as ints.
import { readFileSync } from "node:fs";
import { Bundle, Client, Message } from "node-osc";

const { port, frames, bundle } = JSON.parse(readFileSync(0, "utf8"));
const client = new Client("127.0.0.1", port);
let sent = 0;
for (const frame of frames) {
  const messages = frame.map(({ address, args }) => new Message(address, ...args));
  for (const packet of bundle ? [new Bundle(...messages)] : messages) {
    await new Promise((done, failed) => client.send(packet, (error) => (error ? failed(error) : done())));
    sent += 1;
  }
}
await client.close();
process.stdout.write(JSON.stringify(sent));
