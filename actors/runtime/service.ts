/** Shows a role of this process to `nats service ls`, `info` and `stats` (ADR-32), with its request counts and errors. */
import { randomBytes } from "node:crypto";
import type { Subscription } from "@nats-io/transport-node";
import type { Bus } from "./bus.ts";
import type { Clock } from "./clock.ts";
import type { MessageCounts } from "./service-counts.ts";

export interface ServiceParts {
  bus: Bus;
  clock: Clock;
  /** `trunkline-<role>`. */
  name: string;
  version: string;
  description: string;
  metadata(): Readonly<Record<string, string>>;
  /** One endpoint a message; asked for at each question. */
  counts(): readonly MessageCounts[];
  /** The subject a message of this kind arrives at, for those who read the list. */
  subject(counts: MessageCounts): string;
}

/** Answers the discovery questions until `stop`. */
export class Service {
  readonly #parts: ServiceParts;
  readonly #id = randomBytes(11).toString("hex");
  readonly #started: string;
  readonly #subscriptions: Subscription[];

  constructor(parts: ServiceParts) {
    this.#parts = parts;
    this.#started = new Date(parts.clock.now()).toISOString();
    const answers = {
      PING: () => this.#identity("ping"),
      INFO: () => this.#information(),
      STATS: () => this.#statistics(),
    };
    this.#subscriptions = Object.entries(answers).flatMap(([verb, answer]) =>
      [`$SRV.${verb}`, `$SRV.${verb}.${parts.name}`, `$SRV.${verb}.${parts.name}.${this.#id}`].map(
        (subject) =>
          parts.bus.connection.subscribe(subject, {
            callback: (error, msg) => {
              if (!error) msg.respond(JSON.stringify(answer()));
            },
          }),
      ),
    );
  }

  stop(): void {
    for (const subscription of this.#subscriptions) subscription.unsubscribe();
  }

  #identity(response: "ping" | "info" | "stats") {
    const { name, version, metadata } = this.#parts;
    const type = `io.nats.micro.v1.${response}_response`;
    return { type, name, id: this.#id, version, metadata: metadata() };
  }

  #information() {
    const endpoints = this.#parts.counts().map((counts) => ({
      name: endpointName(counts),
      subject: this.#parts.subject(counts),
      queue_group: "",
      metadata: {},
    }));
    return { ...this.#identity("info"), description: this.#parts.description, endpoints };
  }

  #statistics() {
    const endpoints = this.#parts.counts().map((counts) => ({
      name: endpointName(counts),
      subject: this.#parts.subject(counts),
      queue_group: "",
      num_requests: counts.requests,
      num_errors: counts.errors,
      last_error: counts.lastError,
      processing_time: nanoseconds(counts.ms),
      average_processing_time: counts.requests === 0 ? 0 : nanoseconds(counts.ms / counts.requests),
    }));
    return { ...this.#identity("stats"), started: this.#started, endpoints };
  }
}

const NANOSECONDS = 1_000_000;
const nanoseconds = (ms: number) => Math.round(ms * NANOSECONDS);

/** Letters, digits, `-` and `_`, as the protocol has it. */
const endpointName = ({ kind, message }: MessageCounts) =>
  `${kind}_${message}`.replace(/[^\w-]/g, "_");
