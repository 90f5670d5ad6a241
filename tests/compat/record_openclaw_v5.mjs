// Records what the chunker of an installed OpenClaw 2026.9 makes of the texts in data/openclaw_v5_inputs.json.
//   node record_openclaw_v5.mjs <folder of the installed package> > data/openclaw_v5_chunks.json
// Of a long list of chunks the first ones are recorded, and a hash of all of them.
import crypto from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

const home = process.argv[2];
const sdk = path.join(home, "dist/plugin-sdk/memory-core-host-engine-indexing.js");
const { chunkMarkdown, stripMemoryAnnotationCarriers } = await import(pathToFileURL(sdk).href);
const { texts, sizes } = JSON.parse(fs.readFileSync(new URL("data/openclaw_v5_inputs.json", import.meta.url), "utf8"));
const { version } = JSON.parse(fs.readFileSync(path.join(home, "package.json"), "utf8"));

const cases = [];
for (const [name, parts] of Object.entries(texts)) {
  const text = stripMemoryAnnotationCarriers(parts.map(([part, times]) => part.repeat(times)).join(""));
  for (const [tokens, overlap] of sizes) {
    for (const perEntry of [false, true]) {
      const chunks = chunkMarkdown(text, { tokens, overlap, perEntry }).filter((chunk) => chunk.text.trim());
      const rows = chunks.map((chunk) => [chunk.startLine, chunk.endLine, chunk.hash.slice(0, 16)]);
      const all = crypto.createHash("sha256").update(JSON.stringify(rows)).digest("hex");
      cases.push({ text: name, tokens, overlap, perEntry, count: rows.length, first: rows.slice(0, 4), all });
    }
  }
}
const lines = cases.map((one) => "  " + JSON.stringify(one)).join(",\n");
process.stdout.write(`{\n "openclaw": "${version}",\n "cases": [\n${lines}\n ]\n}\n`);
process.exit(0);
