/** The lines of git's protocols: four hex digits of length, then the text (gitprotocol-common(5)). */

export const FLUSH = Buffer.from("0000");

/** The bytes of the longest line, including its four digits of length. */
const LINE_BYTES_MAX = 65_520;
const LENGTH_BYTES = 4;
/** Bytes of content in one side-band line, without the number of its band. */
const BAND_BYTES_MAX = LINE_BYTES_MAX - LENGTH_BYTES - 1;

export function pktLine(content: string | Uint8Array): Buffer {
  const bytes = typeof content === "string" ? Buffer.from(content) : content;
  const length = (bytes.length + LENGTH_BYTES).toString(16).padStart(LENGTH_BYTES, "0");
  return Buffer.concat([Buffer.from(length, "latin1"), bytes]);
}

/** Returns the content in side-band lines. Band 1 carries data, band 2 messages for people, band 3 a final error. */
export function sideBand(band: 1 | 2 | 3, content: Uint8Array): Buffer {
  const lines: Buffer[] = [];
  for (let from = 0; from < content.length; from += BAND_BYTES_MAX) {
    const piece = content.subarray(from, from + BAND_BYTES_MAX);
    lines.push(pktLine(Buffer.concat([Buffer.of(band), piece])));
  }
  return Buffer.concat(lines);
}

/** Thrown if the bytes are not lines of this protocol. */
export class PktLineError extends Error {}

/** Reads lines, and then the bytes that follow the lines. */
export class PktReader {
  readonly #source: AsyncIterator<Buffer>;
  #ahead: Buffer = Buffer.alloc(0);
  #ended = false;

  constructor(source: AsyncIterable<Buffer>) {
    this.#source = source[Symbol.asyncIterator]();
  }

  /** Returns a line's content, `flush`, or `end` if the source has ended. */
  async line(): Promise<Buffer | "flush" | "end"> {
    if (!(await this.#fill(LENGTH_BYTES))) {
      if (this.#ahead.length === 0) return "end";
      throw new PktLineError("a line's length is cut off");
    }
    const digits = this.#ahead.toString("latin1", 0, LENGTH_BYTES);
    if (!/^[0-9a-f]{4}$/i.test(digits)) throw new PktLineError("a line has no length");
    const length = Number.parseInt(digits, 16);
    if (length === 0) {
      this.#take(LENGTH_BYTES);
      return "flush";
    }
    if (length < LENGTH_BYTES || length > LINE_BYTES_MAX) {
      throw new PktLineError("a line has a length that none can have");
    }
    if (!(await this.#fill(length))) throw new PktLineError("a line is cut off");
    return this.#take(length).subarray(LENGTH_BYTES);
  }

  /** Returns the next bytes without consuming them; fewer if the source ends. */
  async peek(bytes: number): Promise<Buffer> {
    await this.#fill(bytes);
    return this.#ahead.subarray(0, bytes);
  }

  /** Yields everything that was not read yet. */
  async *rest(): AsyncGenerator<Buffer, void, undefined> {
    const ahead = this.#take(this.#ahead.length);
    if (ahead.length > 0) yield ahead;
    while (await this.#fill(1)) yield this.#take(this.#ahead.length);
  }

  /** Forgets the bytes that were read ahead. Nothing can be read afterwards. */
  drop(): void {
    this.#ahead = Buffer.alloc(0);
    this.#ended = true;
  }

  async #fill(bytes: number): Promise<boolean> {
    const chunks = this.#ahead.length === 0 ? [] : [this.#ahead];
    let held = this.#ahead.length;
    while (held < bytes && !this.#ended) {
      const next = await this.#source.next();
      if (next.done) this.#ended = true;
      else chunks.push(next.value);
      held += next.value?.length ?? 0;
    }
    // Concatenates the chunks only once, because there may be any number of them.
    const [only] = chunks;
    if (only) this.#ahead = chunks.length === 1 ? only : Buffer.concat(chunks);
    return this.#ahead.length >= bytes;
  }

  #take(bytes: number): Buffer {
    const head = this.#ahead.subarray(0, bytes);
    this.#ahead = this.#ahead.subarray(bytes);
    return head;
  }
}
