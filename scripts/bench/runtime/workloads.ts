/**
 * All workloads of a load process: Trunkline's through the actor client, and the references' through the plain NATS
 * client.
 */
import { setTimeout } from "node:timers/promises";
import { AckPolicy, type JsMsg, jetstream } from "@nats-io/jetstream";
import { Kvm } from "@nats-io/kv";
import type { Bus } from "../../../actors/runtime/bus/bus.ts";
import type { ActorClient } from "../../../actors/runtime/calls/actor-client.ts";
import { SHARDS } from "../../../schemas/limits.ts";
import { addressOf, shardOf } from "../../../schemas/subjects.ts";
import { counter } from "../../testing/counter.ts";
import type { Load } from "../benchmark.ts";
import { runLoad } from "../run-load.ts";

/** The parameters of a load process; each workload reads the fields that it needs. */
export interface Workload extends Volume, Touch {
  workload: keyof Awaited<ReturnType<typeof openWorkloads>>;
}
interface Volume {
  inFlight: number;
  ms: number;
}
interface Touch {
  inFlight: number;
  prefix: string;
  actors: number;
}

export interface Visits {
  longestMs: number;
  failures: number;
}

const ACTORS = 1_000;
/** A message of the same length as the request of an actor call. `ANSWER` has the length of its reply. */
const QUESTION = JSON.stringify({
  message: "get",
  input: {},
  client: "0123456789ab",
  number: 1_000_000,
  settled: 1_000_000,
  deadlineAt: 1_700_000_000_000,
});
const ANSWER = JSON.stringify({ count: 1 });
const VALUE = "x".repeat(100);
const ECHO = "bench.echo";
export const MAIL_STREAM = "BENCH";
const MAIL_SUBJECT = "bench.mail";
const END = "end";
/** Pause between two calls to the same actor, so that the takeover is measured and not the load. */
const VISIT_PAUSE_MS = 5;

export async function openWorkloads(bus: Bus, client: ActorClient) {
  const { connection } = bus;
  const stream = jetstream(connection);
  const values = await new Kvm(connection).open("bench", { allow_direct: true });
  /** The count that each mail receiver must reach, by the receiver's key. */
  const received = new Map<string, number>();

  return {
    get: (volume: Volume) => runLoad(volume, () => client.call(counter, "read", "get", {})),

    async answer({ ms }: Volume): Promise<null> {
      const subscription = connection.subscribe(ECHO, {
        callback: (error, msg) => {
          if (!error) msg.respond(ANSWER);
        },
      });
      await connection.flush();
      void setTimeout(ms).then(() => subscription.unsubscribe());
      return null;
    },
    request: (volume: Volume) => runLoad(volume, () => connection.request(ECHO, QUESTION)),

    increment: (volume: Volume) =>
      runLoad(volume, (index) =>
        client.call(counter, `many.${index % ACTORS}`, "increment", { by: 1 }),
      ),
    incrementOne: (volume: Volume) =>
      runLoad(volume, () => client.call(counter, "hot", "increment", { by: 1 })),
    put: (volume: Volume) =>
      runLoad(volume, (index) => values.put(`many.${index % ACTORS}`, VALUE)),

    give,
    publish,
    consume,
    touch,
    visit,
  };

  /**
   * Measures mail from the first call to the last effect. The latencies are those of single mails that are followed
   * until their effect is durable.
   */
  async function give({ inFlight, ms }: Volume): Promise<Load> {
    const before = performance.now();
    const awaited = new Set<string>();
    let sending = true;
    const watched = watchMail(() => sending);
    const { operations } = await runLoad({ inFlight: inFlight - 1, ms }, async (index) => {
      const to = `to.${index % ACTORS}`;
      await client.call(counter, `from.${(index * 7) % ACTORS}`, "give", { to, by: 1 });
      received.set(to, (received.get(to) ?? 0) + 1);
      awaited.add(to);
    });
    sending = false;
    await Promise.all([...awaited].map((to) => untilCount(to, received.get(to) ?? 0)));
    const latencies = await watched;
    const took = performance.now() - before;
    return { operations: operations + latencies.length, ms: took, latencies };
  }

  async function watchMail(sending: () => boolean): Promise<Float64Array> {
    const latencies: number[] = [];
    let { count } = await client.call(counter, "watched.to", "get", {});
    while (sending()) {
      const before = performance.now();
      await client.call(counter, "watched.from", "give", { to: "watched.to", by: 1 });
      count += 1;
      await untilCount("watched.to", count);
      latencies.push(performance.now() - before);
    }
    return Float64Array.from(latencies);
  }

  /**
   * Waits until the actor's count is reached and durable: a reading call is answered only when the state that it read
   * is durable.
   */
  async function untilCount(key: string, count: number): Promise<void> {
    while ((await client.call(counter, key, "get", {})).count < count);
  }

  async function publish(volume: Volume): Promise<null> {
    await runLoad(volume, () => stream.publish(MAIL_SUBJECT, `${now()} ${VALUE}`));
    await stream.publish(MAIL_SUBJECT, END);
    return null;
  }

  /**
   * Consumes the published messages. Latencies are measured from the publish to the acknowledgement; this works
   * because both processes run on this machine and share its clock.
   */
  async function consume(): Promise<Load> {
    const { name } = await bus.jetstream.consumers.add(MAIL_STREAM, {
      ack_policy: AckPolicy.Explicit,
      max_ack_pending: 10_000,
    });
    const consumer = await stream.consumers.get(MAIL_STREAM, name);
    const latencies: number[] = [];
    let firstAt = Number.POSITIVE_INFINITY;
    const messages = await consumer.consume({ max_messages: 1_000 });
    for await (const message of messages) {
      message.ack();
      const sentAt = timeOf(message);
      if (sentAt === undefined) break;
      firstAt = Math.min(firstAt, sentAt);
      latencies.push(now() - sentAt);
    }
    await connection.flush();
    const ms = now() - firstAt;
    await messages.close();
    await consumer.delete();
    await bus.jetstream.streams.purge(MAIL_STREAM);
    return { operations: latencies.length, ms, latencies: Float64Array.from(latencies) };
  }

  /** Calls each of a number of actors once. */
  async function touch({ inFlight, prefix, actors }: Touch): Promise<null> {
    let next = 0;
    await Promise.all(
      Array.from({ length: inFlight }, async () => {
        while (next < actors) {
          await client.call(counter, `${prefix}.${next++}`, "increment", { by: 1 });
        }
      }),
    );
    return null;
  }

  /** Calls one actor of each shard continuously. Each actor has only one call at a time. */
  async function visit({ ms }: Volume): Promise<Visits> {
    let longestMs = 0;
    let failures = 0;
    const endAt = performance.now() + ms;
    await Promise.all(
      keysOfAllShards().map(async (key) => {
        while (performance.now() < endAt) {
          const before = performance.now();
          await client.call(counter, key, "increment", { by: 1 }).catch(() => {
            failures += 1;
          });
          longestMs = Math.max(longestMs, performance.now() - before);
          await setTimeout(VISIT_PAUSE_MS);
        }
      }),
    );
    return { longestMs, failures };
  }
}

function keysOfAllShards(): string[] {
  const keys = new Map<number, string>();
  for (let index = 0; keys.size < SHARDS; index++) {
    const key = `visited.${index}`;
    keys.set(shardOf(addressOf(counter.kind, key)), key);
  }
  return [...keys.values()];
}

const now = () => performance.timeOrigin + performance.now();

function timeOf(message: JsMsg): number | undefined {
  const [time = END] = message.string().split(" ");
  return time === END ? undefined : Number(time);
}
