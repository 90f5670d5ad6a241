// A program that speaks MCP as the tests need it: `node fake-server.js BEHAVIOUR [FILE]`. With a
// file, each start adds a line to it.

import { appendFileSync, readFileSync } from "node:fs";
import { createInterface } from "node:readline";

const [behaviour, starts] = process.argv.slice(2);
if (starts) appendFileSync(starts, `${process.pid}\n`);
const startCount = starts ? readFileSync(starts, "utf8").split("\n").length - 1 : 1;

const write = (message) => process.stdout.write(`${JSON.stringify(message)}\n`);
const answer = (id, result) => write({ jsonrpc: "2.0", id, result });
const text = (value) => ({ content: [{ type: "text", text: value }], structuredContent: {} });

if (behaviour === "old") {
  process.stderr.write("clawmark: Unrecognized arguments: --session-from-host.\n  See --help.\n");
  process.exit(2);
}
if (behaviour === "broken-config") {
  process.stderr.write("clawmark: memorySearch.provider is wrong.\n  Correct it in clawmark.json.\n");
  process.exit(2);
}
if (behaviour === "killed") {
  process.stderr.write("clawmark: only a warning.\n");
  process.kill(process.pid, "SIGKILL");
}
if (behaviour === "traceback") {
  process.stderr.write("Traceback (most recent call last):\n  …\nValueError: something\n");
  process.exit(1);
}
if (behaviour === "not-mcp") process.stdout.write("hello, world\n");
if (behaviour === "silent-exit") process.exit(7);
if (behaviour === "never-closes") process.on("SIGTERM", () => {});

async function callTool(id, params) {
  switch (behaviour) {
    case "crash-once":
      if (startCount === 1) process.kill(process.pid, "SIGKILL");
      return answer(id, text(`start ${startCount}`));
    case "crash":
      return process.kill(process.pid, "SIGKILL");
    case "hang":
      return undefined;
    case "split": {
      // A multi-byte character and the newline arrive in parts, two messages in one part.
      const bytes = Buffer.from(
        `${JSON.stringify({ jsonrpc: "2.0", id, result: text("Zürich 🦅") })}\n` +
          `${JSON.stringify({ jsonrpc: "2.0", method: "notifications/message", params: {} })}\n`,
      );
      for (let at = 0; at < bytes.length; at += 1) {
        process.stdout.write(bytes.subarray(at, at + 1));
        if (at % 16 === 0) await new Promise((resolve) => setImmediate(resolve));
      }
      return undefined;
    }
    case "reversed":
      if (params.arguments.order === "first") {
        held = id;
        return undefined;
      }
      answer(id, text("second"));
      return answer(held, text("first"));
    case "asks-back":
      write({ jsonrpc: "2.0", id: "q1", method: "ping" });
      write({ jsonrpc: "2.0", id: "q2", method: "roots/list" });
      asked = id;
      return undefined;
    case "error":
      return write({ jsonrpc: "2.0", id, error: { code: -32602, message: "bad\nparams" } });
    case "odd-result":
      return answer(id, { content: "nothing" });
    default:
      return answer(id, text(JSON.stringify(params)));
  }
}

let held;
let asked;
const replies = [];

for await (const line of createInterface({ input: process.stdin })) {
  const message = JSON.parse(line);
  if (message.method === "initialize") {
    const name = behaviour === "other-server" ? "filesystem" : "clawmark";
    if (behaviour !== "no-answer") {
      answer(message.id, { protocolVersion: "2025-06-18", serverInfo: { name, version: "0" } });
    }
  } else if (message.method === "tools/call") {
    await callTool(message.id, message.params);
  } else if (message.method === "resources/read") {
    const { uri, _meta } = message.params;
    const isAllowed = _meta["clawmark/sessionKey"].includes(":direct:");
    if (behaviour === "crash") process.kill(process.pid, "SIGKILL");
    if (isAllowed) answer(message.id, { contents: [{ uri, text: "" }] });
    else write({ jsonrpc: "2.0", id: message.id, error: { code: -32602, message: "no access" } });
  } else if (message.method === "notifications/cancelled") {
    appendFileSync(`${starts}.cancelled`, JSON.stringify(message.params));
  } else if (message.method === undefined) {
    replies.push(message);
    if (replies.length === 2) answer(asked, text(JSON.stringify(replies)));
  }
}
if (behaviour === "never-closes") setInterval(() => {}, 1000);
