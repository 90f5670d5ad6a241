// Why a tool cannot answer: one sentence for the model and the user, and what to do next.

export class Unavailable extends Error {
  /**
   * @param {string} message
   * @param {string} action
   * @param {{ended?: boolean, refused?: boolean}} [facts] `ended`: the process ended while the
   *   request was waiting; `refused`: the server answered with an error
   */
  constructor(message, action, { ended = false, refused = false } = {}) {
    super(message);
    this.name = "Unavailable";
    this.action = action;
    this.ended = ended;
    this.refused = refused;
  }
}

/** Return a text on one line, without control characters, of at most `longest` characters. */
export function oneLine(text, longest = 300) {
  const line = String(text)
    .replace(/[\p{Cc}\p{Cf}\s]+/gu, " ")
    .trim();
  return line.length <= longest ? line : `${line.slice(0, longest - 1)}…`;
}
