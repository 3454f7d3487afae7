/** One key in a host's memory: an actor, or an instance that runs an app's code. */
import type { Delivery, IncomingCall } from "../shards/incoming.ts";

export interface Activated {
  readonly address: string;
  /** Monotonic time of the last message. */
  readonly lastUsedAt: number;
  /** True when nothing is lost if the host drops it from memory. */
  readonly isIdle: boolean;
  /** True when every call is answered and all changes are durable. Deliveries may wait: the bus keeps them. */
  readonly isSettled: boolean;
  /** Takes a call, or refuses past MAILBOX_MAX. */
  call(call: IncomingCall): void;
  /** Takes a delivery, which is handled after those before it. */
  deliver(delivery: Delivery): void;
  /**
   * This host has lost the shard, or cannot know: callers send their calls again, and the next owner reads the mail.
   */
  end(): void;
}
