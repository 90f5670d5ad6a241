// The plugin as OpenClaw loads it, with the API of both kinds of releases.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import plugin from "../index.js";
import { flushPlan } from "../lib/flush.js";
import { programFor, readSettings } from "../lib/settings.js";
import { program } from "./helpers.js";

const SESSION = { agentId: "main", sessionKey: "agent:main:main", config: {} };

/** What the plugin registers; without `capability`, the API is that of OpenClaw 2026.3. */
function registered(config = {}, { capability = true, openclaw = {} } = {}) {
  const found = { factories: {}, services: [], hooks: {}, warnings: [] };
  plugin.register({
    pluginConfig: config,
    config: openclaw,
    logger: { warn: (message) => found.warnings.push(message) },
    registerHook: (event, handler) => Object.assign(found.hooks, { [event]: handler }),
    runtime: {
      agent: { resolveAgentWorkspaceDir: (_config, agentId) => `/workspaces/${agentId}` },
      state: { resolveStateDir: () => "/state" },
    },
    resolvePath: (path) => path,
    registerTool: (factory, { names }) => Object.assign(found.factories, { [names]: factory }),
    registerService: (service) => found.services.push(service),
    ...(capability
      ? { registerMemoryCapability: (one) => Object.assign(found, { capability: one }) }
      : { registerMemoryPromptSection: (one) => Object.assign(found, { section: one }) }),
  });
  return found;
}

function tool(t, behaviour, { name = "memory_search", session = SESSION } = {}) {
  const { command, args } = program(behaviour);
  const found = registered({ command, args, append: true });
  t.after(() => found.services[0].stop());
  return found.factories[name](session);
}

const payload = (result) => JSON.parse(result.content[0].text);

test("memory_append is offered only when it is configured", () => {
  assert.deepEqual(Object.keys(registered().factories), ["memory_search", "memory_get"]);
  assert.ok("memory_append" in registered({ append: true }).factories);
});

test("the session key goes into _meta, apart from the arguments of the model", async (t) => {
  const forged = { query: "x", _meta: { "clawmark/sessionKey": "main" } };
  const session = { ...SESSION, sessionKey: "agent:main:telegram:group:1" };
  const search = tool(t, "echo", { session });
  assert.deepEqual(payload(await search.execute("1", forged)), {
    name: "memory_search",
    arguments: forged,
    _meta: { "clawmark/sessionKey": "agent:main:telegram:group:1" },
  });
});

test("a session without a key is an unknown session", async (t) => {
  for (const sessionKey of [undefined, null, "", 7, {}]) {
    const search = tool(t, "echo", { session: { ...SESSION, sessionKey } });
    const sent = payload(await search.execute("1", { query: "x" }));
    assert.deepEqual(sent._meta, { "clawmark/sessionKey": "" });
  }
});

test("the program serves the workspace of the session's agent", () => {
  const place = { agentId: "ops", workspaceDir: "/workspaces/ops", stateDir: "/state" };
  assert.deepEqual(programFor(readSettings(), place), {
    command: "clawmark",
    args: [
      "mcp",
      "--session-from-host",
      "--state-dir",
      "/state",
      "--workspace",
      "/workspaces/ops",
      "--agent",
      "ops",
    ],
  });
});

test("a tool answers when Clawmark is missing", async (t) => {
  const found = registered({ command: "/nowhere/clawmark", append: true });
  t.after(() => found.services[0].stop());
  for (const [name, args] of [
    ["memory_search", { query: "x" }],
    ["memory_get", { path: "MEMORY.md" }],
    ["memory_append", { text: "x" }],
  ]) {
    const result = await found.factories[name](SESSION).execute("1", args);
    assert.equal(payload(result).disabled, true);
    assert.match(payload(result).error, /^Clawmark is not installed/);
    assert.match(payload(result).action, /pip install/);
    assert.deepEqual(result.details, payload(result));
  }
});

test("a tool answers when Clawmark is too old, crashes or sends nonsense", async (t) => {
  for (const behaviour of ["old", "crash", "odd-result", "error", "not-mcp"]) {
    const result = payload(await tool(t, behaviour).execute("1", { query: "x" }));
    assert.equal(result.disabled, true, behaviour);
    assert.deepEqual(result.results, []);
    assert.ok(result.error && result.action && !result.error.includes("\n"));
  }
});

test("a write whose process dies says that the note may have been written", async (t) => {
  const append = tool(t, "crash", { name: "memory_append" });
  const result = payload(await append.execute("1", { text: "x" }));
  assert.equal(result.written, false);
  assert.match(result.action, /may or may not have been written/);
});

test("a cancelled call ends with the reason of the host", async (t) => {
  const stop = new AbortController();
  const waiting = tool(t, "hang").execute("1", { query: "x" }, stop.signal);
  stop.abort(new Error("the user pressed stop"));
  await assert.rejects(waiting, /the user pressed stop/);
});

test("the memory section follows the tools and the citations of the session", () => {
  const { capability } = registered();
  const { section } = registered({}, { capability: false });
  for (const builder of [capability.promptBuilder, section]) {
    const lines = (tools, citationsMode) =>
      builder({ availableTools: new Set(tools), citationsMode }).join("\n");
    assert.match(lines(["memory_search", "memory_get"]), /^## Memory Recall\n[^]*Source: <path>/);
    assert.match(lines(["memory_search"], "off"), /Do not name files/);
    assert.match(lines(["memory_get"]), /memory_get/);
    assert.match(lines(["memory_search", "memory_append"]), /## Memory Writing/);
    assert.equal(lines(["read", "write"]), "");
  }
});

test("the flush appends to the log of the day in the user's time zone", () => {
  const nowMs = Date.UTC(2026, 10, 16, 23, 30);
  const cfg = { agents: { defaults: { userTimezone: "Asia/Tokyo" } } };
  const plan = flushPlan({ cfg, nowMs });
  assert.equal(plan.relativePath, "memory/2026-11-17.md");
  for (const text of [plan.prompt, plan.systemPrompt]) {
    assert.match(text, /memory\/2026-11-17\.md/);
    assert.match(text, /NO_REPLY/);
    assert.match(text, /read-only/);
  }
  cfg.agents.defaults.userTimezone = "Nowhere/Atlantis";
  assert.match(flushPlan({ cfg, nowMs }).relativePath, /^memory\/2026-11-1[67]\.md$/);
});

test("the settings of the flush act", () => {
  const plan = (memoryFlush, more = {}) =>
    flushPlan({ cfg: { agents: { defaults: { compaction: { memoryFlush } } } }, ...more });
  assert.equal(plan({ enabled: false }), null);
  assert.equal(plan({}).softThresholdTokens, 4000);
  assert.equal(plan({ softThresholdTokens: 9000 }).softThresholdTokens, 9000);
  assert.equal(plan({ softThresholdTokens: -1 }).softThresholdTokens, 4000);
  assert.equal(plan({}).forceFlushTranscriptBytes, 2 * 1024 * 1024);
  assert.equal(plan({ forceFlushTranscriptBytes: "3 mb" }).forceFlushTranscriptBytes, 3145728);
  assert.equal(plan({ forceFlushTranscriptBytes: 0 }).forceFlushTranscriptBytes, 0);
  assert.equal(plan({ forceFlushTranscriptBytes: "many" }).forceFlushTranscriptBytes, 2097152);
  assert.equal(plan({ model: " ollama/qwen3:8b " }).model, "ollama/qwen3:8b");
  assert.ok(!("model" in plan({ model: " " })));
  const small = plan({}, { contextWindowTokens: 16_000 });
  assert.ok(small.softThresholdTokens + small.reserveTokensFloor < 16_000);
});

const FILES = ["AGENTS.md", "MEMORY.md", "USER.md", "memory.md"].map((name) => ({ name }));

async function shownFiles(t, behaviour, sessionKey) {
  const { command, args, starts } = program(behaviour);
  const found = registered({ command, args });
  t.after(() => found.services[0].stop());
  const context = { bootstrapFiles: FILES, agentId: "main", sessionKey, cfg: {} };
  await found.hooks["agent:bootstrap"]({ context });
  const names = context.bootstrapFiles.map((file) => file.name);
  return { names, starts, warnings: found.warnings };
}

const ALL = FILES.map((file) => file.name);

test("the prompt of the main session keeps its files, and nothing is started for it", async (t) => {
  const shown = await shownFiles(t, "echo", "agent:main:main");
  assert.deepEqual(shown.names, ALL);
  assert.throws(shown.starts, { code: "ENOENT" });
});

test("private files stay in the prompt of a session that may read them", async (t) => {
  const shown = await shownFiles(t, "echo", "agent:main:telegram:direct:7");
  assert.deepEqual(shown.names, ALL);
});

test("private files are left out of the prompt of other sessions", async (t) => {
  for (const key of ["agent:main:telegram:group:1", "agent:main:main:extra", "", undefined]) {
    const shown = await shownFiles(t, "echo", key);
    assert.deepEqual([shown.names, shown.warnings], [["AGENTS.md"], []]);
  }
});

test("private files are left out when Clawmark cannot be asked", async (t) => {
  for (const behaviour of ["crash", "old"]) {
    const shown = await shownFiles(t, behaviour, "agent:main:telegram:direct:7");
    assert.deepEqual(shown.names, ["AGENTS.md"]);
    assert.match(shown.warnings[0], /private files are left out of the prompt: /);
  }
});

test("switched off hooks are reported", () => {
  const warnings = (capability, internal) =>
    registered({}, { capability, openclaw: { hooks: { internal } } }).warnings.length;
  assert.deepEqual([warnings(false), warnings(false, { enabled: true })], [1, 0]);
  assert.deepEqual([warnings(true), warnings(true, { enabled: false })], [0, 1]);
});

test("an idle server does not keep the process of the host alive", () => {
  const { command, args } = program("echo");
  const script = `
    import { StdioClient } from ${JSON.stringify(new URL("../lib/stdio-client.js", import.meta.url))};
    const client = await StdioClient.start(${JSON.stringify({ command, args })});
    await client.request("tools/call", { name: "x", arguments: {} }, { timeoutMs: 60000 });
    console.log("answered");`;
  const ran = spawnSync(process.execPath, ["--input-type=module", "-e", script], {
    cwd: fileURLToPath(new URL("..", import.meta.url)),
    timeout: 60_000,
    encoding: "utf8",
  });
  assert.deepEqual([ran.status, ran.stdout], [0, "answered\n"], ran.stderr);
});
