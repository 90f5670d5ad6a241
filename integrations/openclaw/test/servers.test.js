import assert from "node:assert/strict";
import { test } from "node:test";

import { Servers } from "../lib/servers.js";
import { call, program, textOf } from "./helpers.js";

const READ = { readOnly: true, timeoutMs: 60_000 };
const WRITE = { readOnly: false, timeoutMs: 60_000 };

function servers(t, options) {
  const made = new Servers(options);
  t.after(() => made.close());
  return made;
}

test("calls at the same time share one process", async (t) => {
  const pool = servers(t);
  const fake = program("echo");
  await Promise.all([1, 2, 3].map(() => pool.request(fake, "tools/call", call(), READ)));
  await pool.request(fake, "tools/call", call(), READ);
  assert.equal(fake.starts(), 1);
});

test("other arguments have another process", async (t) => {
  const pool = servers(t);
  const [one, other] = [program("echo"), program("echo")];
  await pool.request(one, "tools/call", call(), READ);
  await pool.request(other, "tools/call", call(), READ);
  assert.deepEqual([one.starts(), other.starts()], [1, 1]);
});

test("a read whose process dies is answered by a new process", async (t) => {
  const fake = program("crash-once");
  const result = await servers(t).request(fake, "tools/call", call(), READ);
  assert.equal(textOf(result), "start 2");
  assert.equal(fake.starts(), 2);
});

test("a write whose process dies is not sent again", async (t) => {
  const pool = servers(t);
  const fake = program("crash-once");
  await assert.rejects(pool.request(fake, "tools/call", call(), WRITE), { ended: true });
  assert.equal(fake.starts(), 1);
  assert.equal(textOf(await pool.request(fake, "tools/call", call(), WRITE)), "start 2");
});

test("a read whose process dies twice fails", async (t) => {
  const fake = program("crash");
  await assert.rejects(servers(t).request(fake, "tools/call", call(), READ), { ended: true });
  assert.equal(fake.starts(), 2);
});

test("a program that does not start is tried again after a growing pause", async (t) => {
  let now = 0;
  const pool = servers(t, { now: () => now });
  const fake = program("old");
  const attempt = () =>
    assert.rejects(pool.request(fake, "tools/call", call(), READ), /too old for this plugin/);
  const startsAt = [];
  for (now of [0, 1, 1999, 2001, 4000, 6000, 6002]) {
    await attempt();
    startsAt.push(fake.starts());
  }
  assert.deepEqual(startsAt, [1, 1, 1, 2, 2, 2, 3]);
});

test("closing stops the processes, and a later call starts a new one", async (t) => {
  const pool = servers(t);
  const fake = program("echo");
  await pool.request(fake, "tools/call", call(), READ);
  await pool.close();
  await pool.request(fake, "tools/call", call(), READ);
  assert.equal(fake.starts(), 2);
});
