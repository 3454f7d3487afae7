/**
 * Counts the waiting work on the bus (tasks of each lane, mail, dead letters), and the replicas of streams that lag
 * behind.
 */
import { setTimeout as wait } from "node:timers/promises";
import { DiscardPolicy, JetStreamApiError, type StreamInfo } from "@nats-io/jetstream";
import type { Bus } from "../../actors/runtime/bus/bus.ts";
import { NO_MESSAGE_FOUND } from "../../actors/runtime/bus/reads/leader-answer.ts";
import { LANE_TASKS_MAX } from "../../schemas/limits.ts";
import { allMail, laneOf, type MailSubjects, splitNames } from "../../schemas/split-streams.ts";
import { STREAMS } from "../../schemas/subjects.ts";
import { missingRight } from "./missing-right.ts";

/**
 * Timeout for the state of one stream: half of QUEUE_FIGURES_MS_MAX. A stream that does not answer in time counts as
 * unavailable.
 */
const STREAM_ANSWER_MS_MAX = 1_000;

export interface Queues {
  lanes: Lane[];
  /** Number of messages between actors whose effect is not durable yet. */
  mail: number;
  deadLetters: number;
  streams: StreamFigures[];
}

export interface StreamFigures {
  stream: string;
  /** Number of replicas that the leader does not report as current: their server is down, catching up or damaged. */
  behind: number;
  /** Undefined if the stream has no leader. */
  info: StreamInfo | undefined;
  /**
   * Bytes at which the stream refuses writes. Undefined if the stream has no leader or no limit of bytes, or if it
   * drops its oldest messages, so that it stays full and nothing is wrong.
   */
  refusesAtBytes: number | undefined;
}

export interface Lane {
  kind: string;
  lane: string;
  /** Tasks that no worker has taken. */
  waiting: number;
  running: number;
  /**
   * Number of waiting and running tasks of the fullest queue. At LANE_TASKS_MAX, the queue refuses more. A lane that
   * serves its keys in turn has a queue for each key.
   */
  fullest: number;
  /** True if a further task is refused; in a lane that serves its keys in turn, a further task of one of the keys. */
  isFull: boolean;
  /** When the oldest waiting or running task was sent. Undefined if there are no tasks or if it is unknown. */
  oldestAt: Date | undefined;
}

/**
 * Reads all figures. Without `readsTasks`, the age of the oldest task is unknown, because only the task's message
 * contains its time.
 */
export async function readQueues(bus: Bus, { readsTasks = true } = {}): Promise<Queues> {
  const [lanes, mail, dead, streams] = await Promise.all([
    readLanes(bus, readsTasks),
    Promise.all(allMail(bus.layout).map((of) => countMail(bus, of))),
    bus.jetstream.streams.info(STREAMS.dead),
    readStreams(bus),
  ]);
  const waiting = mail.reduce((sum, count) => sum + count, 0);
  return { lanes, mail: waiting, deadLetters: dead.state.messages, streams };
}

/**
 * Counts only mail. The stream also contains one message per shard, which says how much of the shard's outbox was sent.
 */
async function countMail(bus: Bus, { stream, sent }: MailSubjects): Promise<number> {
  const { state } = await bus.jetstream.streams.info(stream, { subjects_filter: sent("*") });
  const marks = Object.values(state.subjects ?? {}).reduce((sum, count) => sum + count, 0);
  return state.messages - marks;
}

/**
 * Requests the state of each stream separately: if a server is down, a cluster delays the list of all streams by
 * seconds.
 */
export async function readStreams(bus: Bus): Promise<StreamFigures[]> {
  const names = await Array.fromAsync(bus.jetstream.streams.names());
  return await Promise.all(names.sort().map((stream) => readStream(bus, stream)));
}

async function readStream(bus: Bus, stream: string): Promise<StreamFigures> {
  const asked = bus.jetstream.streams.info(stream).catch(() => undefined);
  const answered = new AbortController();
  const late = wait(STREAM_ANSWER_MS_MAX, undefined, { signal: answered.signal });
  const found = await Promise.race([asked, late.catch(() => undefined)]);
  answered.abort();
  // The stream has no leader, or its only replica is on a server that is down, so nobody can use it.
  if (found === undefined || found === null) {
    return { stream, behind: 1, info: undefined, refusesAtBytes: undefined };
  }
  const others = found.cluster?.replicas ?? [];
  const current = others.filter((copy) => copy.current && !copy.offline).length;
  // One server alone names no leader.
  const leads = found.cluster === undefined || found.cluster.leader ? 1 : 0;
  const { num_replicas: copies, discard, max_bytes: bytes } = found.config;
  const refusesAtBytes = discard === DiscardPolicy.New && bytes > 0 ? bytes : undefined;
  return { stream, behind: copies - current - leads, info: found, refusesAtBytes };
}

/**
 * Reads the lanes of all kinds of tasks. A lane that serves its keys in turn has one consumer for each key; the first
 * worker that takes a task of the key creates the consumer.
 */
async function readLanes(bus: Bus, readsTasks: boolean): Promise<Lane[]> {
  const lanes = new Map<string, Omit<Lane, "isFull"> & { subjects: Set<string> }>();
  const find = (subject: string) => {
    const [, kind = "", lane = "", ...key] = subject.split(".");
    const found = lanes.get(`${kind}.${lane}`) ?? {
      ...{ kind, lane, waiting: 0, running: 0, fullest: 0, oldestAt: undefined },
      subjects: new Set<string>(),
    };
    lanes.set(`${kind}.${lane}`, found);
    const { subject: ofLane, turns } = laneOf(bus.layout, { kind, lane });
    return { found, filter: key.length === 0 ? ofLane : turns };
  };
  for (const stream of splitNames(bus.layout, STREAMS.tasks)) {
    for await (const consumer of bus.jetstream.consumers.list(stream)) {
      const { found } = find(consumer.config.filter_subject ?? "");
      found.running += consumer.num_ack_pending;
    }
    const { state } = await bus.jetstream.streams.info(stream, { subjects_filter: ">" });
    for (const [subject, count] of Object.entries(state.subjects ?? {})) {
      const { found, filter } = find(subject);
      found.waiting += count;
      found.fullest = Math.max(found.fullest, count);
      found.subjects.add(filter);
    }
  }
  return await Promise.all(
    [...lanes.values()]
      .sort((a, b) => nameOf(a).localeCompare(nameOf(b)))
      .map(async ({ subjects, waiting: all, running, kind, lane, fullest }) => {
        const read = readsTasks ? [...subjects] : [];
        const sent = await Promise.all(
          read.map((subject) => firstSentAt(bus, { kind, lane }, subject)),
        );
        const times = sent.flatMap((at) => (at === undefined ? [] : [at.getTime()]));
        const oldestAt = times.length === 0 ? undefined : new Date(Math.min(...times));
        // `running` may exceed `all`, because a task may have ended between the two readings.
        const waiting = Math.max(0, all - running);
        const isFull = fullest >= LANE_TASKS_MAX;
        return { kind, lane, waiting, running, fullest, isFull, oldestAt };
      }),
  );
}

async function firstSentAt(
  bus: Bus,
  of: { kind: string; lane: string },
  subject: string,
): Promise<Date | undefined> {
  try {
    const query = { seq: 1, next_by_subj: subject };
    return (await bus.jetstream.streams.getMessage(laneOf(bus.layout, of).stream, query))?.time;
  } catch (error) {
    // An operator's user may read the queue's counts but not its tasks.
    if (missingRight(error)) return undefined;
    // The task has ended meanwhile.
    if (error instanceof JetStreamApiError && error.code === NO_MESSAGE_FOUND) return undefined;
    throw error;
  }
}

const nameOf = ({ kind, lane }: Pick<Lane, "kind" | "lane">) => `${kind}.${lane}`;
