import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { test } from "node:test";

import { Unavailable } from "../lib/errors.js";
import { StdioClient } from "../lib/stdio-client.js";
import { call, program, textOf } from "./helpers.js";

const LONG = { timeoutMs: 60_000 };
const isRunning = (pid) => existsSync(`/proc/${pid}`);

async function started(t, behaviour, options) {
  const fake = program(behaviour);
  const client = await StdioClient.start(fake, options);
  t.after(() => client.close(0));
  return Object.assign(client, { fake });
}

test("an answer that arrives byte by byte is read completely", async (t) => {
  const client = await started(t, "split");
  assert.equal(textOf(await client.request("tools/call", call(), LONG)), "Zürich 🦅");
});

test("answers are matched to requests by their id", async (t) => {
  const client = await started(t, "reversed");
  const [first, second] = await Promise.all([
    client.request("tools/call", call({ order: "first" }), LONG),
    client.request("tools/call", call({ order: "second" }), LONG),
  ]);
  assert.deepEqual([textOf(first), textOf(second)], ["first", "second"]);
});

test("requests of the server are answered", async (t) => {
  const client = await started(t, "asks-back");
  const [ping, roots] = JSON.parse(textOf(await client.request("tools/call", call(), LONG)));
  assert.deepEqual(ping.result, {});
  assert.equal(roots.error.code, -32601);
});

test("a protocol error is one line", async (t) => {
  const client = await started(t, "error");
  await assert.rejects(client.request("tools/call", call(), LONG), {
    name: "Unavailable",
    message: "Clawmark refused the request: bad params",
  });
});

test("a request that takes too long fails, and the process is stopped", async (t) => {
  const client = await started(t, "hang");
  await assert.rejects(client.request("tools/call", call(), { timeoutMs: 50 }), /did not answer/);
  await client.close();
  assert.equal(client.isOpen, false);
  assert.equal(isRunning(client.pid), false);
});

test("a cancelled request is reported to the server and the process goes on", async (t) => {
  const client = await started(t, "hang");
  const stop = new AbortController();
  const waiting = client.request("tools/call", call(), { ...LONG, signal: stop.signal });
  stop.abort(new Error("enough"));
  await assert.rejects(waiting, /enough/);
  assert.equal(client.isOpen, true);
  await client.close();
  assert.match(readFileSync(`${client.fake.file}.cancelled`, "utf8"), /"requestId":2/);
});

test("a request after an abort is not sent", async (t) => {
  const client = await started(t, "echo");
  const signal = AbortSignal.abort(new Error("enough"));
  await assert.rejects(client.request("tools/call", call(), { ...LONG, signal }), /enough/);
});

test("every waiting request fails when the process dies", async (t) => {
  const client = await started(t, "crash");
  const requests = [1, 2].map(() => client.request("tools/call", call(), LONG));
  for (const outcome of await Promise.allSettled(requests)) {
    assert.equal(outcome.status, "rejected");
    assert.equal(outcome.reason.ended, true);
    assert.match(outcome.reason.message, /^Clawmark stopped by SIGKILL\.$/);
  }
});

for (const [behaviour, message, action] of [
  ["old", "The installed Clawmark is too old for this plugin.", /Upgrade/],
  [
    "broken-config",
    "Clawmark stopped: memorySearch.provider is wrong.",
    /^Correct it in clawmark\.json\.$/,
  ],
  ["killed", "Clawmark stopped by SIGKILL.", /clawmark doctor/],
  ["traceback", "Clawmark stopped with exit code 1: ValueError: something", /clawmark doctor/],
  ["silent-exit", "Clawmark stopped with exit code 7.", /clawmark doctor/],
  ["other-server", `\`${process.execPath}\` is not Clawmark.`, /Install/],
  ["not-mcp", /sent something that is not an MCP message/, /Install/],
]) {
  test(`a program that does not start as Clawmark is explained: ${behaviour}`, async () => {
    await assert.rejects(StdioClient.start(program(behaviour)), (error) => {
      assert.ok(error instanceof Unavailable);
      assert.match(error.message, message instanceof RegExp ? message : new RegExp(escaped(message)));
      assert.match(error.action, action);
      return true;
    });
  });
}

test("a program that does not exist is named", async () => {
  await assert.rejects(StdioClient.start({ command: "/nowhere/clawmark", args: [] }), {
    message: "Clawmark is not installed: there is no program `/nowhere/clawmark`.",
  });
});

test("a start that takes too long fails", async () => {
  await assert.rejects(StdioClient.start(program("no-answer"), { startMs: 50 }), /did not answer/);
});

test("closing ends the process, and kills one that goes on", async (t) => {
  const polite = await started(t, "echo");
  await polite.close();
  const stubborn = await started(t, "never-closes");
  await stubborn.close(50);
  for (const client of [polite, stubborn]) assert.equal(isRunning(client.pid), false);
});

function escaped(text) {
  return `^${text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}$`;
}
