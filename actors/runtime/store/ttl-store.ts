/** Keeps values by key for a limited time, to save work. The cache may lose any value at any time. */
import type { z } from "zod";
import { MESSAGE_BYTES_MAX } from "../../../schemas/limits.ts";
import { cacheSubject, STREAMS } from "../../../schemas/subjects.ts";
import { writeAtomically } from "../bus/atomic-batch.ts";
import type { Bus } from "../bus/bus.ts";

/** A cache that does not answer within this time counts as empty. */
const CACHE_ANSWER_MS = 500;

export class TtlStore<T> {
  readonly #bus: Bus;
  readonly #name: string;
  readonly #schema: z.ZodType<T>;

  /** `name`, a token of `[a-z-]`, separates the keys of one use from those of others. */
  constructor(bus: Bus, name: string, schema: z.ZodType<T>) {
    this.#bus = bus;
    this.#name = name;
    this.#schema = schema;
  }

  /**
   * Keeps the key's newest value for a number of seconds, at least 1. Returns false when the value is too large or
   * the bus is away.
   */
  async put(key: string, value: T, ttlS: number): Promise<boolean> {
    const payload = JSON.stringify(value);
    if (Buffer.byteLength(payload) > MESSAGE_BYTES_MAX) return false;
    const headers = { "Nats-TTL": `${ttlS}s` };
    try {
      const write = { subject: this.#subjectOf(key), payload, headers };
      await writeAtomically(this.#bus, [write], CACHE_ANSWER_MS);
      return true;
    } catch {
      return false; // As lost as it may be anyway.
    }
  }

  /** The key's value. Undefined where there is none, the schema refuses it, or the bus does not answer in time. */
  async get(key: string): Promise<T | undefined> {
    try {
      const subject = `$JS.API.DIRECT.GET.${STREAMS.cache}.${this.#subjectOf(key)}`;
      const answer = await this.#bus.request(subject, "", { timeoutMs: CACHE_ANSWER_MS });
      // An answer without a value has a status code.
      if (answer.headers?.code) return undefined;
      return this.#schema.safeParse(answer.json()).data;
    } catch {
      return undefined;
    }
  }

  #subjectOf(key: string): string {
    return cacheSubject(`${this.#name}.${key}`);
  }
}
