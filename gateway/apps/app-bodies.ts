/**
 * Bodies of apps' requests and responses at a gateway. Limits how many bytes of them the gateway holds at the same
 * time, with a share for each account and each app.
 */
import type { Readable } from "node:stream";
import { readBody, writeBody } from "../../actors/apps/lib/app-bodies/body-blobs.ts";
import type { BlobStore } from "../../actors/runtime/store/blob-store.ts";
import type { Body } from "../../schemas/apps/app-exchange.ts";
import { readAppKey } from "../../schemas/apps/app-names.ts";
import { APP_REQUEST_BYTES_MAX } from "../../schemas/apps/limits.ts";
import { ActorError } from "../../schemas/errors.ts";
import { BODIES_BYTES_MAX } from "../../schemas/limits.ts";
import { BYTES_ACCOUNT_SHARE, BYTES_APP_SHARE } from "../../schemas/memory-limits.ts";
import { ByteBudget } from "../http/byte-budget.ts";
import { readBytes } from "../http/read-bytes.ts";

/** A request's body. Its functions count the bytes of the request and of its response. */
export interface TakenBody {
  /** The body for the message; undefined if there is none. */
  body: Body | undefined;
  /** Counts bytes of a response. It never refuses, because a refusal would make the client repeat the request. */
  answered(bytes: number): void;
  /** Stops counting the bytes of the request and of its response, and deletes the request's blob. */
  release(): Promise<void>;
}

/** Limits the bytes of the requests and responses of apps. The owners are an account and its app. */
export const appBudget = (limits: { bytesMax?: number; smallBytesMax?: number } = {}) =>
  new ByteBudget({
    bytesMax: BODIES_BYTES_MAX,
    shares: [BYTES_ACCOUNT_SHARE, BYTES_APP_SHARE],
    refusal: tooMany,
    ...limits,
  });

/**
 * Reads the bodies of requests to apps. Refuses a large body with `body_too_large`. Refuses with `busy` if this
 * gateway holds too many bytes of bodies.
 */
export class AppBodies {
  readonly #budget: ByteBudget;
  readonly #blobs: Pick<BlobStore, "put" | "get" | "remove">;

  constructor(blobs: Pick<BlobStore, "put" | "get" | "remove">, budget = appBudget()) {
    this.#blobs = blobs;
    this.#budget = budget;
  }

  async take(
    request: Readable,
    { key, declaredBytes }: { key: string; declaredBytes: number },
  ): Promise<TakenBody> {
    const budget = this.#budget;
    if (declaredBytes > APP_REQUEST_BYTES_MAX) throw tooLarge();
    const owners = [readAppKey(key).accountId, key];
    // The limit also applies to a request without a body, because its response needs room.
    budget.checkOwed(owners);
    const held = budget.open(owners, declaredBytes);
    let read = 0;
    try {
      const whole = await readBytes(request, (more) => {
        if (read + more > APP_REQUEST_BYTES_MAX) throw tooLarge();
        held.take(more);
        read += more;
      });
      const body = await this.write(whole, key);
      const release = async () => {
        held.release();
        // If this fails, the blob is deleted when it expires.
        if (body && "blob" in body) await this.#blobs.remove(body.blob).catch(() => {});
      };
      return { body, answered: held.count, release };
    } catch (error) {
      held.release();
      throw error;
    }
  }

  /** Returns the bytes of a response and deletes its blob, because nobody else reads them. */
  async read(body: Body | undefined): Promise<Buffer> {
    if (!body) return Buffer.alloc(0);
    const bytes = await readBody(this.#blobs, body);
    if ("blob" in body) await this.#blobs.remove(body.blob).catch(() => {});
    return bytes;
  }

  /** Returns the body as a message carries it; undefined if it is empty. */
  async write(bytes: Buffer, key: string): Promise<Body | undefined> {
    return bytes.length === 0 ? undefined : writeBody(this.#blobs, key, bytes);
  }
}

const tooLarge = () =>
  new ActorError(
    "body_too_large",
    `Cannot read body: it is too large, expected at most ${APP_REQUEST_BYTES_MAX} bytes`,
  );

const tooMany = () =>
  new ActorError("busy", "Cannot accept body: too many are under way", { retryAfterS: 1 });
