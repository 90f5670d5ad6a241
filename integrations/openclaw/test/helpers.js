import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const FAKE = fileURLToPath(new URL("./fake-server.js", import.meta.url));

/** A program of a behaviour of fake-server.js; `starts()` says how often it was started. */
export function program(behaviour) {
  const file = join(mkdtempSync(join(tmpdir(), "clawmark-plugin-")), "starts");
  return {
    command: process.execPath,
    args: [FAKE, behaviour, file],
    file,
    starts: () => readFileSync(file, "utf8").split("\n").length - 1,
  };
}

export const call = (args = {}) => ({ name: "memory_search", arguments: args });
export const textOf = (result) => result.content[0].text;
