/**
 * A chain: messages under one subject that one host writes. Each write expects the previous message to be the last. A
 * journal is a chain, and so are the checkpoints of a host. Another host ends a chain with a seal; the stream then
 * refuses all further writes of the chain's host.
 */
import { z } from "zod";
import { JETSTREAM_ANSWER_MS } from "../../../schemas/limits.ts";
import { type Write, WriteRefused, writeAtomically } from "../bus/atomic-batch.ts";
import type { Bus } from "../bus/bus.ts";
import type { Clock } from "../lib/clock.ts";

/** Pause before a write without a clear outcome is repeated: a write in flight takes a few milliseconds. */
const CHAIN_RETRY_MS = 20;
/** A host that cannot write for this long continues under a new name. An election takes up to 9 s. */
const CHAIN_UNKNOWN_MS_MAX = 10_000;

/** Each message of a chain has a number, by which its host recognizes it. A seal has no number. */
const StoredLink = z.object({ number: z.number().optional() });
export const StoredSeal = z.object({ sealedBy: z.string(), from: z.number().default(0) });

/**
 * The chain is sealed, or its host cannot determine whether its last write is stored. The host must stop writing to the
 * chain.
 */
export class ChainLost extends Error {}

interface ChainParts {
  bus: Bus;
  clock: Clock;
  stream: string;
  subject: string;
  /** True when the host continues under another name, so that it must write nothing more. */
  isOver(): boolean;
}

export class Chain {
  readonly #parts: ChainParts;
  #last = 0;
  #number = 0;

  constructor(parts: ChainParts) {
    this.#parts = parts;
  }

  /** Sequence of the chain's last message. */
  get last(): number {
    return this.#last;
  }

  /** The number that the next message must hold. */
  get number(): number {
    return this.#number;
  }

  /**
   * Stores the writes of `beside` and then the payloads as the chain's next messages: all or nothing. All payloads
   * hold the same number. Returns the sequence of the first payload. Rejects with WriteRefused if nothing was stored,
   * or with ChainLost. Repeats a write that got no answer: only one of the tries can be stored.
   */
  async append(payloads: readonly string[], beside: readonly Write[] = []): Promise<number> {
    const { bus, clock, subject, isOver } = this.#parts;
    const links = payloads.map((payload) => ({ subject, payload }));
    const [first, ...rest] = links;
    if (!first) throw new Error("Cannot write to a chain: there is no payload");
    const writes = [...beside, { ...first, expect: { sequence: this.#last } }, ...rest];
    const givesUpAt = clock.monotonic() + CHAIN_UNKNOWN_MS_MAX;
    for (let mayBeStored = false; ; ) {
      let last: number | undefined;
      try {
        last = await writeAtomically(bus, writes, JETSTREAM_ANSWER_MS);
      } catch (error) {
        const isRefused = error instanceof WriteRefused;
        if (isRefused && !error.conflict && !mayBeStored) throw error;
        mayBeStored ||= !isRefused;
        if (isRefused && error.conflict) last = await this.#findStored();
      }
      if (last !== undefined) {
        this.#last = last;
        this.#number += 1;
        return last - rest.length;
      }
      if (isOver() || clock.monotonic() > givesUpAt) {
        throw new ChainLost(`Cannot write to ${subject}: whether it was written is unknown`);
      }
      await clock.wait(CHAIN_RETRY_MS);
    }
  }

  /**
   * Returns the last sequence if the chain ends with the message being written; undefined if an earlier try may still
   * be in flight. Rejects with ChainLost if any other message follows the last one.
   */
  async #findStored(): Promise<number | undefined> {
    const { bus, stream, subject } = this.#parts;
    let found: Awaited<ReturnType<Bus["readLast"]>>;
    try {
      found = await bus.readLast(stream, subject);
    } catch {
      return undefined; // The bus is away: it is read again after the next try.
    }
    if ((found?.seq ?? 0) === this.#last) return undefined;
    if (found && StoredLink.parse(found.json()).number === this.#number) return found.seq;
    throw new ChainLost(`Cannot write to ${subject}: another host has sealed it`);
  }
}

/**
 * Ensures that a chain has a seal, and returns the payload of the seal. `seal` maps the payload of the chain's last
 * message to the payload of a new seal. Callers may repeat the call: the first seal counts.
 */
export async function sealChain(
  bus: Bus,
  { stream, subject }: Pick<ChainParts, "stream" | "subject">,
  seal: (last: string | undefined) => string,
): Promise<string> {
  const last = (await bus.readLast(stream, subject))?.string();
  if (last !== undefined && StoredSeal.safeParse(JSON.parse(last)).success) return last;
  const payload = seal(last);
  await writeAtomically(bus, [{ subject, payload }]);
  return payload;
}
