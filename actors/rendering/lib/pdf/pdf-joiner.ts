/** Joins PDFs on a separate thread, because large PDFs take seconds and hundreds of megabytes. */
import { Worker } from "node:worker_threads";
import { ActorError } from "../../../../schemas/errors.ts";
import { moduleBeside } from "../../../../schemas/module-beside.ts";
import type { PdfMetadata } from "../../../../schemas/rendering/http/pdf-metadata.ts";
import { FairSemaphore } from "../../../runtime/lib/fair-semaphore.ts";
import { abortable } from "../../../runtime/lib/time-limit.ts";
import type { PdfPart } from "./join-pdfs.ts";
import type { JoinStep } from "./join-thread.ts";
import type { PdfOverlay } from "./stamp-pages.ts";

/**
 * Memory limit for the objects of the parts; the bytes of the parts need extra memory. 1,200 pages of text need less
 * than 250 MiB for both.
 */
const JOIN_HEAP_MIB_MAX = 1_024;
/**
 * Maximum joins that one process runs at the same time. With their parts, two may use as much memory as two
 * renderers.
 */
export const JOINS_AT_ONCE_MAX = 2;

/**
 * Limits the parallel joins of this process. Accounts take turns, and one account has all places but one, because a
 * join may take until the deadline of its request.
 */
export const joinPlaces = new FairSemaphore({ places: JOINS_AT_ONCE_MAX, reserved: 1 });

interface JoinerParts {
  signal: AbortSignal;
  leavePlace: () => void;
  heapMibMax: number;
}

export class PdfJoiner implements AsyncDisposable {
  readonly #worker: Worker;
  readonly #signal: AbortSignal;
  readonly #leavePlace: () => void;
  /** Rejects when the thread fails, for example because it exceeds its memory limit. */
  readonly #lost: Promise<never>;

  /**
   * Starts a thread as soon as the limit of parallel joins allows it for the account. The signal cancels the wait and
   * the work.
   */
  static async open(
    account: string,
    signal: AbortSignal,
    { heapMibMax = JOIN_HEAP_MIB_MAX } = {},
  ): Promise<PdfJoiner> {
    const leavePlace = await joinPlaces.take(account, signal);
    return new PdfJoiner({ signal, leavePlace, heapMibMax });
  }

  /** Use `open`. */
  constructor({ signal, leavePlace, heapMibMax }: JoinerParts) {
    this.#signal = signal;
    this.#leavePlace = leavePlace;
    this.#worker = new Worker(moduleBeside(import.meta.url, "./join-thread"), {
      resourceLimits: { maxOldGenerationSizeMb: heapMibMax },
      // The thread needs no environment of this process.
      env: {},
      execArgv: [],
    });
    const { promise, reject } = Promise.withResolvers<never>();
    this.#worker.on("error", (error: Error) => reject(isTooMuch(error) ? tooLarge() : error));
    this.#lost = promise;
    // The step that is waiting rejects with this error. Between two steps no caller waits, so an unhandled rejection
    // must be prevented.
    promise.catch(() => {});
  }

  /** Adds a part. Resolves to the width and height of its pages in points. */
  async add(part: PdfPart): Promise<[number, number][]> {
    return (await this.#run({ step: "add", part })) as [number, number][];
  }

  /** Resolves to the joined PDF. */
  async finish(properties: PdfMetadata, overlays: readonly PdfOverlay[]): Promise<Uint8Array> {
    return (await this.#run({ step: "finish", properties, overlays })) as Uint8Array;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.#worker.terminate();
    } finally {
      this.#leavePlace();
    }
  }

  async #run(step: JoinStep): Promise<unknown> {
    const worker = this.#worker;
    const { promise, resolve } = Promise.withResolvers<unknown>();
    worker.once("message", resolve);
    try {
      worker.postMessage(step);
      return await abortable(Promise.race([promise, this.#lost]), this.#signal);
    } finally {
      worker.off("message", resolve);
    }
  }
}

const isTooMuch = (error: Error) => "code" in error && error.code === "ERR_WORKER_OUT_OF_MEMORY";

function tooLarge(): ActorError {
  const text = "Cannot print the pages: joining their PDFs takes too much memory";
  return new ActorError("page_not_printable", text);
}
