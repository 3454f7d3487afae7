/**
 * Streams the body of a response up to a size limit. A pipeline through a transform would do the same, but for a
 * small page it costs more than parsing.
 */
import { Readable } from "node:stream";
import { systemError } from "./egress-error.ts";

export class CappedBody extends Readable {
  readonly #source: Readable;
  readonly #failure: (error: Error) => Error;

  /**
   * `tooLarge` creates the error for a body larger than `bytesMax`. `failure` converts every error before readers get
   * it. When this stream is destroyed, it destroys its source too.
   */
  constructor(
    source: Readable,
    options: {
      bytesMax: number;
      tooLarge: (bytes: number) => Error;
      failure: (error: Error) => Error;
    },
  ) {
    super();
    this.#source = source;
    this.#failure = options.failure;
    // Prevents an uncaught "error" event while no reader listens. A reader still gets the error.
    this.on("error", () => {});
    let received = 0;
    source.on("data", (chunk: Buffer) => {
      received += chunk.length;
      if (received > options.bytesMax) this.destroy(options.tooLarge(received));
      else if (!this.push(chunk)) source.pause();
    });
    source.once("end", () => this.push(null));
    source.on("error", (error) => this.destroy(error));
    source.once("close", () => {
      if (!source.readableEnded) this.destroy(systemError("ECONNRESET", "closed before its end"));
    });
  }

  override _read(): void {
    this.#source.resume();
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#source.destroy();
    done(error && this.#failure(error));
  }
}
