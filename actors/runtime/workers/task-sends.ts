/**
 * Sends the messages of a task, before its end and at its end. They are durable before the task continues, and their
 * ids are equal in every try.
 */
import { createHash } from "node:crypto";
import type { Envelope } from "../../../schemas/contract.ts";
import { addressOf } from "../../../schemas/subjects.ts";
import type { Bus } from "../bus/bus.ts";
import type { Clock } from "../lib/clock.ts";
import { currentTrace } from "../lib/trace.ts";
import { publishMail } from "../mail/publish-mail.ts";
import { queueTask } from "../tasks/queue-task.ts";
import type { Task } from "../tasks/task.ts";

const DIGEST_CHARS = 22;

export class TaskSends {
  readonly #bus: Bus;
  readonly #clock: Clock;
  readonly #task: Task;
  /** How often this try has sent the same message. */
  readonly #counts = new Map<string, number>();

  constructor(bus: Bus, clock: Clock, task: Task) {
    this.#bus = bus;
    this.#clock = clock;
    this.#task = task;
  }

  /**
   * Sends messages at the end, with ids by position. A later try may decide otherwise, but a message that was sent
   * stays sent.
   */
  async publish(envelopes: readonly Envelope[], suffix: "sent" | "failed"): Promise<void> {
    for (const [index, envelope] of envelopes.entries()) {
      await this.#publish(envelope, `${this.#task.id}-${suffix}-${index}`);
    }
  }

  /**
   * Sends messages before the end. A later try may send other messages, or in another order, so an id is made from
   * the content, unless the caller gives an id.
   */
  async send(envelopes: readonly Envelope[], id: string | undefined): Promise<void> {
    for (const [index, envelope] of envelopes.entries()) {
      const name = id === undefined ? this.#nameOf(envelope) : `${id}-${index}`;
      await this.#publish(envelope, `${this.#task.id}-early-${name}`);
    }
  }

  #nameOf({ kind, key, message, input }: Envelope): string {
    const content = JSON.stringify([kind, key, message, input]);
    const digest = createHash("sha256").update(content).digest("base64url").slice(0, DIGEST_CHARS);
    const count = (this.#counts.get(digest) ?? 0) + 1;
    this.#counts.set(digest, count);
    return `${digest}-${count}`;
  }

  async #publish(envelope: Envelope, id: string): Promise<void> {
    const { to, kind, key, message, input, lane = "", inTurns = false } = envelope;
    const from = `task.${this.#task.id}`;
    if (to === "actor") {
      const address = addressOf(kind, key);
      const mail = { id, from, address, message, input };
      await publishMail(this.#bus, this.#clock, mail).catch((cause) => {
        // This error is no refusal, so the task is retried.
        throw new Error(`Cannot send ${message} to ${kind}`, { cause });
      });
    } else {
      const task = { id, from, key, message, input, trace: currentTrace() };
      await queueTask(this.#bus, { kind, lane, inTurns }, task);
    }
  }
}
