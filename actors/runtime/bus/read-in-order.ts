/** Reads messages of a stream one after the other, with none left out, for as long as the connection holds. */
import { setTimeout as wait } from "node:timers/promises";
import type { JsMsg, OrderedConsumerOptions } from "@nats-io/jetstream";
import { nuid } from "@nats-io/transport-node";
import type { Semaphore } from "../lib/semaphore.ts";
import { type Bus, BusLost } from "./bus.ts";
import { endWhenSilent } from "./end-when-silent.ts";

/**
 * Heartbeat interval of a consumer. In a cluster a consumer lives on one server and dies with it, so after two missed
 * heartbeats the reader creates another consumer.
 */
const CONSUMER_HEARTBEAT_MS = 1_000;
/**
 * On a single server a consumer dies only with the connection, and the client detects a lost connection in other ways.
 * A host has 130 readers, and their heartbeats would be most of an idle instance's work.
 */
const LONE_CONSUMER_HEARTBEAT_MS = 15_000;

interface ReadOptions {
  stream: string;
  /** The consumer's name in operators' tools. Readers that share a name share the messages between them. */
  name: string;
  /** The messages to read, and where to begin. */
  select: Omit<Partial<OrderedConsumerOptions>, "name_prefix">;
  /** Messages the client library holds ahead. */
  prefetch: number;
  signal: AbortSignal;
  /** Bounds how many readers begin at a time: of thousands at once, many would get no answer in time. */
  starts?: Semaphore | undefined;
  /** The reading has begun; `pending` messages are there. */
  started?: (pending: number) => void;
}

/** Pauses before the first pull of a consumer that replaces one which no server knew. */
const UNHEARD_PAUSE_MS = 5;
const UNHEARD_PAUSE_MS_MAX = 250;

/**
 * Ends when the signal aborts or when the server of the consumer falls silent; throws BusLost when the connection was
 * lost. The reader then begins anew: where the server has forgotten the consumer, the library would make almost no
 * progress until heartbeats are missed (3.4.0).
 */
export async function* readInOrder(
  bus: Bus,
  options: ReadOptions,
): AsyncGenerator<JsMsg, void, undefined> {
  let pauseMs = 0;
  // In a cluster the answer that a consumer was made may arrive before this server knows where to route its requests,
  // because the two travel on different connections. The first pull then has no responders (nats-server 2.15.2).
  while (yield* readOnce(bus, options, pauseMs)) {
    pauseMs = Math.min(Math.max(UNHEARD_PAUSE_MS, 2 * pauseMs), UNHEARD_PAUSE_MS_MAX);
  }
}

/** Returns true where no server routed the first pull to the consumer, so that nothing was read. */
async function* readOnce(
  bus: Bus,
  { stream, name, select, prefetch, signal, starts, started }: ReadOptions,
  pauseMs: number,
): AsyncGenerator<JsMsg, boolean, undefined> {
  const begin = async () => {
    const consumer = await bus.whileConnected(() =>
      bus.jetstream.jetstream().consumers.get(stream, {
        ...select,
        name_prefix: `${name}-${nuid.next()}`,
      }),
    );
    return { consumer, pending: (await consumer.info(true)).num_pending };
  };
  const leave = await starts?.take(signal).catch(() => undefined);
  if (signal.aborted) {
    leave?.();
    return false;
  }
  const { consumer, pending } = await begin().finally(leave);
  if (pauseMs > 0) await wait(pauseMs);
  const messages = await consumer.consume({
    max_messages: prefetch,
    idle_heartbeat: isSingleServer(bus) ? LONE_CONSUMER_HEARTBEAT_MS : CONSUMER_HEARTBEAT_MS,
  });
  const silence = endWhenSilent(messages);
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
    for await (const message of messages) {
      if (signal.aborted) return false;
      isRead = true;
      yield message;
    }
  } finally {
    forget();
    signal.removeEventListener("abort", stop);
    stop();
    void consumer.delete().catch(() => {}); // It ends by itself, only later.
  }
  if (lost) throw new BusLost(`Cannot read ${stream} on: the connection was lost`);
  return !isRead && !signal.aborted && (await silence);
}

/**
 * Returns true if the connected server stores every stream itself, so that a consumer never dies without the
 * connection.
 */
export function isSingleServer({ connection }: Bus): boolean {
  const { jetstream = false, cluster } = connection.info ?? {};
  return jetstream && cluster === undefined;
}
