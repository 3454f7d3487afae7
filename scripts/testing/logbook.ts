/**
 * A hosted kind for tests of the runtime. Each key appends lines to its own log on the bus, and fences other writers
 * as agents do.
 */
import { z } from "zod";
import { writeAtomically } from "../../actors/runtime/bus/atomic-batch.ts";
import type { Bus } from "../../actors/runtime/bus/bus.ts";
import {
  defineHosted,
  type HostedContext,
  type HostedDefinition,
  type HostedInstance,
  type HostedMessage,
} from "../../actors/runtime/kinds/define-hosted.ts";
import { defineContract } from "../../schemas/contract.ts";
import { FIRST_LAYOUT } from "../../schemas/data-layout.ts";
import { ActorError } from "../../schemas/errors.ts";
import { agentLogsOf } from "../../schemas/split-streams.ts";
import { STREAMS } from "../../schemas/subjects.ts";

const Lines = z.object({ lines: z.array(z.string()) });

export const logbook = defineContract({
  kind: "logbook",
  messages: {
    write: { input: z.object({ text: z.string() }), reply: z.object({ line: z.int() }) },
    /** Like `write`, but by mail. */
    note: { input: z.object({ text: z.string() }) },
    read: { input: z.object({}), reply: Lines },
  },
});
type LogbookMessages = (typeof logbook)["messages"];

const Stored = z.object({ id: z.string().optional(), text: z.string().optional() });

/** The deadline of a write; the test's bus is on this machine. */
const WRITE_MS = 2_000;

export function logbookKind(bus: Bus): HostedDefinition<LogbookMessages> {
  return defineHosted({
    contract: logbook,
    idleMs: 60_000,
    async open(key, context) {
      const logbookOfKey = new Logbook(bus, key, context);
      await logbookOfKey.load();
      return logbookOfKey;
    },
  });
}

class Logbook implements HostedInstance<LogbookMessages> {
  readonly isBusy = false;
  readonly #bus: Bus;
  readonly #subject: string;
  readonly #context: HostedContext;
  readonly #lines: string[] = [];
  readonly #lineOf = new Map<string, number>();
  #last = 0;
  #writing = Promise.resolve();

  constructor(bus: Bus, key: string, context: HostedContext) {
    this.#bus = bus;
    this.#subject = agentLogsOf(FIRST_LAYOUT, `logbook.${key}`).log(`logbook.${key}`);
    this.#context = context;
  }

  /** Appends an empty line first. This fences the previous owner of the log, whose writes then fail. */
  async load(): Promise<void> {
    const found = await this.#bus.readLast(STREAMS.agents, this.#subject);
    this.#last = await this.#append({}, found?.seq ?? 0);
    for (let next = 1; next < this.#last; ) {
      const stored = await this.#bus.readNext(STREAMS.agents, this.#subject, next);
      if (!stored) break;
      const { id, text } = Stored.parse(stored.json());
      if (id !== undefined && text !== undefined) this.#keep(id, text);
      next = stored.seq + 1;
    }
  }

  async receive({ message, input, id }: HostedMessage<LogbookMessages>): Promise<unknown> {
    if (message === "read") return { lines: this.#lines };
    const { text } = logbook.messages.write.input.parse(input);
    const written = this.#writing.then(() => this.#write(id, text));
    this.#writing = written.then(
      () => {},
      () => {},
    );
    return { line: await written };
  }

  async close(): Promise<void> {
    await this.#writing;
  }

  async #write(id: string, text: string): Promise<number> {
    const known = this.#lineOf.get(id);
    if (known !== undefined) return known;
    try {
      this.#last = await this.#append({ id, text }, this.#last);
    } catch (error) {
      // It is unknown whether the line was written. Ends this instance, and the next instance reads the log.
      this.#context.end(error instanceof Error ? error : new Error(String(error)));
      throw new ActorError("unavailable", "Cannot write: this logbook is closed");
    }
    return this.#keep(id, text);
  }

  #keep(id: string, text: string): number {
    this.#lines.push(text);
    this.#lineOf.set(id, this.#lines.length);
    return this.#lines.length;
  }

  async #append(line: z.infer<typeof Stored>, sequence: number): Promise<number> {
    const write = { subject: this.#subject, payload: JSON.stringify(line), expect: { sequence } };
    return writeAtomically(this.#bus, [write], WRITE_MS);
  }
}
