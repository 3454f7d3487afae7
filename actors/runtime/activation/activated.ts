/** One key in a host's memory, whether its messages are a kind's own or run somebody else's code. */
import type { Delivery, IncomingCall } from "../shards/incoming.ts";

export interface Activated {
  readonly address: string;
  /** Monotonic time of the last message. */
  readonly lastUsedAt: number;
  /** True when nothing would be lost by forgetting it. */
  readonly isIdle: boolean;
  /** True when every call it took is answered and all it did is durable. Deliveries may wait: the bus keeps them. */
  readonly isSettled: boolean;
  /** Takes a call, or refuses past MAILBOX_MAX. */
  call(call: IncomingCall): void;
  /** Takes a delivery, which comes after those before it. */
  deliver(delivery: Delivery): void;
  /** This host does not own the shard any more, or cannot know: callers ask again, mail is read by the next owner. */
  end(): void;
}
