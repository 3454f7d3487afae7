/**
 * Runs the real definitions of actors and workers in one process without a bus. State is kept in a Map and not
 * stored.
 */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import type { ActorClient } from "../../actors/runtime/calls/actor-client.ts";
import type { AnyActorDefinition } from "../../actors/runtime/kinds/define-actor.ts";
import type {
  AnyHostedDefinition,
  HostedContext,
} from "../../actors/runtime/kinds/define-hosted.ts";
import { currentTrace } from "../../actors/runtime/lib/trace.ts";
import type { TaskRun } from "../../actors/runtime/tasks/task-client.ts";
import {
  type AnyWorkerDefinition,
  type Envelopes,
  envelopesOf,
  type TaskContext,
} from "../../actors/runtime/workers/define-worker.ts";
import type { Contract, Envelope, TaskContract, TaskSchema } from "../../schemas/contract.ts";
import { ActorError } from "../../schemas/errors.ts";
import { LANE_TASKS_MAX, TASK_TRIES_MAX } from "../../schemas/limits.ts";
import { runHandler } from "./run-handler.ts";

export interface MemoryActors extends ActorClient {
  /** Resolves when no sends and no tasks are in progress. */
  settled(): Promise<void>;
  /** Delivers all reminders that are due by the clock `now`. Resolves when they have been handled. */
  remind(): Promise<void>;
}

interface AnyOutcome {
  reply?: unknown;
  chunks?: AsyncIterable<Uint8Array>;
  send?: Envelopes;
  tell?: Envelopes;
}

type RunOptions = { deadlineMs: number; signal: AbortSignal };

export function memoryActors({
  actors = [],
  hosted = () => [],
  workers = [],
  now = Date.now,
  waitingMax = LANE_TASKS_MAX,
}: {
  actors?: readonly AnyActorDefinition[];
  /** The hosted kinds. Each message is handled by a new instance. */
  hosted?: (actors: ActorClient) => readonly AnyHostedDefinition[];
  workers?: readonly AnyWorkerDefinition[];
  now?: () => number;
  /** Maximum number of tasks of one lane that wait for a slot. */
  waitingMax?: number;
}): MemoryActors {
  const definitions = new Map(actors.map((definition) => [definition.contract.kind, definition]));
  const crews = new Map(workers.map((worker) => [worker.contract.kind, worker]));
  const states = new Map<string, unknown>();
  const rowsOf = new Map<string, Map<string, unknown>>();
  const reminders = new Map<string, { kind: string; key: string; due: Map<string, number> }>();
  const lanes = new Map<string, Lane>();
  const underWay = new Set<Promise<unknown>>();

  // The types of ActorClient connect contract, message, input and reply. A Map of kinds cannot express that, so this
  // needs a cast.
  const all = { call, send, run, settled, remind } as MemoryActors;
  const hosts = new Map(hosted(all).map((definition) => [definition.contract.kind, definition]));
  return all;

  async function call(
    { kind }: Contract,
    key: string,
    message: string,
    input: unknown,
    { signal }: { signal?: AbortSignal } = {},
  ): Promise<unknown> {
    signal?.throwIfAborted();
    return handle(kind, key, message, input);
  }

  async function send({ kind }: Contract, key: string, message: string, input: unknown) {
    deliver([{ to: "actor", kind, key, message, input }]);
  }

  async function settled(): Promise<void> {
    while (underWay.size > 0) await Promise.allSettled(underWay);
  }

  async function remind(): Promise<void> {
    for (const { kind, key, due } of reminders.values()) {
      for (const [message, at] of [...due]) {
        if (at > now()) continue;
        due.delete(message);
        handle(kind, key, message, {});
      }
    }
    await settled();
  }

  function handle(kind: string, key: string, message: string, input: unknown): unknown {
    const host = hosts.get(kind);
    if (host) return handleHosted(host, key, message, input);
    const definition = definitions.get(kind);
    if (!definition) throw new ActorError("unavailable", `Cannot reach ${kind}: no host serves it`);
    const address = `${kind}.${key}`;
    const rows = rowsOf.get(address) ?? new Map<string, unknown>();
    const handled = runHandler(
      definition,
      message,
      states.get(address) ?? definition.initial,
      // The input is copied as if it crossed the bus.
      JSON.parse(JSON.stringify(input)),
      { key, now: now(), newId: () => randomUUID().replaceAll("-", ""), trace: currentTrace, rows },
    );
    states.set(address, handled.state);
    if (handled.forgotten) {
      rowsOf.delete(address);
      reminders.delete(address);
    } else {
      rowsOf.set(address, withChanges(rows, handled.rows));
      const due = withChanges(reminders.get(address)?.due ?? new Map(), handled.remind);
      reminders.set(address, { kind, key, due });
    }
    deliver(handled.send);
    return handled.reply;
  }

  async function handleHosted(
    { open, contract }: AnyHostedDefinition,
    key: string,
    message: string,
    input: unknown,
  ): Promise<unknown> {
    const context: HostedContext = {
      confirm: async () => true,
      hasOtherMail: () => false,
      end() {},
      signal: new AbortController().signal,
    };
    const instance = await open(key, context);
    const read = contract.messages[message]?.input.parse(JSON.parse(JSON.stringify(input)));
    const deadlineAt = Number.POSITIVE_INFINITY;
    return instance.receive({ message, input: read, id: randomUUID(), deadlineAt });
  }

  function deliver(envelopes: readonly Envelope[]): void {
    for (const envelope of envelopes) {
      const { to, kind, key, message, input } = envelope;
      const delivered = Promise.resolve().then(() =>
        to === "actor" ? handle(kind, key, message, input) : runSent(envelope),
      );
      underWay.add(delivered);
      // A failed delivery is ignored: on the bus, too, the sender does not notice that its mail was refused or that
      // no host serves the kind.
      const done = () => void underWay.delete(delivered);
      delivered.then(done, done);
    }
  }

  async function run(
    { kind, messages }: TaskContract,
    key: string,
    message: string,
    input: unknown,
    { deadlineMs, signal }: RunOptions,
  ): Promise<TaskRun<unknown>> {
    const crew = crews.get(kind);
    const schema: TaskSchema | undefined = messages[message];
    if (!crew || !schema) throw new ActorError("unavailable", `Cannot reach ${kind}: no worker`);
    const lane = laneOf(`${kind}.${schema.lane}`, crew.slots[schema.lane] ?? 0);
    const release = await lane.enter();
    const deadline = AbortSignal.timeout(deadlineMs);
    const ending = AbortSignal.any([signal, deadline]);
    const context = contextOf(key, ending);
    try {
      const parsed = schema.input.parse(JSON.parse(JSON.stringify(input)));
      const outcome = await tryTask(crew, message, parsed, context);
      const reply = schema.reply?.parse(outcome.reply);
      return { reply, queuedMs: 0, chunks: finish(outcome, release, context.signal) };
    } catch (error) {
      release();
      if (signal.aborted) throw signal.reason;
      if (deadline.aborted) throw new ActorError("deadline_exceeded", "Cannot run task: too late");
      throw error;
    }
  }

  /** Runs a task that an actor sent, so no caller waits for its result. */
  async function runSent({ kind, key, message, input, lane = "" }: Envelope): Promise<void> {
    const crew = crews.get(kind);
    const schema: TaskSchema | undefined = crew?.contract.messages[message];
    assert(crew && schema, `MemoryActors has no worker for ${kind}`);
    const release = await laneOf(`${kind}.${lane}`, crew.slots[lane] ?? 0).enter();
    const { signal } = new AbortController();
    const context = contextOf(key, signal);
    const parsed = schema.input.parse(JSON.parse(JSON.stringify(input)));
    const outcome = await tryTask(crew, message, parsed, context).finally(release);
    deliver([...envelopesOf(outcome.send), ...envelopesOf(outcome.tell)]);
  }

  function contextOf(key: string, signal: AbortSignal): TaskContext {
    return {
      id: randomUUID(),
      key,
      signal,
      lapsed: new AbortController().signal,
      isSure: () => true,
      setWaiting: () => {},
      setAnswering: () => {},
      attempt: 1,
      send: async (envelopes) => deliver(envelopes),
      async tell(envelope) {
        deliver([envelope]);
        return true;
      },
      tellByCall: async (envelope) => deliver([envelope]),
      call: call as ActorClient["call"],
    };
  }

  async function* finish(
    { chunks, send, tell }: AnyOutcome,
    release: () => void,
    signal: AbortSignal,
  ): AsyncGenerator<Uint8Array> {
    try {
      for await (const chunk of chunks ?? []) {
        signal.throwIfAborted();
        yield chunk;
      }
    } finally {
      release();
      deliver([...envelopesOf(send), ...envelopesOf(tell)]);
    }
  }

  async function tryTask(
    crew: AnyWorkerDefinition,
    message: string,
    input: unknown,
    context: TaskContext,
  ): Promise<AnyOutcome> {
    const handler = crew.handlers[message];
    assert(handler, `${crew.contract.kind} has no ${message}`);
    for (let attempt = 1; ; attempt++) {
      try {
        return await handler(input, { ...context, attempt });
      } catch (error) {
        context.signal.throwIfAborted();
        const refused = error instanceof ActorError;
        if (!refused && attempt < TASK_TRIES_MAX) continue;
        const given = refused
          ? error
          : new ActorError("internal_error", "Cannot finish task: it failed");
        deliver(crew.failures[message]?.(input, given, context) ?? []);
        throw given;
      }
    }
  }

  function laneOf(name: string, slots: number): Lane {
    const lane = lanes.get(name) ?? new Lane(slots, waitingMax);
    lanes.set(name, lane);
    return lane;
  }
}

/** Limits the running tasks and the waiting tasks of a lane. */
class Lane {
  readonly #waiting: (() => void)[] = [];
  readonly #waitingMax: number;
  #free: number;

  constructor(slots: number, waitingMax: number) {
    this.#free = slots;
    this.#waitingMax = waitingMax;
  }

  /** Waits for a slot. Resolves to a function that frees the slot. Calling this function again has no effect. */
  async enter(): Promise<() => void> {
    if (this.#free > 0) this.#free--;
    else if (this.#waiting.length < this.#waitingMax) {
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    } else throw new ActorError("queue_full", "Cannot run task: as many wait as the queue holds");
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      const next = this.#waiting.shift();
      if (next) next();
      else this.#free++;
    };
  }
}

/** Returns a copy of `entries` with `changes` applied. `null` removes an entry, and undefined leaves it unchanged. */
function withChanges<T>(
  entries: ReadonlyMap<string, T>,
  changes: Readonly<Record<string, T | null | undefined>>,
): Map<string, T> {
  const next = new Map(entries);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null) next.delete(name);
    else if (value !== undefined) next.set(name, value);
  }
  return next;
}
