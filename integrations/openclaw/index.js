// Clawmark in the memory slot of OpenClaw: the memory tools, the memory section of the system
// prompt, the plan of the memory flush, and the rule which files a session's prompt may show.
//
// Nothing is started when the plugin is loaded. The first call of a tool starts `clawmark mcp` for
// the agent of its session.

import { readFileSync } from "node:fs";

import { flushPlan } from "./lib/flush.js";
import { privateFilesHook } from "./lib/private-files.js";
import { memorySection } from "./lib/prompt.js";
import { Servers } from "./lib/servers.js";
import { programFor, readSettings } from "./lib/settings.js";
import { StdioClient } from "./lib/stdio-client.js";
import { makeTool } from "./lib/tools.js";

const read = (name) => JSON.parse(readFileSync(new URL(name, import.meta.url), "utf8"));
const contract = read("./contract.json");
const { version } = read("./package.json");

// Shared by all registrations in this process, so that an agent has one server.
const servers = new Servers({
  start: (program) => StdioClient.start(program, { clientVersion: version }),
});

export default {
  id: "clawmark",
  name: "Clawmark",
  description: "Memory made of Markdown files, searched with the scope of each session.",
  kind: "memory",
  register,
};

export function register(api) {
  const settings = readSettings(api.pluginConfig);
  for (const definition of contract.tools) {
    if (definition.name === "memory_append" && !settings.append) continue;
    api.registerTool((session) => sessionTool(api, settings, definition, session), {
      names: [definition.name],
    });
  }
  const promptBuilder = (session) => memorySection(contract.prompt, session);
  if (typeof api.registerMemoryCapability === "function") {
    api.registerMemoryCapability({
      promptBuilder,
      flushPlanResolver: flushPlan,
      deterministicRecallToolName: "memory_search",
    });
  } else {
    api.registerMemoryPromptSection(promptBuilder); // before OpenClaw 2026.4
  }
  api.registerHook("agent:bootstrap", privateFilesHook(requesterOf(api, settings), api.logger), {
    name: "clawmark-private-files",
    description: "Leaves MEMORY.md and USER.md out of the prompt of sessions that may not read them",
  });
  warnAboutHooks(api);
  api.registerService({ id: "clawmark", start: () => {}, stop: () => servers.close() });
}

function sessionTool(api, settings, definition, session) {
  return makeTool(definition, session, requesterOf(api, settings)(session));
}

/** Return, for a session, the function that sends requests to the Clawmark of its agent. */
function requesterOf(api, settings) {
  return (session) => {
    const program = programFor(settings, placeOf(api, settings, session));
    return (method, params, options) =>
      servers.request(program, method, params, { timeoutMs: settings.timeoutMs, ...options });
  };
}

/** Hooks are on since OpenClaw 2026.4 unless switched off, and off before. */
function warnAboutHooks(api) {
  const isOn = api.config?.hooks?.internal?.enabled ?? api.registerMemoryCapability !== undefined;
  if (isOn) return;
  api.logger.warn(
    "clawmark: OpenClaw shows MEMORY.md and USER.md in the prompt of group chats; set " +
      "hooks.internal.enabled to true, and the plugin leaves them out.",
  );
}

/** The workspace is the agent's own, also for a sandboxed session. */
function placeOf(api, settings, session) {
  const config = session.runtimeConfig ?? session.config ?? session.cfg ?? api.config;
  const { agentId } = session;
  return {
    agentId,
    workspaceDir: agentId
      ? api.runtime.agent.resolveAgentWorkspaceDir(config, agentId)
      : session.workspaceDir,
    stateDir: settings.stateDir
      ? api.resolvePath(settings.stateDir)
      : api.runtime.state.resolveStateDir(process.env),
  };
}
