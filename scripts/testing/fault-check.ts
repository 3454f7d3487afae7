/** Checks the invariants that must hold when a load has stopped, whatever faults were injected. */
import type { Bus } from "../../actors/runtime/bus/bus.ts";
import { systemClock as clock } from "../../actors/runtime/lib/clock.ts";
import { mailStreamOf, readSentMarks } from "../../actors/runtime/mail/outbox-relay.ts";
import { Outbox } from "../../actors/runtime/shards/outbox.ts";
import { SHARDS } from "../../schemas/limits.ts";
import { allMail } from "../../schemas/split-streams.ts";
import { STREAMS, stateBucket, stateSubjects } from "../../schemas/subjects.ts";
import { COUNTERS, type FaultLoad, LEDGERS, SINKS } from "./fault-load.ts";
import { findViolation } from "./linearizability.ts";

const REST_MS_MAX = 60_000;
const REST_POLL_MS = 100;

/** Stops the load, waits until no work is in progress, and returns descriptions of the violated invariants. */
export async function findProblems(load: FaultLoad, bus: Bus, buckets: number): Promise<string[]> {
  await load.stop();
  const left = await untilAtRest(load, bus, buckets);
  await load.askAll();
  return [
    ...left,
    ...checkHistory(load),
    ...checkSinks(load),
    ...(await checkSum(load)),
    ...(await checkLedgers(load)),
    ...(await checkDeadLetters(bus)),
  ];
}

const sumModel = {
  initial: 0,
  step(sum: number, add: number, output: number | undefined) {
    return output === undefined || output === sum + add ? sum + add : undefined;
  },
};

function checkHistory({ history }: FaultLoad): string[] {
  const violation = findViolation(
    sumModel,
    history.filter(({ key }) => !SINKS.includes(key)),
  );
  if (!violation) return [];
  const { key, state, explained, stuck } = violation;
  const shown = JSON.stringify(stuck.slice(0, 10));
  return [`${key} is not linearizable: ${explained} calls lead to ${state}, then none of ${shown}`];
}

/** Checks that a sink never decreases: a read that starts after another read has ended must not return less. */
function checkSinks({ history }: FaultLoad): string[] {
  const problems: string[] = [];
  for (const key of SINKS) {
    const reads = history.flatMap((one) => (one.key === key && one.ended ? [one] : []));
    for (const read of reads) {
      for (const later of reads) {
        const [before, after] = [read.ended, later.ended];
        if (!before || !after || later.startedAt <= before.at) continue;
        if (after.output < before.output) {
          problems.push(`${key} was ${before.output} and later ${after.output}`);
        }
      }
    }
  }
  return problems;
}

/**
 * Checks the sum of all counters and sinks. Sinks receive what counters give, so the sum must equal the acknowledged
 * additions, plus at most the additions with an unknown outcome.
 */
async function checkSum(load: FaultLoad): Promise<string[]> {
  const counts = await Promise.all([...COUNTERS, ...SINKS].map((key) => load.readCount(key)));
  const added = load.history.filter(({ key, input }) => COUNTERS.includes(key) && input > 0);
  const sumOf = (numbers: number[]) => numbers.reduce((sum, number) => sum + number, 0);
  const sum = sumOf(counts);
  const least = sumOf(added.map(({ input, ended }) => (ended ? input : 0)));
  const most = sumOf(added.map(({ input }) => input));
  if (sum >= least && sum <= most) return [];
  return [`all counters together hold ${sum}, not ${least} (to ${most} with unknown outcomes)`];
}

async function checkLedgers(load: FaultLoad): Promise<string[]> {
  const problems: string[] = [];
  const read = await Promise.all(
    LEDGERS.map(async (key) => [key, await load.readLedger(key)] as const),
  );
  const states = new Map(read);
  for (const [key, { received, faults, set, rung }] of states) {
    problems.push(...faults.map((fault) => `${key}: ${fault}`));
    if (set !== rung) problems.push(`${key}: ${set} reminders set, ${rung} came`);
    for (const [from, { sent }] of states) {
      const [posted = 0, taken = 0] = [sent[key], received[from]];
      if (posted !== taken) problems.push(`${key} took ${taken} entries of ${from}, not ${posted}`);
    }
  }
  for (const [id, sent] of load.entries) {
    const [to = "", from = ""] = id.split("<");
    const taken = states.get(to)?.received[from] ?? 0;
    // Sends without an acknowledgement may or may not have arrived.
    if (taken < sent || taken > sent + load.failures.length) {
      problems.push(`${to} took ${taken} entries of ${from}, not ${sent}`);
    }
  }
  return problems;
}

async function checkDeadLetters(bus: Bus): Promise<string[]> {
  const { state } = await bus.jetstream.streams.info(STREAMS.dead);
  return state.messages === 0 ? [] : [`${state.messages} dead letters`];
}

/**
 * Waits until all mail is handled and removed, all outboxes are published and all reminders have fired. Returns what
 * is unfinished after the timeout.
 */
async function untilAtRest(load: FaultLoad, bus: Bus, buckets: number): Promise<string[]> {
  const giveUpAt = clock.monotonic() + REST_MS_MAX;
  for (;;) {
    const left = await findUnfinished(load, bus, buckets);
    if (left.length === 0 || clock.monotonic() > giveUpAt) return left;
    await clock.wait(REST_POLL_MS);
  }
}

async function findUnfinished(load: FaultLoad, bus: Bus, buckets: number): Promise<string[]> {
  const left: string[] = [];
  for (const { stream, all } of allMail(bus.layout)) {
    left.push(...(await findSubjects(bus, stream, all)));
  }
  for (let bucket = 0; bucket < buckets; bucket++) {
    const { stream, all } = stateSubjects(stateBucket(bucket));
    const prefix = all.slice(0, -1);
    left.push(...(await findSubjects(bus, stream, `${prefix}fired.>`)));
  }
  const ledgers = await Promise.all(LEDGERS.map((key) => load.readLedger(key)));
  if (ledgers.some(({ set, rung }) => set > rung)) left.push("a reminder is still to come");
  if (left.length > 0) return left;
  const unsent = await Promise.all(
    Array.from({ length: SHARDS }, (_, shard) => countUnsent(bus, shard, buckets)),
  );
  return unsent.flatMap((count, shard) => (count > 0 ? [`outbox ${shard} holds ${count}`] : []));
}

async function findSubjects(bus: Bus, stream: string, filter: string): Promise<string[]> {
  const { state } = await bus.jetstream.streams.info(stream, { subjects_filter: filter });
  return Object.entries(state.subjects ?? {}).map(([subject, count]) => `${count} in ${subject}`);
}

async function countUnsent(bus: Bus, shard: number, buckets: number): Promise<number> {
  const { stream, outbox } = stateSubjects(stateBucket(shard % buckets));
  const [stored, { marks }] = await Promise.all([
    bus.readLast(stream, outbox(shard)),
    readSentMarks(bus, shard),
  ]);
  return new Outbox(stored?.string(), marks, mailStreamOf(bus)).entries.length;
}
