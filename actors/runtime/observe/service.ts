/** Shows a role of this process to `nats service ls`, `info` and `stats` (ADR-32), with its requests and errors. */
import { randomBytes } from "node:crypto";
import type { Subscription } from "@nats-io/transport-node";
import type { Bus } from "../bus/bus.ts";
import type { Clock } from "../lib/clock.ts";
import type { MessageCounts } from "./service-counts.ts";

interface ServiceParts {
  bus: Bus;
  clock: Clock;
  /** `trunkline-<role>`. */
  name: string;
  version: string;
  description: string;
  metadata?(): Readonly<Record<string, string>>;
  /** Called for each discovery request. */
  endpoints(): readonly ServiceEndpoint[];
}

/** One kind of work of a role, with its counts. */
interface ServiceEndpoint extends Omit<MessageCounts, "kind" | "message"> {
  name: string;
  /** The subject of the requests, as `nats service info` shows it. */
  subject: string;
}

/** Answers discovery requests until `stop`. */
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
    const { name, version } = this.#parts;
    const type = `io.nats.micro.v1.${response}_response`;
    return { type, name, id: this.#id, version, metadata: this.#parts.metadata?.() ?? {} };
  }

  #information() {
    const endpoints = this.#parts.endpoints().map(({ name, subject }) => ({
      name: endpointName(name),
      subject,
      queue_group: "",
      metadata: {},
    }));
    return { ...this.#identity("info"), description: this.#parts.description, endpoints };
  }

  #statistics() {
    const endpoints = this.#parts.endpoints().map((endpoint) => ({
      name: endpointName(endpoint.name),
      subject: endpoint.subject,
      queue_group: "",
      num_requests: endpoint.requests,
      num_errors: endpoint.errors,
      last_error: endpoint.lastError,
      processing_time: nanoseconds(endpoint.ms),
      average_processing_time: nanoseconds(endpoint.ms / Math.max(1, endpoint.requests)),
    }));
    return { ...this.#identity("stats"), started: this.#started, endpoints };
  }
}

const NANOSECONDS = 1_000_000;
const nanoseconds = (ms: number) => Math.round(ms * NANOSECONDS);

/** Drops the characters that the protocol does not allow: only letters, digits, `-` and `_` stay. */
const endpointName = (name: string) => name.replace(/[^\w-]/g, "");
