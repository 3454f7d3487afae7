/**
 * The frames of one socket. Each frame begins only one time, in order. The batch that delivered frames waits until
 * all of them are handled.
 */
import { FramesDone } from "./frames-done.ts";
import { clearTimeout, setTimeout } from "./native-timers.ts";

/**
 * After this time, an unfinished batch is answered as unfinished, and the gateway sends it again. The time is much
 * shorter than the time limit of a turn.
 */
const SOCKET_BATCH_HELD_MS = 15_000;

export interface BroughtFrames {
  first: number;
  frames: (string | Uint8Array)[];
  /** See FramesDone.settle. Absent if the gateway sends one batch after the other. */
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

  /**
   * Begins the frames of a batch. Resolves when all are handled, or with true after SOCKET_BATCH_HELD_MS if some
   * still run.
   */
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
        // Waits for earlier frames, which were sent in other batches and have not arrived yet.
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
