// The memory tools of one session. The session key goes into the `_meta` of a request, where only
// the host writes; the arguments of the model go into `arguments`.

import { Unavailable, oneLine } from "./errors.js";

const READ_ONLY = new Set(["memory_search", "memory_get"]);
const NOT_KNOWN = "The note may or may not have been written; look with memory_search first.";

/** What each tool answers when Clawmark cannot be reached, besides `error` and `action`. */
const EMPTY = {
  memory_search: () => ({ results: [], disabled: true, unavailable: true }),
  memory_get: ({ path }) => ({
    path: typeof path === "string" ? oneLine(path) : "",
    text: "",
    disabled: true,
    unavailable: true,
  }),
  memory_append: () => ({ written: false, disabled: true, unavailable: true }),
};

/**
 * Return a tool for the agent of one session.
 * @param {{name: string, label: string, description: string, parameters: object}} definition
 * @param {{sessionKey?: string}} session
 * @param {(method: string, params: object, options: object) => Promise<object>} request
 */
export function makeTool(definition, session, request) {
  const readOnly = READ_ONLY.has(definition.name);
  return {
    ...definition,
    async execute(_callId, given, signal) {
      const args = typeof given === "object" && given !== null ? given : {};
      const params = { name: definition.name, arguments: args, _meta: sessionMeta(session) };
      try {
        return asToolResult(await request("tools/call", params, { readOnly, signal }));
      } catch (error) {
        if (signal?.aborted) throw error;
        return payloadResult({ ...EMPTY[definition.name](args), ...complaint(error, readOnly) });
      }
    },
  };
}

/** An empty key is an unknown session, which sees no private memory. */
export function sessionMeta({ sessionKey }) {
  return { "clawmark/sessionKey": typeof sessionKey === "string" ? sessionKey : "" };
}

function asToolResult(result) {
  const text = result?.content?.find?.((part) => part?.type === "text")?.text;
  if (typeof text !== "string") {
    throw new Unavailable(
      "Clawmark sent an answer that cannot be read.",
      "Upgrade the plugin and Clawmark to the same release.",
    );
  }
  return { content: [{ type: "text", text }], details: result.structuredContent ?? {} };
}

function complaint(error, readOnly) {
  if (!(error instanceof Unavailable)) {
    return {
      error: `The Clawmark plugin failed: ${oneLine(error?.message ?? error)}`,
      action: "Restart the gateway; `openclaw plugins doctor` finds problems.",
    };
  }
  const action = error.ended && !readOnly ? NOT_KNOWN : error.action;
  return { error: error.message, action };
}

function payloadResult(payload) {
  return {
    content: [{ type: "text", text: JSON.stringify(payload, null, 2) }],
    details: payload,
  };
}
