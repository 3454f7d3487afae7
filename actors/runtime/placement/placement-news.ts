/** Follows the members and epochs of one bucket as they change. */
import { DeliverPolicy } from "@nats-io/jetstream";
import type { Logger } from "pino";
import { PLACEMENT_PREFETCH, READER_RETRY_MS } from "../../../schemas/limits.ts";
import type { Bus } from "../bus/bus.ts";
import type { OrderedMessage } from "../bus/reads/ordered-pulls.ts";
import { readInOrder } from "../bus/reads/read-in-order.ts";
import type { Clock } from "../lib/clock.ts";
import type { StateStore } from "../state/state-store.ts";
import { Epoch, NOBODY } from "./epoch.ts";
import { Lease } from "./host-lease.ts";

interface PlacementListener {
  epoch(shard: number, epoch: Epoch & { sequence: number }): void;
  /** Called for each change of a member. `lease` is undefined after the lease has ended. */
  member(host: string, lease: Lease | undefined): void;
  /**
   * Called when all epochs and members that were stored when the reading began have been reported. `members` are the
   * stored members. A host that is not among them has ended, even if no marker reports its end any more.
   */
  caughtUp(members: ReadonlySet<string>): void;
}

interface NewsParts {
  bus: Bus;
  clock: Clock;
  logger: Logger;
  store: StateStore;
  /** The keys to follow. */
  filters: string[];
  signal: AbortSignal;
}

/** Follows the keys until the signal aborts. Starts again whenever reading fails. */
export async function followPlacement(
  { bus, clock, logger, store, filters, signal }: NewsParts,
  listener: PlacementListener,
): Promise<void> {
  while (!signal.aborted) {
    let isCaughtUp = false;
    const members = new Set<string>();
    const caughtUp = () => {
      if (!isCaughtUp && !signal.aborted) listener.caughtUp(members);
      isCaughtUp = true;
    };
    const heard: PlacementListener = {
      ...listener,
      member(host, lease) {
        if (lease) members.add(host);
        else members.delete(host);
        listener.member(host, lease);
      },
    };
    try {
      const read = readInOrder(bus, {
        stream: store.subjects.stream,
        name: "placement",
        select: { filter_subjects: filters, deliver_policy: DeliverPolicy.LastPerSubject },
        prefetch: PLACEMENT_PREFETCH,
        signal,
        started: (pending) => pending === 0 && caughtUp(),
      });
      for await (const message of read) {
        hear(store, message, heard);
        if (message.pending === 0) caughtUp();
      }
    } catch (error) {
      logger.warn({ err: error }, "placement not watched, will try again");
    }
    await clock.wait(READER_RETRY_MS, signal);
  }
}

function hear(
  { subjects }: StateStore,
  message: OrderedMessage,
  listener: PlacementListener,
): void {
  const name = subjects.lastToken(message.subject);
  const removed =
    message.headers?.has("KV-Operation") || message.headers?.has("Nats-Marker-Reason");
  if (message.subject === subjects.epoch(Number(name))) {
    const epoch = removed ? NOBODY : Epoch.parse(message.json());
    listener.epoch(Number(name), { ...epoch, sequence: message.seq });
  } else listener.member(name, removed ? undefined : Lease.parse(message.json()));
}
