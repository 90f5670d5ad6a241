// One `clawmark mcp` process: JSON-RPC messages over standard input and output, one per line.
//
// While no request waits, the process does not keep Node.js alive. When Node.js ends, the input of
// the process ends, and then it exits.

import { spawn } from "node:child_process";

import { Unavailable, oneLine } from "./errors.js";
import { LineSplitter } from "./lines.js";

export const PROTOCOL_VERSION = "2025-06-18";
export const SESSION_FLAG = "--session-from-host";

const ERROR_START = "clawmark: ";
const LONGEST_LINE = 32 * 1024 * 1024;
const LONGEST_STDERR = 8 * 1024;
const METHOD_NOT_FOUND = -32601;
const START_MS = 60_000;
const STOP_MS = 3_000;

const INSTALL =
  "Install it with `pip install 'clawmark[mcp]'`, or set plugins.entries.clawmark.config.command " +
  "to the full path of the program.";
const UPGRADE = "Upgrade it with `pip install -U 'clawmark[mcp]'`, then restart the gateway.";
const TRY_AGAIN = "Try again; `clawmark doctor` finds problems.";

export class StdioClient {
  #child;
  #command;
  #lines = new LineSplitter(LONGEST_LINE);
  #nextId = 1;
  #waiting = new Map();
  #stderr = "";
  #failure = null;
  #ended;

  /**
   * Start the process and wait until it has answered `initialize`.
   * @param {{command: string, args: string[], env?: Record<string, string | undefined>}} program
   * @param {{startMs?: number, clientVersion?: string}} [options]
   */
  static async start(program, { startMs = START_MS, clientVersion = "0" } = {}) {
    const client = new StdioClient(program);
    try {
      const answer = await client.request(
        "initialize",
        {
          protocolVersion: PROTOCOL_VERSION,
          capabilities: {},
          clientInfo: { name: "openclaw", version: clientVersion },
        },
        { timeoutMs: startMs },
      );
      if (answer?.serverInfo?.name !== "clawmark") {
        throw new Unavailable(`\`${program.command}\` is not Clawmark.`, INSTALL);
      }
      client.#send({ jsonrpc: "2.0", method: "notifications/initialized" });
      return client;
    } catch (error) {
      client.kill();
      throw error;
    }
  }

  constructor({ command, args, env = process.env }) {
    this.#command = command;
    this.#child = spawn(command, args, {
      env,
      stdio: ["pipe", "pipe", "pipe"],
      windowsHide: true,
    });
    this.#ended = new Promise((resolve) => {
      this.#child.once("error", (error) => {
        this.#fail(this.#notStarted(error));
        if (this.#child.pid === undefined) resolve();
      });
      // `close` comes after the last output, so that the reason on stderr is complete.
      this.#child.once("close", (code, signal) => {
        this.#fail(this.#endedBy(code, signal));
        resolve();
      });
    });
    this.#child.stdout.on("data", (chunk) => this.#receive(chunk));
    this.#child.stderr.on("data", (chunk) => {
      this.#stderr = (this.#stderr + chunk.toString("utf8")).slice(-LONGEST_STDERR);
    });
    for (const stream of this.#child.stdio) stream.on("error", () => {}); // `close` follows
    this.#holdNode(false);
  }

  get pid() {
    return this.#child.pid;
  }

  get isOpen() {
    return this.#failure === null;
  }

  /**
   * Send a request and return its result.
   * @param {string} method
   * @param {object} params
   * @param {{timeoutMs: number, signal?: AbortSignal}} options
   */
  request(method, params, { timeoutMs, signal }) {
    if (this.#failure !== null) return Promise.reject(this.#failure);
    if (signal?.aborted) return Promise.reject(signal.reason);
    const id = this.#nextId++;
    return new Promise((resolve, reject) => {
      const onAbort = () => {
        this.#cancel(id, "cancelled by the host");
        settle(reject)(signal.reason);
      };
      const timer = setTimeout(() => {
        // The server limits its calls itself; one that is later than that hangs.
        settle(reject)(
          new Unavailable(
            `Clawmark did not answer within ${Math.round(timeoutMs / 1000)} seconds.`,
            TRY_AGAIN,
          ),
        );
        this.kill();
      }, timeoutMs);
      const settle = (finish) => (value) => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", onAbort);
        this.#waiting.delete(id);
        this.#holdNode(this.#waiting.size > 0);
        finish(value);
      };
      this.#waiting.set(id, { resolve: settle(resolve), reject: settle(reject) });
      this.#holdNode(true);
      signal?.addEventListener("abort", onAbort, { once: true });
      this.#send({ jsonrpc: "2.0", id, method, params });
    });
  }

  /** End the input of the process, which then stops; one that does not is killed. */
  async close(stopMs = STOP_MS) {
    this.#holdNode(true);
    this.#child.stdin.end();
    const timer = setTimeout(() => this.kill(), stopMs);
    await this.#ended;
    clearTimeout(timer);
  }

  kill() {
    this.#fail(new Unavailable("Clawmark was stopped.", TRY_AGAIN, { ended: true }));
    this.#child.kill("SIGKILL");
  }

  #send(message) {
    if (this.#child.stdin.writable) this.#child.stdin.write(`${JSON.stringify(message)}\n`);
  }

  #cancel(requestId, reason) {
    this.#send({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId, reason } });
  }

  #receive(chunk) {
    try {
      for (const line of this.#lines.push(chunk)) {
        if (line.trim() !== "") this.#handle(JSON.parse(line));
      }
    } catch {
      this.#fail(
        new Unavailable(
          `\`${oneLine(this.#command, 80)}\` sent something that is not an MCP message.`,
          INSTALL,
        ),
      );
      this.kill();
    }
  }

  #handle(message) {
    if (typeof message !== "object" || message === null) throw new TypeError("not a message");
    if (typeof message.method === "string") {
      if (message.id !== undefined) this.#refuse(message);
      return; // a notification
    }
    const waiting = this.#waiting.get(message.id);
    if (waiting === undefined) return; // the answer to a request that was cancelled
    if (message.error !== undefined) {
      const reason = oneLine(message.error?.message ?? "unknown error");
      waiting.reject(
        new Unavailable(`Clawmark refused the request: ${reason}`, TRY_AGAIN, { refused: true }),
      );
    } else {
      waiting.resolve(message.result);
    }
  }

  #refuse({ id, method }) {
    const answer =
      method === "ping"
        ? { result: {} }
        : { error: { code: METHOD_NOT_FOUND, message: "Not supported by this client." } };
    this.#send({ jsonrpc: "2.0", id, ...answer });
  }

  /** Keep the first reason, and fail every request that waits. */
  #fail(reason) {
    this.#failure ??= reason;
    for (const waiting of [...this.#waiting.values()]) waiting.reject(this.#failure);
  }

  #notStarted(error) {
    const command = oneLine(this.#command, 200);
    return error.code === "ENOENT"
      ? new Unavailable(`Clawmark is not installed: there is no program \`${command}\`.`, INSTALL)
      : new Unavailable(
          `Clawmark could not be started: \`${command}\`: ${oneLine(error.code ?? error.message)}.`,
          INSTALL,
        );
  }

  #endedBy(code, signal) {
    const facts = { ended: true };
    if (signal !== null) return new Unavailable(`Clawmark stopped by ${signal}.`, TRY_AGAIN, facts);
    if (code === 2 && this.#stderr.includes(SESSION_FLAG)) {
      return new Unavailable("The installed Clawmark is too old for this plugin.", UPGRADE);
    }
    // An error of Clawmark is one line, and the next step on the line below it.
    const lines = this.#stderr.split("\n").filter((line) => line.trim() !== "");
    const at = lines.findLastIndex((line) => line.startsWith(ERROR_START));
    if (code === 0 || at < 0) {
      const last = oneLine(lines.at(-1) ?? "");
      const reason = code === 0 || last === "" ? "." : `: ${last}`;
      return new Unavailable(`Clawmark stopped with exit code ${code}${reason}`, TRY_AGAIN, facts);
    }
    const next = lines[at + 1] ?? "";
    return new Unavailable(
      `Clawmark stopped: ${oneLine(lines[at].slice(ERROR_START.length))}`,
      next.startsWith("  ") ? oneLine(next) : TRY_AGAIN,
      facts,
    );
  }

  #holdNode(isHeld) {
    const method = isHeld ? "ref" : "unref";
    this.#child[method]();
    for (const stream of this.#child.stdio) stream[method]?.();
  }
}
