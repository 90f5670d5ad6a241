// What the system prompt says about the memory. The texts come from Clawmark (contract.json).

/**
 * Return the lines of the memory section for the tools that the session has.
 * @param {{recall: Record<string, {cite: string, plain: string}>, writing: string}} texts
 * @param {{availableTools: Set<string>, citationsMode?: string}} session
 * @returns {string[]}
 */
export function memorySection(texts, { availableTools, citationsMode }) {
  const names = ["memory_search", "memory_get"].filter((name) => availableTools.has(name));
  const recall = texts.recall[names.join(",")];
  const sections = [
    ...(recall === undefined ? [] : [citationsMode === "off" ? recall.plain : recall.cite]),
    ...(availableTools.has("memory_append") ? [texts.writing] : []),
  ];
  return sections.flatMap((section) => [...section.split("\n"), ""]);
}
