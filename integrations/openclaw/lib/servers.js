// The running `clawmark mcp` processes: one for each agent and workspace, started at the first
// call, started again when it has ended.

import { StdioClient } from "./stdio-client.js";

const FIRST_PAUSE_MS = 2_000;
const LONGEST_PAUSE_MS = 60_000;

export class Servers {
  #clients = new Map();
  #failures = new Map();
  #start;
  #now;

  /**
   * @param {object} [options]
   * @param {(program: object) => Promise<StdioClient>} [options.start]
   * @param {() => number} [options.now] milliseconds that never go back
   */
  constructor({ start = StdioClient.start, now = () => performance.now() } = {}) {
    this.#start = start;
    this.#now = now;
  }

  /**
   * Send a request to the process of a program. If the process ends before it answers, a request
   * that only reads is sent once more, to a new process.
   * @param {{command: string, args: string[]}} program
   * @param {string} method
   * @param {object} params
   * @param {{readOnly: boolean, timeoutMs: number, signal?: AbortSignal}} options
   */
  async request(program, method, params, { readOnly, ...options }) {
    const client = await this.#running(program);
    try {
      return await client.request(method, params, options);
    } catch (error) {
      if (!readOnly || error?.ended !== true) throw error;
    }
    const replacement = await this.#running(program);
    return await replacement.request(method, params, options);
  }

  /** Stop every process; a later request starts a new one. */
  async close() {
    const clients = [...this.#clients.values()];
    this.#clients.clear();
    this.#failures.clear();
    const started = await Promise.allSettled(clients);
    await Promise.allSettled(
      started.filter((one) => one.status === "fulfilled").map((one) => one.value.close()),
    );
  }

  async #running(program) {
    const key = JSON.stringify([program.command, program.args]);
    const current = this.#clients.get(key);
    if (current !== undefined) {
      const client = await current;
      if (client.isOpen) return client;
      if (this.#clients.get(key) === current) this.#clients.delete(key);
      return this.#running(program);
    }
    this.#throwRecentFailure(key);
    const starting = this.#start(program);
    this.#clients.set(key, starting);
    try {
      const client = await starting;
      this.#failures.delete(key);
      return client;
    } catch (error) {
      this.#clients.delete(key);
      this.#remember(key, error);
      throw error;
    }
  }

  /** A program that did not start is not started again by every call. */
  #throwRecentFailure(key) {
    const failure = this.#failures.get(key);
    if (failure !== undefined && this.#now() < failure.until) throw failure.error;
  }

  #remember(key, error) {
    const before = this.#failures.get(key)?.pauseMs ?? FIRST_PAUSE_MS / 2;
    const pauseMs = Math.min(before * 2, LONGEST_PAUSE_MS);
    this.#failures.set(key, { error, pauseMs, until: this.#now() + pauseMs });
  }
}
