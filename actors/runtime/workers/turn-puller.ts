/**
 * Pulls tasks of a lane that serves its keys alternately. Each key has a queue on the bus; `TaskTurns` chooses among them.
 */
import { createHash } from "node:crypto";
import { AckPolicy } from "@nats-io/jetstream";
import { nanos } from "@nats-io/transport-node";
import type { Logger } from "pino";
import {
  BUS_REQUEST_MS,
  LANE_TASKS_MAX,
  READER_RETRY_MS,
  TASK_ACK_WAIT_MS,
} from "../../../schemas/limits.ts";
import { laneOf } from "../../../schemas/split-streams.ts";
import { keyOfTurn, queuedSubject, taskConsumer, turnConsumer } from "../../../schemas/subjects.ts";
import type { Bus } from "../bus/bus.ts";
import { isSingleServer } from "../bus/reads/read-in-order.ts";
import { type Clock, OVER } from "../lib/clock.ts";
import { pullTasks } from "./pull-tasks.ts";
import type { PulledMessage } from "./pulled-message.ts";
import type { PulledTask, TaskSource } from "./task-puller.ts";
import { TaskTurns, type TurnLimits } from "./task-turns.ts";

/**
 * Interval at which a worker looks for queues of which it was not notified, such as the queues of a worker that died.
 */
const TURN_LOOK_MS = 1_000;
/**
 * Additional pause on a single server while no queue has a task. A notification ends the pause, and the pause before
 * a lost notification is found is longer: a notification is lost only with the connection of its sender.
 */
const TURN_REST_MS = 9_000;
/**
 * Interval at which a worker looks for tasks in the queue of the whole lane. Only hosts of an older version, in which
 * the lane did not serve keys in turn, queue tasks there. For some time after such a task, a worker looks as often as
 * for other tasks.
 */
const WHOLE_LANE_LOOK_MS = 30_000;
const WHOLE_LANE_USED_MS = 600_000;
/** Stands for the queue of the whole lane among the keys. No task has this key in a lane that serves keys in turn. */
const WHOLE_LANE = "";
/**
 * How long a pull from an empty queue holds a place of the worker. A pull that does not wait at all may miss tasks:
 * after removals the server may count too few remaining messages for a consumer.
 */
const TURN_PULL_MS = 50;
/**
 * A key's consumer is removed after this time without a request. This is longer than the key's last task may run
 * (TASK_RUN_MS_MAX).
 */
const TURN_CONSUMER_IDLE_MS = 30 * 60_000;

interface TurnPullerParts {
  bus: Bus;
  clock: Clock;
  logger: Logger;
  kind: string;
  lane: string;
  limits: TurnLimits;
  /** Aborts when no more tasks are wanted. */
  stopping: AbortSignal;
}

export class TurnPuller implements TaskSource {
  readonly #parts: TurnPullerParts;
  readonly #turns: TaskTurns;
  /** The resolve functions of the idle slots, which wait for a task. */
  readonly #idle: ((pulled: PulledTask | undefined) => void)[] = [];
  /** The consumers of this lane that exist, with the time of the last use. */
  readonly #declared = new Map<string, number>();
  /** Number of pulls in progress; each pull occupies a place of its key. */
  #pulling = 0;
  /** Ends the pause between two looks. */
  #resting = new AbortController();

  constructor(parts: TurnPullerParts) {
    this.#parts = parts;
    this.#turns = new TaskTurns(parts.limits);
    const { bus, kind, lane, stopping } = parts;
    const subscription = bus.connection.subscribe(queuedSubject(kind, lane), {
      callback: (error, message) => {
        if (error) return;
        this.#turns.queued(message.string());
        this.#assign();
        this.#resting.abort(OVER);
      },
    });
    const forget = bus.onReconnect(() => this.#resting.abort(OVER));
    const stop = () => {
      forget();
      subscription.unsubscribe();
      this.#assign();
    };
    stopping.addEventListener("abort", stop, { once: true });
    void this.#look();
  }

  take(): Promise<PulledTask | undefined> {
    return new Promise((resolve) => {
      this.#idle.push(resolve);
      this.#assign();
    });
  }

  #assign(): void {
    if (this.#parts.stopping.aborted) {
      while (this.#idle.length > this.#pulling) this.#idle.pop()?.(undefined);
      return;
    }
    while (this.#idle.length > this.#pulling) {
      const key = this.#turns.begin();
      if (key === undefined) return;
      void this.#pull(key);
    }
  }

  async #pull(key: string): Promise<void> {
    const { clock, logger, kind, lane, stopping } = this.#parts;
    this.#pulling += 1;
    let pulled: PulledTask | undefined;
    try {
      pulled = await this.#next(key);
      if (pulled) this.#turns.queued(key);
    } catch (error) {
      logger.warn({ err: error, kind, lane, key }, "task not pulled, will try again");
      await clock.wait(READER_RETRY_MS, stopping);
      this.#turns.queued(key);
    }
    this.#pulling -= 1;
    if (pulled) this.#idle.shift()?.(pulled);
    else this.#turns.end(key, 0);
    this.#assign();
  }

  /**
   * Returns the next task of the key's queue, or undefined if the queue is empty. Creates the consumer if it is
   * missing.
   */
  async #next(key: string): Promise<PulledTask | undefined> {
    const { bus, clock, kind, lane } = this.#parts;
    const consumer =
      key === WHOLE_LANE ? taskConsumer(kind, lane) : turnConsumer(kind, lane, digestOf(key));
    // The setup of the streams makes the consumer of the whole lane.
    if (key !== WHOLE_LANE) await this.#declare(key, consumer);
    let pulled: Pick<PulledTask, "message" | "pulledAt"> | undefined;
    const { stream } = laneOf(bus.layout, { kind, lane });
    const limits = { count: 1, expiresMs: TURN_PULL_MS, giveUpMs: BUS_REQUEST_MS };
    const take = (message: PulledMessage, pulledAt: number) => {
      pulled = { message, pulledAt };
    };
    const pull = { bus, clock, stream, consumer, ...limits, take };
    await pullTasks(pull).catch((error: unknown) => {
      // Create the consumer again at the next pull: it may have been removed, for example on a bus that was set up
      // anew.
      this.#declared.delete(consumer);
      throw error;
    });
    if (pulled === undefined) return undefined;
    const startedAt = clock.monotonic();
    let isWaiting = false;
    let isAnswering = false;
    const setWaiting = (value: boolean) => {
      if (value === isWaiting || isAnswering) return;
      isWaiting = value;
      this.#turns.setWaiting(key, value);
      this.#assign();
    };
    const setAnswering = () => {
      if (isAnswering) return;
      setWaiting(false);
      isAnswering = true;
      this.#turns.setAnswering(key, true);
      this.#assign();
    };
    const release = () => {
      setWaiting(false);
      if (isAnswering) this.#turns.setAnswering(key, false);
      this.#turns.end(key, clock.monotonic() - startedAt);
      this.#assign();
    };
    return { ...pulled, setWaiting, setAnswering, release };
  }

  async #declare(key: string, consumer: string): Promise<void> {
    const { bus, clock } = this.#parts;
    const { stream, turn } = laneOf(bus.layout, this.#parts);
    const now = clock.monotonic();
    const isThere = (usedAt: number) => now - usedAt < TURN_CONSUMER_IDLE_MS / 2;
    const usedAt = this.#declared.get(consumer);
    this.#declared.set(consumer, now);
    if (usedAt !== undefined && isThere(usedAt)) return;
    for (const [name, at] of this.#declared) if (!isThere(at)) this.#declared.delete(name);
    const config = {
      durable_name: consumer,
      filter_subject: turn(key),
      ack_policy: AckPolicy.Explicit,
      ack_wait: nanos(TASK_ACK_WAIT_MS),
      max_ack_pending: LANE_TASKS_MAX,
      max_deliver: -1,
      inactive_threshold: nanos(TURN_CONSUMER_IDLE_MS),
    };
    await bus.jetstream.consumers.add(stream, config).catch((error: unknown) => {
      this.#declared.delete(consumer);
      throw error;
    });
  }

  /** Looks for queues whose notification was lost, and for tasks that come back because their worker died. */
  async #look(): Promise<void> {
    const { bus, clock, logger, kind, lane, stopping } = this.#parts;
    const { stream, subject, turns } = laneOf(bus.layout, { kind, lane });
    const never = Number.NEGATIVE_INFINITY;
    const wholeLane = { lookedAt: never, usedAt: never };
    const isWholeLaneUsed = (now: number) => now - wholeLane.usedAt < WHOLE_LANE_USED_MS;
    while (!stopping.aborted) {
      let isQuiet = false;
      this.#resting = new AbortController();
      const { signal } = this.#resting;
      try {
        const subjects = await bus.subjectsOf(stream, turns);
        for (const queue of subjects) this.#turns.queued(keyOfTurn(queue));
        const now = clock.monotonic();
        if (isWholeLaneUsed(now) || now - wholeLane.lookedAt >= WHOLE_LANE_LOOK_MS) {
          wholeLane.lookedAt = now;
          const left = await bus.subjectsOf(stream, subject);
          if (left.length > 0) {
            wholeLane.usedAt = now;
            this.#turns.queued(WHOLE_LANE);
          }
        }
        this.#assign();
        // The queue of the whole lane has no notifications.
        isQuiet = subjects.length === 0 && !isWholeLaneUsed(now) && isSingleServer(bus);
      } catch (error) {
        logger.warn({ err: error, kind, lane }, "queues not read, will try again");
      }
      await clock.wait(TURN_LOOK_MS, stopping);
      if (isQuiet) await clock.wait(TURN_REST_MS, AbortSignal.any([stopping, signal]));
    }
  }
}

const DIGEST_CHARS = 32;

const digestOf = (key: string) =>
  createHash("sha256").update(key).digest("hex").slice(0, DIGEST_CHARS);
