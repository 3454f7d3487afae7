/** Watches whether a host of actors answers, so that a gateway reports that none is left. */
import type { Logger } from "pino";
import { ask } from "../actors/runtime/bus/ask.ts";
import type { Bus } from "../actors/runtime/bus/bus.ts";
import type { Clock } from "../actors/runtime/lib/clock.ts";
import { callSubject } from "../schemas/subjects.ts";

/** Interval of requests while a host answers. */
const ASK_MS = 5_000;
/** Interval of requests while none answers, so that the gateway serves soon after a host is back. */
const ASK_AGAIN_MS = 1_000;
/**
 * Hosts are missing when none has answered for this long. The only host may restart meanwhile, which takes some
 * seconds; calls wait as long as CALL_DEADLINE_MS.
 */
export const HOSTS_MISSING_MS = 15_000;
/** The command asks the owners of this many shards. A shard has no owner for a moment when a host joins or ends. */
const SHARDS_ASKED = 4;
const ANSWER_MS = 1_000;

interface ActorHostsParts {
  bus: Bus;
  clock: Pick<Clock, "monotonic" | "wait">;
  logger: Logger;
  /** Ends the questions. */
  signal: AbortSignal;
}

export class ActorHosts {
  readonly #parts: ActorHostsParts;
  /** When the servers first reported that no host listens. Undefined while one does, or while it is unknown. */
  #absentSince: number | undefined;
  #isMissing = false;

  /** Asks for hosts at an interval until the signal aborts. */
  static watch(parts: ActorHostsParts): ActorHosts {
    const hosts = new ActorHosts(parts);
    void hosts.#watch();
    return hosts;
  }

  constructor(parts: ActorHostsParts) {
    this.#parts = parts;
  }

  /** Names what is missing if no host of actors has answered for HOSTS_MISSING_MS. */
  get missing(): string[] {
    return this.#isMissing ? ["a host of actors"] : [];
  }

  async #watch(): Promise<void> {
    const { clock, logger, signal } = this.#parts;
    while (!signal.aborted) {
      const found = await this.#find();
      if (found === "nobody") this.#absentSince ??= clock.monotonic();
      else this.#absentSince = undefined;
      const absentMs = clock.monotonic() - (this.#absentSince ?? Number.POSITIVE_INFINITY);
      const isMissing = absentMs >= HOSTS_MISSING_MS;
      if (isMissing && !this.#isMissing) logger.warn({}, "no host of actors answers");
      if (!isMissing && this.#isMissing) logger.info({}, "a host of actors answers again");
      this.#isMissing = isMissing;
      await clock.wait(found === "nobody" ? ASK_AGAIN_MS : ASK_MS, signal);
    }
  }

  /**
   * Asks the owners of some shards until one answers. The question is no call, so that no actor does anything. A host
   * that does not answer is there, or the bus is away, which the gateway reports anyway.
   */
  async #find(): Promise<"somebody" | "nobody"> {
    const { bus } = this.#parts;
    const { shards } = bus.layout;
    for (let count = 0; count < SHARDS_ASKED; count++) {
      const shard = Math.floor((count * shards) / SHARDS_ASKED);
      const subject = callSubject(shard, QUESTION);
      const asked = await ask(bus, subject, "", { timeoutMs: ANSWER_MS }).catch(() => undefined);
      if (asked !== "nobody") return "somebody";
    }
    return "nobody";
  }
}

const QUESTION = "hosts.present";
