/** One key in a host's memory: an actor, or an instance that runs an app's code. */
import type { Delivery, IncomingCall } from "../shards/incoming.ts";

export interface Activated {
  readonly address: string;
  /** Monotonic time of the last message. */
  readonly lastUsedAt: number;
  /** True when the host can drop this key from memory without loss. */
  readonly isIdle: boolean;
  /** True when every call is answered and all changes are durable. Deliveries may wait: the bus keeps them. */
  readonly isSettled: boolean;
  /** Takes a call. Refuses the call as busy when MAILBOX_MAX calls already wait. */
  call(call: IncomingCall): void;
  /** Takes a delivery of mail or of a reminder. Deliveries are handled in their order. */
  deliver(delivery: Delivery): void;
  /**
   * Ends the activation, because this host no longer owns the shard or cannot know whether it does. Callers send
   * their calls again, and the next owner reads the mail.
   */
  end(): void;
}
