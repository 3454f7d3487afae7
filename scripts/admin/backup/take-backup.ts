/**
 * Makes a backup while the platform runs. Most messages are read without a time limit. At the end, all writes pause
 * for some milliseconds, so that the backup captures all streams at the same moment.
 */
import { setTimeout as wait } from "node:timers/promises";
import { jetstreamManager, type StreamInfo } from "@nats-io/jetstream";
import { type Bus, BusLost } from "../../../actors/runtime/bus/bus.ts";
import { type Clock, systemClock } from "../../../actors/runtime/lib/clock.ts";
import { dataFormatOf } from "../../../deploy/data-format.ts";
import { RESTORE_MARK } from "../../../deploy/restore-mark.ts";
import { HOLD_MS_MAX } from "../../../schemas/limits.ts";
import { storeOf } from "../../../schemas/split-streams.ts";
import {
  changesNoActor,
  HOLD_SUBJECT,
  isState,
  LOSABLE_STREAMS,
  STREAMS,
} from "../../../schemas/subjects.ts";
import { version } from "../../version.ts";
import {
  type Backup,
  type BackupFolder,
  DamagedBackup,
  type StoredStream,
} from "./backup-folder.ts";
import { followsMark, nextMark, storeMark } from "./backup-mark.ts";
import { StreamCapture } from "./stream-capture.ts";

/** Streams that a backup omits, because they hold data that may be lost at any time, or no data. */
const LEFT_OUT: ReadonlySet<string> = new Set([...LOSABLE_STREAMS, STREAMS.kept, RESTORE_MARK]);
/**
 * Streams that may change at the moment of the backup. Processes write their messages before a state names the
 * messages, and remove the messages later, or tolerate duplicates. Nobody may write to any other stream at that
 * moment.
 */
const LOOSE: ReadonlySet<string> = new Set([
  ...[STREAMS.tasks, STREAMS.dead, STREAMS.crawl, STREAMS.packs, STREAMS.apps, STREAMS.appLogs],
  STREAMS.renderJobs,
]);

/** Timeout for the list of all streams: the server waits up to 4 seconds for the leaders of the streams. */
const LIST_MS_MAX = 10_000;
/**
 * Maximum number of passes that read new messages before the pause. The fewer messages are left, the shorter the
 * pause is.
 */
const PASSES_MAX = 20;
const LEFT_MAX = 50;
/**
 * Maximum number of pauses, until one of them has no writes. A process without a connection to the bus does not
 * receive the pause and may write.
 */
const HOLDS_MAX = 40;
/** Maximum number of further listings in a row, if removals may have been missed. */
const LISTINGS_MAX = 5;
const BETWEEN_HOLDS_MS = 250;
const READ_ON_MS = 250;

export interface BackupResult {
  backup: Omit<Backup, "layout">;
  /** Bytes of the files that this backup added to the folder. */
  addedBytes: number;
  /** Duration of the pause in milliseconds, and the number of pauses that were needed. */
  pausedMs: number;
  holds: number;
  /** Lines for the operator about what was not as usual. */
  notes: string[];
}

interface BackupOptions {
  /** Called at the beginning of each pause. The last pause is the moment of the backup. */
  atMoment?: () => void;
  clock?: Clock;
}

export async function takeBackup(
  bus: Bus,
  folder: BackupFolder,
  { atMoment = () => {}, clock = systemClock }: BackupOptions = {},
): Promise<BackupResult> {
  const format = await dataFormatOf(bus.jetstream);
  const streams = await streamsOf(bus);
  if (!streams.some(({ config }) => isState(config.name)))
    throw new Error("Cannot back up the bus: it holds no data of Trunkline");
  const newest = (await folder.moments()).at(-1);
  const notes: string[] = [];
  const last = newest === undefined ? undefined : await readOrNote(folder, newest, notes);
  const previous = last && (await followsMark(bus, last.mark)) ? last : undefined;
  if (last && !previous) notes.push(beginsAnew(last));
  const captures: StreamCapture[] = [];
  for (const info of streams) {
    const before = previous?.streams.find(({ name }) => name === info.config.name);
    const capture = await StreamCapture.begin(bus, folder, info, { previous: before, clock });
    if (capture.problem !== undefined)
      notes.push(`Read all messages of ${capture.name} again: ${capture.problem}`);
    captures.push(capture);
  }
  // Streams of blobs are read first, because they take longest. Streams of the state are read last, because they
  // change fastest.
  for (const capture of captures) await capture.readOn();
  await readUntilFew(captures);
  await list(captures, captures);
  await readUntilFew(captures);
  const { moment: now, ...pause } = await cutAtOneMoment(bus, captures, atMoment);
  const moment = momentAfter(newest, now);
  if (moment !== now)
    notes.push(
      `The clock says ${now}, which is not after the newest backup of this folder: check the clock. This backup counts as the newest and has the moment ${moment}`,
    );
  const stored: StoredStream[] = [];
  for (const capture of captures) stored.push(await capture.finish());
  const backup = {
    ...{ moment, version: version(), format, streams: stored },
    natsServer: bus.connection.info?.version ?? "",
    mark: nextMark(previous?.mark),
  };
  await folder.write(backup);
  await storeMark(bus, backup.mark).catch((error: unknown) => {
    notes.push(
      `The next backup reads all messages again, because the bus stored no mark: ${error}`,
    );
  });
  const had = new Set(last?.streams.flatMap(filesOf).map(({ file }) => file));
  const added = stored.flatMap(filesOf).filter(({ file }) => !had.has(file));
  return { backup, ...pause, addedBytes: added.reduce((sum, { bytes }) => sum + bytes, 0), notes };
}

const filesOf = ({ parts, present }: StoredStream) => [...parts, present];

/**
 * Returns the newest backup of the folder. If its file is damaged, adds a note and returns undefined, so that the new
 * backup begins anew. It cannot continue an earlier backup: only the damaged file has the id that the bus must have.
 */
async function readOrNote(
  folder: BackupFolder,
  newest: string,
  notes: string[],
): Promise<Backup | undefined> {
  try {
    return await folder.read(newest);
  } catch (error) {
    if (!(error instanceof DamagedBackup)) throw error;
    notes.push(
      `Read all messages again: the newest backup cannot be continued. ${error.message}. Bring this file back from a copy of the folder, or remove it`,
    );
    return undefined;
  }
}

/**
 * Returns the streams to back up. The streams of the state come last, because they change fastest. Rejects if a
 * stream has no leader: such a stream is missing in the bus's list of streams, and only the list of names contains
 * it.
 */
async function streamsOf(bus: Bus): Promise<StreamInfo[]> {
  const leaderless = new Set<string>();
  for await (const name of bus.jetstream.streams.names()) {
    if (!LEFT_OUT.has(name)) leaderless.add(name);
  }
  const streams: StreamInfo[] = [];
  const patient = await jetstreamManager(bus.connection, { checkAPI: false, timeout: LIST_MS_MAX });
  for await (const info of patient.streams.list()) {
    leaderless.delete(info.config.name);
    if (!LEFT_OUT.has(info.config.name)) streams.push(info);
  }
  for (const name of leaderless) throw new Error(`Cannot back up ${name}: it has no leader`);
  const rank = ({ config }: StreamInfo) => (isState(config.name) ? 1 : 0);
  return streams.sort((a, b) => rank(a) - rank(b) || (a.config.name < b.config.name ? -1 : 1));
}

function beginsAnew({ moment, mark }: Backup): string {
  const reason = mark
    ? "the bus does not have its mark: the bus is another one, was set back to an earlier state, or continues another copy of this folder"
    : "an older version made it, and the bus continues another folder";
  return `Read all messages again instead of continuing the backup of ${moment}: ${reason}`;
}

/**
 * Returns the moment of a new backup: now, or 1 ms after the newest backup of the folder. A clock that was set back must
 * not make an older backup the newest one.
 */
function momentAfter(newest: string | undefined, now: string): string {
  if (newest === undefined || newest < now) return now;
  return new Date(Date.parse(newest) + 1).toISOString();
}

async function readUntilFew(captures: readonly StreamCapture[]): Promise<void> {
  for (let pass = 0; pass < PASSES_MAX; pass++) {
    const read = await Promise.all(captures.map((capture) => capture.readOn()));
    if (read.reduce((sum, count) => sum + count, 0) <= LEFT_MAX) return;
  }
}

/**
 * Lists one stream after another, and meanwhile continues to read all streams that are followed. The streams of the
 * state are read apart from the others, which may take long: the marker of a removed row exists for only 10 seconds, and
 * a backup without the marker would contain the removed row.
 */
async function list(
  captures: readonly StreamCapture[],
  listed: readonly StreamCapture[],
): Promise<void> {
  const done = new AbortController();
  const { signal } = done;
  const follow = async (some: readonly StreamCapture[]) => {
    while (!signal.aborted) {
      for (const capture of some) if (capture.isFollowing) await capture.readOn();
      await wait(READ_ON_MS, undefined, { signal }).catch(() => {}); // The listing has ended.
    }
  };
  const listing = async () => {
    try {
      for (const capture of listed) await capture.list();
    } finally {
      done.abort();
    }
  };
  const states = captures.filter(({ name }) => isState(name));
  const others = captures.filter(({ name }) => !isState(name));
  await Promise.all([listing(), follow(states), follow(others)]);
}

/** Lists streams of the state anew, until the reads of each one since its listing were close enough to each other. */
async function listMissed(captures: readonly StreamCapture[]): Promise<void> {
  for (let listings = 0; ; listings++) {
    const missed = captures.filter(({ missesRemovals }) => missesRemovals);
    const [first] = missed;
    if (!first) return;
    if (listings === LISTINGS_MAX)
      throw new BusLost(
        `Cannot back up ${first.name}: its new messages are read too slowly to see each removal; try again at a quieter hour`,
      );
    await list(captures, missed);
    await readUntilFew(captures);
  }
}

/** Pauses all writes and settles all captures. Repeats this until no write happened during the pause. */
async function cutAtOneMoment(
  bus: Bus,
  captures: readonly StreamCapture[],
  atMoment: () => void,
): Promise<{ moment: string; pausedMs: number; holds: number }> {
  for (let hold = 1; hold <= HOLDS_MAX; hold++) {
    await listMissed(captures);
    const startedAt = performance.now();
    const isHeld = () => performance.now() - startedAt < HOLD_MS_MAX;
    const moment = new Date().toISOString();
    atMoment();
    bus.connection.publish(HOLD_SUBJECT, String(HOLD_MS_MAX));
    try {
      while (isHeld() && !captures.some(({ missesRemovals }) => missesRemovals)) {
        if (await isCut(captures))
          return { moment, pausedMs: performance.now() - startedAt, holds: hold };
      }
    } finally {
      bus.connection.publish(HOLD_SUBJECT, "0");
      await bus.connection.flush();
    }
    await wait(BETWEEN_HOLDS_MS);
    await readUntilFew(captures);
  }
  throw new BusLost(
    `Cannot back up the bus: in ${HOLDS_MAX} pauses of ${HOLD_MS_MAX} ms a process went on writing; update processes of older versions, or try again at a quieter hour`,
  );
}

/**
 * Settles all captures. Returns true if all of them belong to the same moment: states, journals, mail and logs of
 * agents did not change from the first capture to the last. Messages that change no actor, such as leases, do not
 * count. The content of every other stream then belongs to exactly these states.
 */
async function isCut(captures: readonly StreamCapture[]): Promise<boolean> {
  const states = captures.filter(({ name }) => isState(name));
  const others = captures.filter(({ name }) => LOOSE.has(storeOf(name)));
  const still = captures.filter(
    (capture) => !states.includes(capture) && !others.includes(capture),
  );
  const settle = async (some: readonly StreamCapture[]) => {
    const settled = await Promise.all(some.map((capture) => capture.settle()));
    return settled.every((one) => one !== undefined) ? settled : undefined;
  };
  if (!(await settle(states))) return false;
  const first = await settle(still);
  if (!first || !(await settle(others))) return false;
  const lastOfStates = await settle(states);
  if (!lastOfStates?.every(({ read }) => read.every(changesNoActor))) return false;
  const last = await settle(still);
  if (states.some(({ missesRemovals }) => missesRemovals)) return false;
  return (
    last?.every(
      ({ lastSequence, messages }, index) =>
        lastSequence === first[index]?.lastSequence && messages === first[index]?.messages,
    ) ?? false
  );
}
