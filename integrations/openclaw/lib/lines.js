// Split a stream of bytes into lines. A line is decoded when it is complete, so that a character
// whose bytes arrive in two parts is read correctly.

const NEWLINE = 0x0a;

export class LineTooLong extends Error {}

export class LineSplitter {
  #parts = [];
  #size = 0;

  /** @param {number} longest bytes of a line; a longer one raises LineTooLong */
  constructor(longest) {
    this.longest = longest;
  }

  /**
   * Take the next bytes and return the lines that are complete now.
   * @param {Buffer} chunk
   * @returns {string[]}
   */
  push(chunk) {
    const lines = [];
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      this.#keep(chunk.subarray(start, end));
      lines.push(Buffer.concat(this.#parts).toString("utf8"));
      this.#parts = [];
      this.#size = 0;
      start = end + 1;
    }
    this.#keep(chunk.subarray(start));
    return lines;
  }

  #keep(part) {
    this.#size += part.length;
    if (this.#size > this.longest) throw new LineTooLong();
    if (part.length > 0) this.#parts.push(part);
  }
}
