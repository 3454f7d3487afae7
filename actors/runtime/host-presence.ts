/**
 * Finds a host that has lost its connection before its lease runs out, so that its actors answer elsewhere at once. Each host
 * answers on a subject of its own and asks the next one in the order of their names. Where their server says that nobody listens
 * there any more, twice, it has closed that connection: the process has ended, or knows itself that it is cut off and trusts its
 * lease no longer. Of a host at another server, or one that merely does not answer, this says nothing: its lease runs out.
 */
import type { Subscription } from "@nats-io/transport-node";
import type { Logger } from "pino";
import { PRESENCE_ANSWER_MS, PRESENCE_MS } from "../../schemas/limits.ts";
import { presenceSubject } from "../../schemas/subjects.ts";
import { ask } from "./ask.ts";
import { WriteRefused } from "./atomic-batch.ts";
import type { Bus } from "./bus.ts";
import type { Clock } from "./clock.ts";
import type { LivingHosts } from "./living-hosts.ts";

export interface HostPresenceParts {
  bus: Bus;
  clock: Clock;
  logger: Logger;
  hosts: Pick<LivingHosts, "after">;
  /** Of this host, as its lease has it now. */
  id(): string;
  /** Ends a host's lease; rejects with WriteRefused where it was renewed after this sequence. */
  end(host: string, sequence: number): Promise<void>;
}

/** What is known of the next host, by one connection of this one. */
interface Known {
  host: string;
  disconnections: number;
  /** Times in a row that nobody listened there. */
  missed: number;
}

export class HostPresence {
  readonly #parts: HostPresenceParts;
  readonly #stopped = new AbortController();
  #answering: { id: string; subscription: Subscription } | undefined;
  /** One that has answered, at this host's own server. */
  #known: Known | undefined;

  constructor(parts: HostPresenceParts) {
    this.#parts = parts;
  }

  /** Answers and asks, from now on until `stop`. */
  async watch(): Promise<void> {
    const { signal } = this.#stopped;
    while (!signal.aborted) {
      try {
        this.#answer();
        await this.#askNext();
      } catch (error) {
        this.#parts.logger.warn({ err: error }, "next host not asked, will try again");
      }
      await this.#parts.clock.wait(PRESENCE_MS, signal);
    }
  }

  stop(): void {
    this.#stopped.abort();
    this.#answering?.subscription.unsubscribe();
  }

  get #server(): string {
    return this.#parts.bus.connection.info?.server_id ?? "";
  }

  /** Under the name that it has now. Nobody is taken for gone who has not answered before. */
  #answer(): void {
    const { bus } = this.#parts;
    const id = this.#parts.id();
    if (this.#answering?.id === id || bus.isAway) return;
    this.#answering?.subscription.unsubscribe();
    const callback = (error: Error | null, asked: { respond(server: string): boolean }) => {
      if (!error) asked.respond(this.#server);
    };
    const subscription = bus.connection.subscribe(presenceSubject(id), { callback });
    this.#answering = { id, subscription };
  }

  async #askNext(): Promise<void> {
    const { bus, hosts, id, end, logger } = this.#parts;
    const next = hosts.after(id());
    if (!next) return;
    const { host, sequence } = next;
    const { disconnections } = bus;
    const asked = await ask(bus, presenceSubject(host), "", { timeoutMs: PRESENCE_ANSWER_MS });
    if (bus.disconnections !== disconnections || this.#stopped.signal.aborted) return;
    const known = this.#known;
    const isKnown = known?.host === host && known.disconnections === disconnections;
    if (typeof asked === "object") {
      const isHere = asked.answer.string() === this.#server;
      this.#known = isHere ? { host, disconnections, missed: 0 } : undefined;
    } else if (isKnown) {
      known.missed = asked === "nobody" ? known.missed + 1 : 0;
      if (known.missed < TIMES_MISSED) return;
      this.#known = undefined;
      try {
        await end(host, sequence);
        logger.warn({ host }, "host has lost its connection, lease ended");
      } catch (error) {
        if (!(error instanceof WriteRefused && error.conflict)) throw error;
        // It is back, or another has ended its lease.
      }
    }
  }
}

/** Once may be a client that is just coming back: it tries every tenth of a second. */
const TIMES_MISSED = 2;
