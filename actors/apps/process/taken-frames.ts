/** The frames of one socket: each begins once, in order, and the batch that delivered them waits for all of them. */
import { FramesDone } from "./frames-done.ts";
import { clearTimeout, setTimeout } from "./native-timers.ts";

/**
 * After this time, an unfinished batch is answered as unfinished and sent again. It is well below the time of a turn.
 */
const SOCKET_BATCH_HELD_MS = 15_000;

export interface BroughtFrames {
  first: number;
  frames: (string | Uint8Array)[];
  /** See FramesDone.settle; absent where batches come one after the other. */
  settledBefore?: number | undefined;
}

export class TakenFrames {
  readonly #done: FramesDone;
  readonly #heldMs: number;
  readonly #underWay = new Map<number, Promise<void>>();
  #begun = Promise.withResolvers<void>();

  constructor(text?: string, heldMs = SOCKET_BATCH_HELD_MS) {
    this.#done = new FramesDone(text);
    this.#heldMs = heldMs;
  }

  /** Resolves when all of them are handled; with true where some go on, after SOCKET_BATCH_HELD_MS. */
  async take(
    { first, frames, settledBefore }: BroughtFrames,
    handle: (number: number, frame: string | Uint8Array) => Promise<void>,
  ): Promise<boolean> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<true>((resolve) => {
      timer = setTimeout(resolve, this.#heldMs, true);
    });
    try {
      if (settledBefore !== undefined) {
        this.#done.settle(settledBefore);
        // Earlier frames were sent before and are still in flight.
        while (frames.length > 0 && this.#done.next < first) {
          if (await Promise.race([this.#begun.promise, late])) return true;
        }
      }
      for (const [index, frame] of frames.entries()) this.#begin(first + index, frame, handle);
      this.#begun.resolve();
      this.#begun = Promise.withResolvers();
      const wanted = frames.map((_, index) => this.#underWay.get(first + index));
      return (await Promise.race([Promise.all(wanted), late])) === true;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Marks this frame as handled. */
  end(number: number): void {
    this.#done.end(number);
  }

  toString(): string {
    return this.#done.toString();
  }

  #begin(
    number: number,
    frame: string | Uint8Array,
    handle: (number: number, frame: string | Uint8Array) => Promise<void>,
  ): void {
    if (!this.#done.begin(number)) return;
    const handled = handle(number, frame).finally(() => this.#underWay.delete(number));
    this.#underWay.set(number, handled);
  }
}
