// Records the names of the configuration keys of an OpenClaw release that concern its memory:
//
//   npm install openclaw@2026.9.6
//   node record_openclaw_keys.mjs node_modules/openclaw > data/openclaw_keys_2026.9.6.json
//
// Newer releases print their schema (`openclaw config schema`, which needs the Node.js version of
// the release); older ones have it as one constant in a bundle. The schemas of bundled memory
// plugins come from their manifests. `*` stands for any name, `[]` for any entry of a list, and
// channels are recorded under one name, `channels.*`.

import { execFileSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";

const CONSTANT = "const GENERATED_BASE_CONFIG_SCHEMA = ";
const AGENT = String.raw`agents\.(defaults|list\.\[\]|entries\.\*)\.`;
const RELATED = [
  /memor|qmd/i,
  new RegExp(`^${AGENT}(workspace|model|contextTokens|userTimezone|timeFormat)(\\.|$)`),
  new RegExp(`^${AGENT}(bootstrap|skip|startupContext|contextLimits|compaction|heartbeat|envelope)`),
  new RegExp(`^${AGENT}sandbox\\.(mode|workspaceAccess|workspaceRoot|scope|perSession|session)`),
  new RegExp(`^(${AGENT}|)tools\\.(allow|alsoAllow|deny|profile|byProvider|toolsBySender)`),
  new RegExp(`^(${AGENT}|)tools\\.(subagents|sandbox|sessions)\\.`),
  /^channels\..*\.(tools|toolsBySender\.\*)\.(allow|alsoAllow|deny)$/,
  /^session\.(reset|idleMinutes|scope|dmScope|groupScope|mainKey|store|maintenance)/,
  /^hooks\.internal\.(enabled|entries)/,
  /^plugins\.(enabled|allow|deny|slots)/,
];

const folder = path.resolve(process.argv[2]);
const version = JSON.parse(fs.readFileSync(path.join(folder, "package.json"), "utf8")).version;

function printedSchema() {
  const state = fs.mkdtempSync(path.join(os.tmpdir(), "openclaw-keys-"));
  const env = { ...process.env, HOME: state, OPENCLAW_STATE_DIR: state };
  const program = path.join(folder, "openclaw.mjs");
  const options = { env, maxBuffer: 1 << 28, stdio: ["ignore", "pipe", "ignore"] };
  try {
    return JSON.parse(execFileSync(process.execPath, [program, "config", "schema"], options));
  } catch {
    return undefined;
  } finally {
    fs.rmSync(state, { recursive: true, force: true });
  }
}

function bundledSchema() {
  for (const name of fs.readdirSync(path.join(folder, "dist"))) {
    if (!/\.m?js$/.test(name)) continue;
    const text = fs.readFileSync(path.join(folder, "dist", name), "utf8");
    const start = text.indexOf(CONSTANT);
    if (start < 0) continue;
    const rest = text.slice(start + CONSTANT.length);
    return (0, eval)(`(${rest.slice(0, rest.indexOf("\n};") + 2)})`).schema;
  }
  throw new Error("no schema found");
}

function collect(root, node, at, found, depth = 0) {
  if (!node || typeof node !== "object" || depth > 60) return;
  if (node.$ref) {
    const target = node.$ref.split("/").slice(1).reduce((inner, part) => inner?.[part], root);
    return collect(root, target, at, found, depth + 1);
  }
  if (at.length && !node.properties) found.add(at.join("."));
  for (const [name, inner] of Object.entries(node.properties ?? {}))
    collect(root, inner, [...at, name], found, depth + 1);
  if (node.additionalProperties?.type || node.additionalProperties?.anyOf)
    collect(root, node.additionalProperties, [...at, "*"], found, depth + 1);
  if (node.items?.properties || node.items?.anyOf)
    collect(root, node.items, [...at, "[]"], found, depth + 1);
  for (const kind of ["anyOf", "oneOf", "allOf"])
    for (const inner of node[kind] ?? []) collect(root, inner, at, found, depth + 1);
}

const found = new Set();
const schema = printedSchema() ?? bundledSchema();
collect(schema, schema, [], found);
const extensions = path.join(folder, "dist", "extensions");
for (const id of fs.readdirSync(extensions).filter((name) => /memory/.test(name))) {
  const manifest = JSON.parse(
    fs.readFileSync(path.join(extensions, id, "openclaw.plugin.json"), "utf8"),
  );
  const own = manifest.configSchema;
  collect(own, own, ["plugins", "entries", id, "config"], found);
  found.add(`plugins.entries.${id}.enabled`);
}
const names = [...found]
  .map((key) => key.replace(/^channels\.[^.]+/, "channels.*"))
  .filter((key) => RELATED.some((pattern) => pattern.test(key)));
const keys = [...new Set(names)].sort();
const recorded = "names of keys from the package's own schema, by tests/compat/record_openclaw_keys.mjs";
console.log(JSON.stringify({ openclaw: version, recorded, keys }, null, 1));
