/** Reads the messages of a stream in their order and without gaps, while the connection lasts. */
import { setTimeout as wait } from "node:timers/promises";
import type { OrderedConsumerOptions } from "@nats-io/jetstream";
import { nuid } from "@nats-io/transport-node";
import type { Semaphore } from "../../lib/semaphore.ts";
import { type Bus, BusLost } from "../bus.ts";
import { type OrderedMessage, OrderedPulls } from "./ordered-pulls.ts";

/**
 * Heartbeat interval of a consumer. In a cluster a consumer lives on one server and dies with it, so after two missed
 * heartbeats the reader creates another consumer.
 */
const CONSUMER_HEARTBEAT_MS = 1_000;
/**
 * On a single server a consumer dies only with the connection, and the client detects a lost connection in other ways.
 * A host has 130 readers, and their heartbeats would be most of an idle instance's work.
 */
const LONE_CONSUMER_HEARTBEAT_MS = 30_000;
/**
 * The server deletes a consumer after this time without a reader. Each host has two consumers a shard, so hosts that
 * are killed again and again would leave thousands. A reader whose consumer was deleted creates another one.
 */
export const UNUSED_CONSUMER_MS_MAX = 30_000;
/**
 * How long a request for messages lasts. On a single server it is lost only with the connection. A consumer with a
 * request is never unused.
 */
const PULL_MS = 30_000;
const LONE_PULL_MS = 240_000;

interface ReadOptions {
  stream: string;
  /** The start of the consumer's name, which operators' tools show. Each reader has its own consumer. */
  name: string;
  /** Selects the messages to read, and where to start. */
  select: Omit<Partial<OrderedConsumerOptions>, "name_prefix">;
  /** Limits of one request, which is sent ahead of the reader. A larger message is requested alone. */
  prefetch: number;
  prefetchBytes?: number;
  signal: AbortSignal;
  /** Limits how many readers start at the same time. If thousands start together, many get no answer in time. */
  starts?: Semaphore | undefined;
  /** Called when the reading has begun. `pending` counts the messages that are stored and not read yet. */
  started?: (pending: number) => void;
}

/** The messages of most streams are small. */
const PREFETCH_BYTES = 128_000;
/** Limits of the pause before the first pull of a new consumer, if no server knew the previous consumer. */
const UNHEARD_PAUSE_MS = 5;
const UNHEARD_PAUSE_MS_MAX = 250;

/**
 * Ends when the signal aborts, when the consumer's server stops answering, or when a message is lost. Throws BusLost
 * if the connection was lost. The caller then starts to read again.
 */
export async function* readInOrder(
  bus: Bus,
  options: ReadOptions,
): AsyncGenerator<OrderedMessage, void, undefined> {
  for await (const messages of readTogether(bus, options)) {
    for (const message of messages) {
      if (options.signal.aborted) return;
      yield message;
    }
  }
}

/** The same for readers of many messages: yields all messages together that have arrived. */
export async function* readTogether(
  bus: Bus,
  options: ReadOptions,
): AsyncGenerator<OrderedMessage[], void, undefined> {
  let pauseMs = 0;
  // In a cluster, the answer that confirms a new consumer may arrive before this server can route requests to the
  // consumer, because answers and routes travel on different connections. The first pull then has no responders
  // (nats-server 2.15.2), and the loop tries another consumer.
  while (yield* readOnce(bus, options, pauseMs)) {
    pauseMs = Math.min(Math.max(UNHEARD_PAUSE_MS, 2 * pauseMs), UNHEARD_PAUSE_MS_MAX);
  }
}

/**
 * Reads with one consumer. Returns true if no server routed the first pull to the consumer, so that nothing was read.
 */
async function* readOnce(
  bus: Bus,
  { stream, name, select, signal, starts, started, ...limits }: ReadOptions,
  pauseMs: number,
): AsyncGenerator<OrderedMessage[], boolean, undefined> {
  const begin = async () => {
    const consumer = await bus.whileConnected(() =>
      bus.jetstream.jetstream().consumers.get(stream, {
        ...select,
        inactive_threshold: UNUSED_CONSUMER_MS_MAX,
        name_prefix: `${name}-${nuid.next()}`,
      }),
    );
    const { name: stored, num_pending: pending } = await consumer.info(true);
    return { consumer, stored, pending };
  };
  const leave = await starts?.take(signal).catch(() => undefined);
  if (signal.aborted) {
    leave?.();
    return false;
  }
  const { consumer, stored, pending } = await begin().finally(leave);
  if (pauseMs > 0) await wait(pauseMs);
  const isLone = isSingleServer(bus);
  const messages = new OrderedPulls(bus, {
    ...{ stream, consumer: stored },
    messagesMax: limits.prefetch,
    bytesMax: limits.prefetchBytes ?? PREFETCH_BYTES,
    expiresMs: isLone ? LONE_PULL_MS : PULL_MS,
    heartbeatMs: isLone ? LONE_CONSUMER_HEARTBEAT_MS : CONSUMER_HEARTBEAT_MS,
  });
  let lost = false;
  let isRead = false;
  const stop = () => messages.stop();
  const forget = bus.onReconnect(() => {
    lost = true;
    stop();
  });
  signal.addEventListener("abort", stop);
  try {
    if (signal.aborted) return false;
    started?.(pending);
    for await (const together of messages.read()) {
      if (signal.aborted) return false;
      isRead = true;
      yield together;
    }
  } finally {
    forget();
    signal.removeEventListener("abort", stop);
    stop();
    void consumer.delete().catch(() => {}); // It ends by itself, only later.
  }
  if (lost) throw new BusLost(`Cannot read ${stream} on: the connection was lost`);
  return !isRead && !signal.aborted && messages.isUnheard;
}

/**
 * Returns true if the connected server stores every stream itself, so that a consumer never dies without the
 * connection.
 */
export function isSingleServer({ connection }: Bus): boolean {
  const { jetstream = false, cluster } = connection.info ?? {};
  return jetstream && cluster === undefined;
}
