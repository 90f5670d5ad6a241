// The settings of the plugin, and the program that serves the memory of a session.

import { SESSION_FLAG } from "./stdio-client.js";

// Clawmark answers within 30 seconds, or says that it did not.
const TIMEOUT_SECONDS = 45;

/** @param {Record<string, unknown> | undefined} config checked by OpenClaw against the schema */
export function readSettings(config = {}) {
  return {
    command: config.command ?? "clawmark",
    args: config.args ?? [],
    stateDir: config.stateDir,
    append: config.append === true,
    timeoutMs: (config.timeoutSeconds ?? TIMEOUT_SECONDS) * 1000,
  };
}

/**
 * Return the program that serves the memory of a session's agent.
 * @param {ReturnType<typeof readSettings>} settings
 * @param {{agentId?: string, workspaceDir?: string, stateDir?: string}} place
 */
export function programFor(settings, { agentId, workspaceDir, stateDir }) {
  const flag = (name, value) => (value ? [name, value] : []);
  return {
    command: settings.command,
    args: [
      ...settings.args,
      "mcp",
      SESSION_FLAG,
      ...flag("--state-dir", stateDir),
      ...flag("--workspace", workspaceDir),
      ...flag("--agent", agentId),
    ],
  };
}
