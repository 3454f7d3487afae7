/**
 * Sends one pull request to a consumer of tasks. The library's own pulls drop a message that arrives after they have
 * given up, for example because this process stood still for a second. The bus counts such a message as delivered, so
 * three of them used up the tries of a task that no worker had begun.
 */
import { createInbox, type Msg, nanos, type Subscription } from "@nats-io/transport-node";
import type { Bus } from "../bus/bus.ts";
import { type Clock, OVER } from "../lib/clock.ts";
import { handBack, readTask } from "./hand-back.ts";
import { type PulledMessage, pulledMessage } from "./pulled-message.ts";
import { TASK_SURE_MS } from "./task-lease.ts";

export interface Pull {
  bus: Bus;
  clock: Clock;
  /** The names of the stream and of its consumer. */
  stream: string;
  consumer: string;
  /** The request ends after this number of messages. */
  count: number;
  /** The server ends the request after this time. */
  expiresMs: number;
  /** This process gives the request up after this time without its end. */
  giveUpMs: number;
  /** Ends the request at once when it aborts. Messages that the server sends before it has read this still arrive. */
  leave?: AbortSignal;
  take: (message: PulledMessage, pulledAt: number) => void;
}

/** The server's status for a pull that expired, perhaps without a message. */
const EXPIRED = 408;

/**
 * Passes each message to `take`. Resolves when the request has ended; rejects if it failed, was given up, or the bus
 * was lost. Messages that arrive after that go back to their queue, without counting as a try.
 */
export async function pullTasks(pull: Pull): Promise<void> {
  const { bus, clock, stream, consumer, count, expiresMs, giveUpMs, leave } = pull;
  const { connection } = bus;
  const pulledAt = clock.monotonic();
  const ended = Promise.withResolvers<void>();
  // `ended.promise` may reject while the bus is away, when no code awaits it.
  ended.promise.catch(() => {});
  const finished = new AbortController();
  let missing = count;
  let isOpen = true;
  const receive = (message: Msg) => {
    const status = message.headers?.code ?? 0;
    if (status !== 0) {
      missing = 0;
      if (status === EXPIRED) ended.resolve();
      else ended.reject(new Error(`Cannot pull task: ${status} ${message.headers?.description}`));
      return;
    }
    missing -= 1;
    const pulled = pulledMessage(connection, message);
    if (isOpen) pull.take(pulled, pulledAt);
    // Fails only if the connection is closed meanwhile; then the bus delivers the message again.
    else returnLate(pull, pulled, pulledAt).catch(() => {});
    if (missing === 0) ended.resolve();
  };
  const inbox = createInbox(bus.inboxes.answers);
  const subscription = connection.subscribe(inbox, {
    callback: (error, message) => (error ? ended.reject(error) : receive(message)),
  });
  const subject = `$JS.API.CONSUMER.MSG.NEXT.${stream}.${consumer}`;
  const payload = JSON.stringify({ batch: count, expires: nanos(expiresMs) });
  void clock.wait(giveUpMs, finished.signal).then(() => {
    if (finished.signal.aborted) return;
    ended.reject(new Error(`Cannot pull task: no answer within ${giveUpMs} ms`));
  });
  // The server has no request any more once the subscription has drained.
  const drain = () => void subscription.drain().then(() => ended.resolve(), ended.reject);
  leave?.addEventListener("abort", drain, { once: true });
  try {
    await bus.whileConnected(() => {
      connection.publish(subject, payload, { reply: inbox });
      return ended.promise;
    });
  } finally {
    isOpen = false;
    leave?.removeEventListener("abort", drain);
    finished.abort(OVER);
    if (missing === 0) subscription.unsubscribe();
    else void closeLater(subscription, pull);
  }
}

/** Keeps the subscription for late messages while no other worker can receive them. */
async function closeLater(subscription: Subscription, { bus, clock }: Pull): Promise<void> {
  await clock.wait(TASK_SURE_MS);
  if (!bus.connection.isClosed()) subscription.unsubscribe();
}

async function returnLate(
  { bus, clock }: Pull,
  message: PulledMessage,
  pulledAt: number,
): Promise<void> {
  // Another worker may have it already.
  if (clock.monotonic() > pulledAt + TASK_SURE_MS) return;
  const read = readTask(message);
  if (read.success) await handBack(bus, message, read.data);
  else message.nak();
}
