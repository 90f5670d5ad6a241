import assert from "node:assert/strict";
import { test } from "node:test";

import { LineSplitter, LineTooLong } from "../lib/lines.js";

test("lines are the same however the bytes are cut", () => {
  const bytes = Buffer.from("Zürich 🦅\n\n{}\nrest");
  for (let size = 1; size <= bytes.length; size += 1) {
    const splitter = new LineSplitter(100);
    const lines = [];
    for (let at = 0; at < bytes.length; at += size) {
      lines.push(...splitter.push(bytes.subarray(at, at + size)));
    }
    assert.deepEqual(lines, ["Zürich 🦅", "", "{}"]);
  }
});

test("a line over the limit is refused before it is complete", () => {
  const splitter = new LineSplitter(10);
  assert.deepEqual(splitter.push(Buffer.from("0123456789\n")), ["0123456789"]);
  splitter.push(Buffer.from("01234"));
  assert.throws(() => splitter.push(Buffer.from("567890")), LineTooLong);
});
