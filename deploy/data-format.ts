/**
 * The format number of the stored data. The number counts formats, not releases: it increases when older code cannot
 * read data that newer code stores. New optional fields do not need a new format.
 */
import { setTimeout as wait } from "node:timers/promises";
import { JetStreamApiError, type JetStreamManager } from "@nats-io/jetstream";
import { headers, RequestError, TimeoutError } from "@nats-io/transport-node";
import { z } from "zod";
import {
  type DataLayout,
  FIRST_LAYOUT,
  LAYOUT_SETTINGS,
  mapLayout,
  type WantedLayout,
} from "../schemas/data-layout.ts";
import {
  DATA_FORMAT_SUBJECT,
  stateBucket,
  stateSubjects,
  UPGRADE_SUBJECT,
} from "../schemas/subjects.ts";

/**
 * The data format after an upgrade by this code. Code that reads only this format assumes 64 shards, and one stream
 * for each store.
 */
export const DATA_FORMAT = 1;
/** The format of data with another number of shards or state streams. */
const LAYOUT_FORMAT = 2;
/**
 * The format of data with several streams of another store, which code that reads only the former formats would leave
 * unread. It is the newest format that this code reads.
 */
export const NEWEST_FORMAT = 3;

/**
 * Converts stored data of the previous format to this format. A step must be repeatable: a killed process leaves some
 * of its changes, and the next process runs the step again from the beginning.
 */
export interface UpgradeStep {
  to: number;
  run(jetstream: JetStreamManager): Promise<void>;
}

/** The upgrade steps in order, one for each format after the first. */
const UPGRADES: readonly UpgradeStep[] = [];

/** Interval at which an upgrading process renews its lock. Without a renewal for `LOCK_SECONDS`, the lock expires. */
const LOCK_RENEW_MS = 1_000;
const LOCK_SECONDS = 5;
const LOCK_POLL_MS = 200;

const STREAM = stateSubjects(stateBucket(0)).stream;
const NO_STREAM = 10059;
const NO_MESSAGE = 10037;
/**
 * Error codes of a write that expected another last sequence: 10071, or 10164 in a cluster while another write is in
 * progress.
 */
const CONFLICTS: readonly number[] = [10071, 10164];

const StoredFormat = z.object({
  format: z.int().min(1),
  /** The version of Trunkline that wrote this format first. */
  version: z.string(),
  at: z.iso.datetime(),
  ...mapLayout((part) => z.int().min(1).default(FIRST_LAYOUT[part])),
});
type StoredFormat = z.output<typeof StoredFormat>;

interface FormatOptions {
  version: string;
  /** The format to upgrade to, and its steps. Default: those of this code. */
  format?: number;
  upgrades?: readonly UpgradeStep[];
  /** The layout of new data. */
  layout?: DataLayout;
}

/**
 * Returns the stored layout, or undefined if no server of the bus answers with it yet. Needs no permission to read
 * states. A caller must not assume that data without an answer has the first layout.
 */
export async function findLayout(jetstream: JetStreamManager): Promise<DataLayout | undefined> {
  try {
    const query = { last_by_subj: DATA_FORMAT_SUBJECT };
    const message = await jetstream.direct.getMessage(STREAM, query);
    if (!message) return undefined;
    return layoutOf(StoredFormat.parse(message.json()));
  } catch (error) {
    // A request to a stream that does not exist, or whose servers are all away, has no responders.
    const isNobody = error instanceof RequestError && error.isNoResponders();
    if (isNobody || isAbsent(error)) return undefined;
    throw error;
  }
}

/**
 * Returns the stored layout. Returns the first layout if the leader of the first state stream says that no format is
 * stored, or if the bus has no such stream. Rejects if that stream has no leader. Needs no permission to read states.
 */
export async function readLayout(jetstream: JetStreamManager): Promise<DataLayout> {
  const found = await findLayout(jetstream);
  if (found) return found;
  try {
    const query = { subjects_filter: DATA_FORMAT_SUBJECT };
    const { state } = await jetstream.streams.info(STREAM, query);
    if (Object.keys(state.subjects ?? {}).length === 0) return FIRST_LAYOUT;
  } catch (error) {
    if (isAbsent(error)) return FIRST_LAYOUT;
    throw error;
  }
  // A replica without the message answered, or none did.
  throw new TimeoutError();
}

/** Throws if a setting asks for a number of shards or streams that differs from the stored one. */
export function refuseOtherLayout(stored: DataLayout, wanted: WantedLayout): void {
  mapLayout((part) => {
    const found = wanted[part];
    if (found === undefined || found === stored[part]) return;
    throw new Error(
      `${LAYOUT_SETTINGS[part]}: expected ${stored[part]}, as the first start stored it for the life of the data, found "${found}"; leave it unset`,
    );
  });
}

const layoutOf = (stored: DataLayout): DataLayout => mapLayout((part) => stored[part]);

/** Returns the format of the data on a bus. Returns 1 if no format is stored. */
export async function dataFormatOf(jetstream: JetStreamManager): Promise<number> {
  return (await readFormat(jetstream))?.stored.format ?? 1;
}

/** Throws if a newer version wrote the data. Must run before the process declares streams or changes data. */
export async function refuseNewerData(
  jetstream: JetStreamManager,
  { version, format = NEWEST_FORMAT }: FormatOptions,
): Promise<void> {
  const found = await readFormat(jetstream);
  if (!found || found.stored.format <= format) return;
  const { stored } = found;
  throw new Error(
    `Cannot open the data: version ${stored.version} of Trunkline wrote it in format ${stored.format}, and this version ${version} reads formats up to ${format}; install version ${stored.version} or newer, or restore a backup from before the upgrade into an empty bus (trunkline admin restore)`,
  );
}

/**
 * Stores the format at the first start. At later starts, upgrades older data to this format, step by step. One
 * process does this, and the others wait. The streams must already exist.
 */
export async function upgradeData(
  jetstream: JetStreamManager,
  options: FormatOptions,
): Promise<void> {
  const { version, format = DATA_FORMAT, upgrades = UPGRADES } = options;
  for (;;) {
    const found = await storeFirstFormat(jetstream, options);
    if (found.stored.format >= format) return await refuseNewerData(jetstream, options);
    await refuseWhileHostsRun(jetstream, found.stored.format, format);
    const lock = await takeLock(jetstream);
    if (!lock) {
      await wait(LOCK_POLL_MS);
      continue;
    }
    await using _ = lock;
    const now = await readFormat(jetstream);
    const step = upgrades.find(({ to }) => to === (now?.stored.format ?? 0) + 1);
    if (!now || !step)
      throw new Error(`Cannot upgrade the data: no step leads from format ${now?.stored.format}`);
    await step.run(jetstream);
    const next = { format: step.to, ...layoutOf(now.stored) };
    await writeFormat(jetstream, next, { version, sequence: now.sequence });
  }
}

/**
 * Returns the stored format and layout, and stores them at the first start. The first state stream must already
 * exist.
 */
export async function storeFirstFormat(
  jetstream: JetStreamManager,
  { version, format = DATA_FORMAT, layout = FIRST_LAYOUT }: FormatOptions,
): Promise<{ stored: StoredFormat; sequence: number }> {
  for (;;) {
    const found = await readFormat(jetstream);
    if (found) return found;
    // Data without a stored format has format 1. A new bus has no data and gets the newest format.
    const isOld = await holdsActors(jetstream);
    const numbers = isOld ? FIRST_LAYOUT : layout;
    const first = isOld ? 1 : Math.max(format, formatOf(numbers));
    const stored = { format: first, ...layoutOf(numbers) };
    await writeFormat(jetstream, stored, { version, sequence: 0 });
  }
}

function formatOf({ shards, stateStreams, ...others }: DataLayout): number {
  if (Object.values(others).some((streams) => streams > 1)) return NEWEST_FORMAT;
  const isFirst = shards === FIRST_LAYOUT.shards && stateStreams === FIRST_LAYOUT.stateStreams;
  return isFirst ? 1 : LAYOUT_FORMAT;
}

async function readFormat(
  jetstream: JetStreamManager,
): Promise<{ stored: StoredFormat; sequence: number } | undefined> {
  try {
    const message = await jetstream.streams.getMessage(STREAM, {
      last_by_subj: DATA_FORMAT_SUBJECT,
    });
    if (!message) return undefined;
    return { stored: StoredFormat.parse(message.json()), sequence: message.seq };
  } catch (error) {
    if (isAbsent(error)) return undefined;
    throw error;
  }
}

const isAbsent = (error: unknown) =>
  error instanceof JetStreamApiError && [NO_STREAM, NO_MESSAGE].includes(error.code);

/** Writes the format, unless another process has written it since `sequence`. */
async function writeFormat(
  jetstream: JetStreamManager,
  format: DataLayout & { format: number },
  { version, sequence }: { version: string; sequence: number },
): Promise<void> {
  const stored: StoredFormat = { ...format, version, at: new Date().toISOString() };
  await publishOver(jetstream, DATA_FORMAT_SUBJECT, { payload: JSON.stringify(stored), sequence });
}

/**
 * Publishes a message if the subject's last sequence is the expected one. Returns the new sequence, or undefined if
 * another write came first.
 */
async function publishOver(
  jetstream: JetStreamManager,
  subject: string,
  { payload, sequence, ttl }: { payload: string; sequence: number; ttl?: string },
): Promise<number | undefined> {
  const with_ = headers();
  if (ttl !== undefined) with_.set("Nats-TTL", ttl);
  try {
    const { seq } = await jetstream.jetstream().publish(subject, payload, {
      headers: with_,
      expect: { lastSubjectSequence: sequence },
    });
    return seq;
  } catch (error) {
    if (error instanceof JetStreamApiError && CONFLICTS.includes(error.code)) return undefined;
    throw error;
  }
}

/** Returns true if a host has ever owned a shard on this bus. */
async function holdsActors(jetstream: JetStreamManager): Promise<boolean> {
  const { epochs } = stateSubjects(stateBucket(0));
  const { state } = await jetstream.streams.info(STREAM, { subjects_filter: epochs });
  return Object.keys(state.subjects ?? {}).length > 0;
}

/** Throws while hosts of the older version run, because they would continue to write the older format. */
async function refuseWhileHostsRun(
  jetstream: JetStreamManager,
  from: number,
  to: number,
): Promise<void> {
  const { leases } = stateSubjects(stateBucket(0));
  const { state } = await jetstream.streams.info(STREAM, { subjects_filter: leases });
  const hosts = Object.keys(state.subjects ?? {}).length;
  if (hosts === 0) return;
  throw new Error(
    `Cannot upgrade the data from format ${from} to ${to} while hosts of actors run: stop every process of the older version, wait 2 seconds, and start this one again`,
  );
}

/**
 * Takes the lock for the upgrade. Returns undefined if another process holds it. If the process crashes, the lock
 * expires.
 */
async function takeLock(jetstream: JetStreamManager): Promise<AsyncDisposable | undefined> {
  const payload = JSON.stringify({ pid: process.pid });
  const ttl = `${LOCK_SECONDS}s`;
  const last = await lastSequenceOf(jetstream, UPGRADE_SUBJECT);
  if (last.isHeld) return undefined;
  let sequence = await publishOver(jetstream, UPGRADE_SUBJECT, {
    payload,
    ttl,
    sequence: last.sequence,
  });
  if (sequence === undefined) return undefined;
  const stopped = new AbortController();
  const renewing = (async () => {
    while (!stopped.signal.aborted && sequence !== undefined) {
      await wait(LOCK_RENEW_MS, undefined, { signal: stopped.signal }).catch(() => {});
      if (stopped.signal.aborted) return;
      sequence = await publishOver(jetstream, UPGRADE_SUBJECT, { payload, ttl, sequence }).catch(
        () => sequence,
      );
    }
  })();
  return {
    async [Symbol.asyncDispose]() {
      stopped.abort();
      await renewing;
      await jetstream.streams.purge(STREAM, { filter: UPGRADE_SUBJECT });
    },
  };
}

/** An expired lock leaves an empty marker message for a while. */
async function lastSequenceOf(
  jetstream: JetStreamManager,
  subject: string,
): Promise<{ sequence: number; isHeld: boolean }> {
  try {
    const message = await jetstream.streams.getMessage(STREAM, { last_by_subj: subject });
    return { sequence: message?.seq ?? 0, isHeld: (message?.data.length ?? 0) > 0 };
  } catch (error) {
    if (error instanceof JetStreamApiError && error.code === NO_MESSAGE)
      return { sequence: 0, isHeld: false };
    throw error;
  }
}
