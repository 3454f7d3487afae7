/**
 * An answer's body up to a bound, as a pipeline through a transform would give it; that costs a small page more than
 * its parsing.
 */
import { Readable } from "node:stream";
import { systemError } from "./egress-error.ts";

export class CappedBody extends Readable {
  readonly #source: Readable;
  readonly #failure: (error: Error) => Error;

  /**
   * `tooLarge` is the error past `bytesMax`; `failure` is what readers get of any error. Destroys its source with
   * itself.
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
    // The reader gets the error.
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
