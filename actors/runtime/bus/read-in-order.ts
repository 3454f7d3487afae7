/** Reads messages of a stream one after the other, with none left out, for as long as the connection holds. */
import type { JsMsg, OrderedConsumerOptions } from "@nats-io/jetstream";
import { nuid } from "@nats-io/transport-node";
import { type Bus, BusLost } from "./bus.ts";
import { endWhenSilent } from "./end-when-silent.ts";

/** How often a consumer says that it lives; one that is silent for two of these is made anew on another server. */
const CONSUMER_HEARTBEAT_MS = 1_000;

interface ReadOptions {
  stream: string;
  /** The consumer's name in operators' tools. Readers that share a name share the messages between them. */
  name: string;
  /** The messages to read, and where to begin. */
  select: Omit<Partial<OrderedConsumerOptions>, "name_prefix">;
  /** Messages the client library holds ahead. */
  prefetch: number;
  signal: AbortSignal;
  /** The reading has begun; `pending` messages are there. */
  started?: (pending: number) => void;
}

/**
 * Ends when the signal aborts or when the server of the consumer falls silent; throws BusLost when the connection was
 * lost. The reader then begins anew: where the server has forgotten the consumer, the library would make almost no
 * progress until heartbeats are missed (3.4.0).
 */
export async function* readInOrder(
  bus: Bus,
  { stream, name, select, prefetch, signal, started }: ReadOptions,
): AsyncGenerator<JsMsg, void, undefined> {
  const consumer = await bus.whileConnected(() =>
    bus.jetstream.jetstream().consumers.get(stream, {
      ...select,
      name_prefix: `${name}-${nuid.next()}`,
    }),
  );
  const { num_pending: pending } = await consumer.info(true);
  const messages = await consumer.consume({
    max_messages: prefetch,
    idle_heartbeat: CONSUMER_HEARTBEAT_MS,
  });
  void endWhenSilent(messages);
  let lost = false;
  const stop = () => messages.stop();
  const forget = bus.onReconnect(() => {
    lost = true;
    stop();
  });
  signal.addEventListener("abort", stop);
  try {
    if (signal.aborted) return;
    started?.(pending);
    for await (const message of messages) {
      if (signal.aborted) return;
      yield message;
    }
  } finally {
    forget();
    signal.removeEventListener("abort", stop);
    stop();
    void consumer.delete().catch(() => {}); // It ends by itself, only later.
  }
  if (lost) throw new BusLost(`Cannot read ${stream} on: the connection was lost`);
}
