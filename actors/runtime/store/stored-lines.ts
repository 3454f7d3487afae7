/** Reads lines that are printed to a subject of a stream: the stored lines, and new lines when they arrive. */
import { type Bus, BusLost } from "../bus/bus.ts";
import { readDirect } from "../bus/reads/read-direct.ts";

export interface StoredLine {
  /** A number that grows from line to line. */
  sequence: number;
  text: string;
  /** The line `after` is no longer stored, so lines before this one may be missing. */
  isAfterGap?: true;
}

interface LinesWanted {
  /** Reads the lines after this sequence; without it, reads the newest lines. */
  after?: number | undefined;
  count: number;
  /** How long to wait for a new line if no line is stored. */
  waitMs: number;
  signal: AbortSignal;
}

export interface StoredLines {
  /** The lines, the oldest first. Rejects where the bus is away. */
  read(subject: string, wanted: LinesWanted): Promise<StoredLine[]>;
}

/** Subscribers receive a line shortly before the stream stores it, so the reader waits this long. */
const STORED_MS = 100;

export class BusLines implements StoredLines {
  readonly #bus: Bus;
  readonly #stream: string;

  constructor(bus: Bus, stream: string) {
    this.#bus = bus;
    this.#stream = stream;
  }

  async read(subject: string, wanted: LinesWanted): Promise<StoredLine[]> {
    const { waitMs, signal } = wanted;
    if (waitMs === 0) return await this.#stored(subject, wanted);
    const printed = Promise.withResolvers<void>();
    const subscription = this.#bus.connection.subscribe(subject, {
      callback: () => printed.resolve(),
    });
    const late = setTimeout(() => printed.resolve(), waitMs);
    const leave = () => printed.resolve();
    signal.addEventListener("abort", leave, { once: true });
    try {
      const there = await this.#stored(subject, wanted);
      if (there.length > 0) return there;
      await printed.promise;
      if (signal.aborted) return [];
      await new Promise((resolve) => setTimeout(resolve, STORED_MS));
      return await this.#stored(subject, wanted);
    } finally {
      clearTimeout(late);
      signal.removeEventListener("abort", leave);
      subscription.unsubscribe();
    }
  }

  async #stored(subject: string, { after, count }: LinesWanted): Promise<StoredLine[]> {
    const lines: StoredLine[] = [];
    // The oldest lines are dropped first. So none is missing after the line `after` if that line is still stored.
    let next = Math.max(1, after ?? 1);
    let mayHaveGap = after !== undefined && after > 0;
    for (;;) {
      const query = { next_by_subj: subject, seq: next };
      const answer = await readDirect(this.#bus, this.#stream, query);
      if (!answer) throw new BusLost(`Cannot read ${subject}: a part of the answer is missing`);
      for (const { headers, string } of answer.messages) {
        const sequence = Number(headers?.get("Nats-Sequence"));
        if (sequence !== after) {
          lines.push({
            sequence,
            text: string(),
            ...(mayHaveGap && { isAfterGap: true as const }),
          });
        }
        mayHaveGap = false;
      }
      // Without `after`, keep only the newest lines; otherwise return the first lines after it.
      if (after === undefined) lines.splice(0, lines.length - count);
      else if (lines.length >= count) return lines.slice(0, count);
      if (answer.pending === 0) return lines;
      next = (lines.at(-1)?.sequence ?? after ?? next) + 1;
    }
  }
}
