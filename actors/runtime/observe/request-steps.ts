/** Writes the steps of requests to TRACES in the background, and reads the steps of one request. */
import { Counter, type Registry } from "prom-client";
import { declaredMetric } from "../../../schemas/metrics.ts";
import { parseJson } from "../../../schemas/parse-json.ts";
import {
  type RequestStep,
  StepsMessage,
  TRACE_MESSAGES_PER_SUBJECT_MAX,
} from "../../../schemas/request-step.ts";
import { STREAMS, traceSubject } from "../../../schemas/subjects.ts";
import type { Bus } from "../bus/bus.ts";
import type { Clock } from "../lib/clock.ts";
import { recordSteps } from "../lib/trace.ts";
import { BusLines } from "../store/stored-lines.ts";

/** A process gathers steps for this time, so that a busy process writes few messages. */
const GATHER_MS = 250;
/**
 * Limits the steps that wait in a process. Above the limit, the process drops further steps and counts them. While
 * the bus is away, it drops all steps.
 */
export const STEPS_WAITING_MAX = 10_000;
/**
 * Limits the steps of one request that a process writes. Of a long crawl, only the steps of its first turns are
 * written.
 */
export const STEPS_PER_REQUEST_MAX = 300;
/**
 * Limits the requests whose steps a process counts. Above the limit it restarts all counts, so a long request may write
 * more steps.
 */
const REQUESTS_COUNTED_MAX = 10_000;
/**
 * Limits the steps of one message. With the longest texts and every character escaped, the steps take 800 kB; the bus
 * accepts messages up to 1 MiB.
 */
const STEPS_PER_MESSAGE_MAX = 60;

interface RecorderParts {
  bus: Bus;
  clock: Clock;
  registry: Registry;
}

/** Records the steps of this process until `stop`. Recording never delays work; it drops steps if it falls behind. */
export class StepRecorder {
  readonly #parts: RecorderParts;
  readonly #written = new Map<string, number>();
  readonly #leave: () => void;
  #waiting: RequestStep[] = [];
  readonly #dropped: Counter;

  constructor(parts: RecorderParts) {
    this.#parts = parts;
    this.#dropped = new Counter({
      ...declaredMetric("trace_steps_dropped_total"),
      registers: [parts.registry],
    });
    this.#leave = recordSteps((step) => this.#record(step));
  }

  /** Stops recording. Writes waiting steps if the bus is reachable. */
  stop(): void {
    this.#leave();
    this.#write();
  }

  #record(step: RequestStep): void {
    const count = this.#written.get(step.run) ?? 0;
    if (count >= STEPS_PER_REQUEST_MAX || this.#waiting.length >= STEPS_WAITING_MAX) {
      this.#dropped.inc();
      return;
    }
    this.#written.set(step.run, count + 1);
    if (this.#written.size > REQUESTS_COUNTED_MAX) this.#written.clear();
    this.#waiting.push(step);
    if (this.#waiting.length === 1) {
      void this.#parts.clock.wait(GATHER_MS).then(() => this.#write());
    }
  }

  #write(): void {
    const { bus } = this.#parts;
    const steps = this.#waiting;
    this.#waiting = [];
    if (bus.isAway) {
      this.#dropped.inc(steps.length);
      return;
    }
    for (const [subject, of] of Map.groupBy(steps, ({ request }) => traceSubject(request))) {
      for (let from = 0; from < of.length; from += STEPS_PER_MESSAGE_MAX) {
        const part = of.slice(from, from + STEPS_PER_MESSAGE_MAX);
        // Does not await an acknowledgement: steps are no client data.
        bus.publish(subject, JSON.stringify(messageOf(part)));
      }
    }
  }
}

function messageOf(steps: readonly RequestStep[]): StepsMessage {
  const runs = Map.groupBy(steps, ({ run }) => run);
  return {
    runs: Array.from(runs.values(), (of) => {
      const { request = "", run = "" } = of[0] ?? {};
      return { request, run, steps: of.map(({ request: _, run: __, ...step }) => step) };
    }),
  };
}

/** Returns the steps of all requests under an id, the earliest first. */
export async function readSteps(
  bus: Bus,
  requestId: string,
  signal: AbortSignal,
): Promise<RequestStep[]> {
  const wanted = { count: TRACE_MESSAGES_PER_SUBJECT_MAX, waitMs: 0, signal };
  const lines = await new BusLines(bus, STREAMS.traces).read(traceSubject(requestId), wanted);
  return lines
    .filter(({ text }) => text.includes(requestId))
    .flatMap(({ text }) => StepsMessage.safeParse(parseJson(text)).data?.runs ?? [])
    .filter(({ request }) => request === requestId)
    .flatMap(({ request, run, steps }) => steps.map((step) => ({ ...step, request, run })))
    .sort((one, other) => one.at - other.at);
}
