/**
 * Benchmarks what one stream stores in a second, each write synced to disk, in the shape in which the runtime writes
 * mail, tasks, logs of agents and packs; and what four such streams store together.
 */
import { AckPolicy, RetentionPolicy } from "@nats-io/jetstream";
import { type Write, writeAtomically } from "../../../actors/runtime/bus/atomic-batch.ts";
import { Bus } from "../../../actors/runtime/bus/bus.ts";
import { BLOB_CHUNK_BYTES } from "../../../schemas/limits.ts";
import { startNats } from "../../testing/nats-server.ts";
import { type Benchmark, type Figure, median, ROUND_MS } from "../benchmark.ts";

/** One way to write to a stream. */
interface Shape {
  name: string;
  /** Messages of one atomic batch, and their bytes. */
  batch: number;
  bytes: number;
  inFlight: number;
  /** A worker takes and acknowledges each message. */
  isQueue?: boolean;
}

const SHAPES: readonly Shape[] = [
  { name: "mail: batches of 20", batch: 20, bytes: 300, inFlight: 16 },
  { name: "mail: batches of 200", batch: 200, bytes: 300, inFlight: 16 },
  { name: "tasks, each taken by a worker", batch: 1, bytes: 500, inFlight: 64, isQueue: true },
  { name: "logs of agents: batches of 16 records of 4 kB", batch: 16, bytes: 4_000, inFlight: 16 },
  { name: "packs: pieces of 512 KiB", batch: 1, bytes: BLOB_CHUNK_BYTES, inFlight: 8 },
];
const STREAMS_COMPARED = 4;
const ROUNDS = 2;
/** How many messages a worker requests at a time. */
const PULLED = 100;

export const runtimeStreams: Benchmark = {
  name: "runtime-streams",
  async run() {
    const figures: Figure[] = [];
    for (const shape of SHAPES) {
      const [one, four] = [await measure(shape, 1), await measure(shape, STREAMS_COMPARED)];
      const name = `${shape.name}; reference: ${STREAMS_COMPARED} streams`;
      figures.push({ name, unit: "messages/s", ours: one, reference: four });
    }
    return figures;
  },
};

/** Returns the messages that all streams together store in a second: the median of the rounds. */
async function measure(shape: Shape, streams: number): Promise<number> {
  await using server = await startNats();
  const bus = await Bus.connect({ url: server.url, name: "bench" });
  const worker = await Bus.connect({ url: server.url, name: "bench-worker" });
  const workers: Worker[] = [];
  const stop = new AbortController();
  for (let index = 0; index < streams; index++) {
    await bus.jetstream.streams.add({
      ...{ name: `BENCH-${index}`, subjects: [`bench-${index}.>`], allow_atomic: true },
      ...(shape.isQueue && { retention: RetentionPolicy.Workqueue }),
    });
    if (shape.isQueue) workers.push(await startWorker(worker, `BENCH-${index}`, stop.signal));
  }
  const rounds: number[] = [];
  // The first round only warms up.
  for (let round = 0; round <= ROUNDS; round++) rounds.push(await writeFor(bus, shape, streams));
  stop.abort();
  await worker.close();
  await Promise.all(workers.map(({ ended }) => ended));
  await bus.close();
  return median(rounds.slice(1));
}

/** Writes for a while; writer `n` writes to stream `n` modulo the number of streams. */
async function writeFor(bus: Bus, shape: Shape, streams: number): Promise<number> {
  const { batch, bytes, inFlight } = shape;
  const payload = new Uint8Array(bytes).map((_, at) => (at * 31) & 0xff);
  const startedAt = performance.now();
  let messages = 0;
  const write = async (writer: number) => {
    for (let n = 0; performance.now() - startedAt < ROUND_MS; n++) {
      const writes = Array.from({ length: batch }, (_, at): Write => {
        const subject = `bench-${writer % streams}.${writer}.${(n * batch + at) % 1_000}`;
        // Tasks have an id, by which the stream drops repetitions.
        const headers = { "Nats-Msg-Id": `${startedAt}-${writer}-${n}` };
        return { subject, payload, ...(shape.isQueue && { headers }) };
      });
      await writeAtomically(bus, writes);
      messages += batch;
    }
  };
  await Promise.all(Array.from({ length: inFlight }, (_, writer) => write(writer)));
  return messages / ((performance.now() - startedAt) / 1_000);
}

interface Worker {
  ended: Promise<void>;
}

/** Takes and acknowledges all messages of a stream until the signal. */
async function startWorker(bus: Bus, stream: string, signal: AbortSignal): Promise<Worker> {
  await bus.jetstream.consumers.add(stream, {
    durable_name: "worker",
    ack_policy: AckPolicy.Explicit,
  });
  const consumer = await bus.jetstream.jetstream().consumers.get(stream, "worker");
  const messages = await consumer.consume({ max_messages: PULLED });
  signal.addEventListener("abort", () => messages.stop());
  const ended = (async () => {
    for await (const message of messages) message.ack();
  })();
  return { ended };
}
