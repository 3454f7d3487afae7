/**
 * Declares every stream, bucket and consumer. Every process that may create streams does this at each start, so
 * repetition must be safe.
 */
import { setTimeout as wait } from "node:timers/promises";
import {
  AckPolicy,
  JetStreamApiError,
  type JetStreamManager,
  type StreamConfig,
} from "@nats-io/jetstream";
import { nanos, TimeoutError } from "@nats-io/transport-node";
import { FIRST_LAYOUT } from "../schemas/data-layout.ts";
import { LANE_TASKS_MAX, TASK_ACK_WAIT_MS } from "../schemas/limits.ts";
import { laneOf } from "../schemas/split-streams.ts";
import { stateBucket, stateSubjects, taskConsumer } from "../schemas/subjects.ts";
import {
  allStreams,
  isSized,
  leastBytes,
  type SizedStream,
  type StreamDeclaration,
  type StreamsOptions,
} from "./stream-declarations.ts";

/**
 * CLUSTER_READY_MS is the maximum time for which a start waits for the servers of a cluster that starts at the same
 * time. CLUSTER_RETRY_MS is the pause between two attempts.
 */
export const CLUSTER_READY_MS = 60_000;
const CLUSTER_RETRY_MS = 250;
const STREAM_EXISTS = 10058;
/** The server's error code for insufficient storage. */
const NO_ROOM = 10047;
const NO_STREAM = 10059;
/**
 * If a growth is refused, the next attempt adds this share of it. The share is chosen so that no stream gets the very
 * last byte, because other streams need space. A growth by less than GROWTH_BYTES_MIN is not worth a request.
 */
const SMALLER = 0.45;
const GROWTH_BYTES_MIN = 1024 ** 2;

/**
 * Declares all streams. A cluster that was just started may lack a leader or servers, so this waits for it for a
 * limited time.
 */
export async function declareStreams(
  jetstream: JetStreamManager,
  options: StreamsOptions,
): Promise<void> {
  await whenClusterIsReady(() => declareAll(jetstream, options));
}

/**
 * Declares the first state stream. It contains the layout of the data, which says how many more state streams exist.
 */
export async function declareFirstStream(
  jetstream: JetStreamManager,
  options: Omit<StreamsOptions, "layout">,
): Promise<void> {
  const { stream } = stateSubjects(stateBucket(0));
  const first = allStreams({ ...options, layout: FIRST_LAYOUT }).filter(
    ({ name }) => name === stream,
  );
  await whenClusterIsReady(async () => {
    for (const one of first) await declareStream(jetstream, one);
  });
}

/**
 * Runs `ask` again until it succeeds, because a starting cluster may lack a leader or servers. Resolves to its result.
 */
export async function whenClusterIsReady<T>(ask: () => Promise<T>): Promise<T> {
  const giveUpAt = performance.now() + CLUSTER_READY_MS;
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      const passing = error instanceof TimeoutError || isUnavailable(error);
      if (!passing || performance.now() > giveUpAt) throw error;
      await wait(CLUSTER_RETRY_MS);
    }
  }
}

/**
 * 10008 and other codes with status 503: JetStream is temporarily unavailable. 10005: too few servers for the
 * replicas.
 */
const isUnavailable = (error: unknown) =>
  error instanceof JetStreamApiError && (error.status === 503 || error.code === 10005);

async function declareAll(jetstream: JetStreamManager, options: StreamsOptions): Promise<void> {
  const streams = allStreams(options);
  // First gives each stream its minimum, so that every stream exists on a small disk. Then the streams grow, the one
  // with the smallest limit first, so that the order is always the same.
  const sized = streams.filter(isSized);
  for (const stream of streams) {
    const least = isSized(stream) ? { max_bytes: leastBytes(stream, options.layout) } : {};
    await declareStream(jetstream, { ...stream, ...least });
  }
  if (options.grow ?? true) {
    for (const stream of sized.toSorted((one, other) => one.max_bytes - other.max_bytes)) {
      await grow(jetstream, stream);
    }
  }
  await declareLanes(jetstream, options);
}

async function declareLanes(
  jetstream: JetStreamManager,
  { layout, tasks }: StreamsOptions,
): Promise<void> {
  const lanes = tasks.flatMap(({ kind, lanes }) => lanes.map((lane) => ({ kind, lane })));
  await Promise.all(
    lanes.map(({ kind, lane }) =>
      jetstream.consumers.add(laneOf(layout, { kind, lane }).stream, {
        durable_name: taskConsumer(kind, lane),
        filter_subject: laneOf(layout, { kind, lane }).subject,
        ack_policy: AckPolicy.Explicit,
        ack_wait: nanos(TASK_ACK_WAIT_MS),
        max_ack_pending: LANE_TASKS_MAX,
        // No limit of deliveries: the worker counts the attempts and reports the last one to the caller. With a
        // limit, the server would stop delivering without a report.
        max_deliver: -1,
      }),
    ),
  );
}

async function declareStream(
  jetstream: JetStreamManager,
  stream: StreamDeclaration,
): Promise<void> {
  const known = await configOf(jetstream, stream.name);
  if (known) return updateStream(jetstream, stream, known);
  try {
    await jetstream.streams.add(stream);
  } catch (error) {
    if (!(error instanceof JetStreamApiError) || error.code !== STREAM_EXISTS) throw error;
    await declareStream(jetstream, stream);
  }
}

/**
 * Grows a stream to its declared size. The bus reserves the bytes of a stream's limit; if the disk has too few, the
 * stream gets a smaller size that fits.
 */
async function grow(jetstream: JetStreamManager, stream: SizedStream): Promise<void> {
  const known = await configOf(jetstream, stream.name);
  if (!known) return;
  const missing = stream.max_bytes - known.max_bytes;
  for (let added = missing; added >= GROWTH_BYTES_MIN; added *= SMALLER) {
    if (await resize(jetstream, stream, known.max_bytes + Math.floor(added))) return;
  }
}

async function updateStream(
  jetstream: JetStreamManager,
  stream: StreamDeclaration,
  known: StreamConfig,
): Promise<void> {
  // Refuses fewer replicas than exist. Otherwise one process of a cluster without the setting would remove every
  // replica but one.
  if (known.num_replicas > (stream.num_replicas ?? 1)) {
    throw new Error(
      `TRUNKLINE_REPLICAS: expected ${known.num_replicas}, as the streams have it, found "${stream.num_replicas}"`,
    );
  }
  await refuseToReplicateUnderWay(jetstream, stream, known);
  // If an operator has raised the size of the stream, it keeps this size.
  await resize(jetstream, stream, Math.max(stream.max_bytes ?? -1, known.max_bytes));
}

/** Throws if the number of replicas would change while hosts run: this was never tested. */
async function refuseToReplicateUnderWay(
  jetstream: JetStreamManager,
  { name, num_replicas: wanted = 1 }: StreamDeclaration,
  { num_replicas: found }: StreamConfig,
): Promise<void> {
  if (found > 1 || wanted === found) return;
  const { leases, stream } = stateSubjects(stateBucket(0));
  const { state } = await jetstream.streams.info(stream, { subjects_filter: leases });
  const hosts = Object.keys(state.subjects ?? {}).length;
  if (hosts === 0) return;
  throw new Error(
    `TRUNKLINE_REPLICAS: expected ${found}, as ${name} has it, while hosts of actors run, found "${wanted}"; stop all and start them with ${wanted}`,
  );
}

/** Updates the stream's declaration and size. Returns false if the disk has too little space. */
async function resize(
  jetstream: JetStreamManager,
  stream: StreamDeclaration,
  bytes: number,
): Promise<boolean> {
  try {
    await jetstream.streams.update(stream.name, { ...stream, max_bytes: bytes });
    return true;
  } catch (error) {
    if (!(error instanceof JetStreamApiError) || error.code !== NO_ROOM) throw error;
    return false;
  }
}

async function configOf(
  jetstream: JetStreamManager,
  name: string,
): Promise<StreamConfig | undefined> {
  try {
    return (await jetstream.streams.info(name)).config;
  } catch (error) {
    if (error instanceof JetStreamApiError && error.code === NO_STREAM) return undefined;
    throw error;
  }
}
