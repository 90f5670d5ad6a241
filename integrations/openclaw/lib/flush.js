// The memory flush: before OpenClaw compacts a conversation, the agent gets one turn in which it
// can read, and can append to the log of the day. OpenClaw runs the turn; this is its plan.

const SOFT_THRESHOLD_TOKENS = 4_000;
const RESERVE_TOKENS = 20_000;
const FORCE_BYTES = 2 * 1024 * 1024;
const UNITS = { "": 1, b: 1, kb: 1024, mb: 1024 ** 2, gb: 1024 ** 3 };

/**
 * Return the plan of a flush; null if flushing is switched off.
 * @param {{cfg?: object, nowMs?: number, contextWindowTokens?: number}} [params]
 */
export function flushPlan({ cfg, nowMs = Date.now(), contextWindowTokens } = {}) {
  const defaults = cfg?.agents?.defaults;
  const settings = defaults?.compaction?.memoryFlush ?? {};
  if (settings.enabled === false) return null;
  const path = `memory/${dayIn(defaults?.userTimezone, nowMs)}.md`;
  const reserve = count(defaults?.compaction?.reserveTokensFloor) ?? RESERVE_TOKENS;
  const soft = count(settings.softThresholdTokens) ?? SOFT_THRESHOLD_TOKENS;
  const model = typeof settings.model === "string" ? settings.model.trim() : "";
  return {
    ...fitted(soft, reserve, count(contextWindowTokens)),
    forceFlushTranscriptBytes: byteSize(settings.forceFlushTranscriptBytes) ?? FORCE_BYTES,
    ...(model === "" ? {} : { model }),
    prompt: userPrompt(path, nowMs),
    systemPrompt: systemPrompt(path),
    relativePath: path,
  };
}

/** In a small context window, reserve at most half of it, and flush before the other half is full. */
function fitted(soft, reserve, window) {
  if (!window) return { softThresholdTokens: soft, reserveTokensFloor: reserve };
  const reserved = Math.min(reserve, Math.floor(window / 2));
  return {
    softThresholdTokens: Math.min(soft, Math.floor((window - reserved) / 2)),
    reserveTokensFloor: reserved,
  };
}

function systemPrompt(path) {
  return [
    "This conversation is about to be compacted: soon only a summary of it is left. Before that " +
      "you have one turn that the user does not see.",
    `Save what you would miss, by appending to ${path}. The log is append-only. MEMORY.md, USER.md, ` +
      "SOUL.md, TOOLS.md and AGENTS.md are read-only now.",
    "After saving, or with nothing to save, reply with NO_REPLY.",
  ].join("\n\n");
}

function userPrompt(path, nowMs) {
  return [
    `Pre-compaction memory flush. Append what you would miss tomorrow to ${path}:`,
    [
      "- decisions and their reasons, facts about people and projects, preferences, open tasks, " +
        "and where you stopped",
      '- one short line each, beginning with "- ", clear without the conversation: names and ' +
        'dates, not "he" and "tomorrow"',
      "- no small talk, no tool output, no secrets, and nothing that the log already holds",
    ].join("\n"),
    "Create the folder if it is missing. Append only; do not create other files or variants with " +
      "a time in the name. MEMORY.md, USER.md, SOUL.md, TOOLS.md and AGENTS.md are read-only now. " +
      "If there is nothing to store, reply with NO_REPLY.",
    `Current time: ${new Date(nowMs).toISOString().slice(0, 16).replace("T", " ")} UTC`,
  ].join("\n\n");
}

/** Return the date, YYYY-MM-DD, in a time zone; an unknown zone counts as that of the machine. */
function dayIn(timeZone, nowMs) {
  const format = (zone) =>
    new Intl.DateTimeFormat("en-CA", {
      timeZone: zone,
      year: "numeric",
      month: "2-digit",
      day: "2-digit",
    }).format(nowMs);
  try {
    return format(timeZone || undefined);
  } catch {
    return format(undefined);
  }
}

function count(value) {
  return Number.isFinite(value) && value >= 0 ? Math.floor(value) : undefined;
}

/** Return a size such as 2097152, "2mb" or "512 kb" in bytes; undefined if it is not one. */
function byteSize(value) {
  if (typeof value !== "string") return count(value);
  const found = /^\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*$/i.exec(value);
  const unit = found && UNITS[found[2].toLowerCase()];
  return unit ? Math.floor(Number(found[1]) * unit) : undefined;
}
