// MEMORY.md and USER.md stay in the prompt of a session only if it may read them. OpenClaw 2026.3
// puts both into the prompt of every session, OpenClaw 2026.9 USER.md.

import { sessionMeta } from "./tools.js";

const PRIVATE = new Set(["memory.md", "user.md"]);
const DECISION_MS = 20_000;

/**
 * Return a handler of OpenClaw's event `agent:bootstrap`, which lists the files of a prompt.
 * @param {(session: object) => (method: string, params: object, options: object) => Promise<object>}
 *   requester returns the function that sends requests to the Clawmark of a session's agent
 * @param {{warn: (message: string) => void}} logger
 */
export function privateFilesHook(requester, logger) {
  return async ({ context }) => {
    const files = context?.bootstrapFiles;
    if (!Array.isArray(files) || isMain(context) || !files.some(isPrivate)) return;
    // Files of an unknown answer are left out, so this comes before the question.
    context.bootstrapFiles = files.filter((file) => !isPrivate(file));
    try {
      const request = requester(context);
      const verdicts = await Promise.all(
        files.map(async (file) => !isPrivate(file) || (await mayRead(file.name, context, request))),
      );
      context.bootstrapFiles = files.filter((_file, at) => verdicts[at]);
    } catch (error) {
      logger.warn(`clawmark: private files are left out of the prompt: ${error?.message ?? error}`);
    }
  };
}

/** The main session is the owner's; Clawmark decides about all others. */
function isMain({ agentId, sessionKey }) {
  return Boolean(agentId) && sessionKey === `agent:${agentId}:main`;
}

function isPrivate(file) {
  return PRIVATE.has(String(file?.name).toLowerCase()) && file.missing !== true;
}

async function mayRead(name, session, request) {
  const params = { uri: `memory://${name}`, _meta: sessionMeta(session) };
  try {
    await request("resources/read", params, { readOnly: true, timeoutMs: DECISION_MS });
    return true;
  } catch (error) {
    if (error?.refused === true) return false;
    throw error;
  }
}
