/**
 * Reads the body of an event unchanged, up to its limit. Also limits the bytes of all bodies that one gateway holds
 * at the same time, with a share for each account and each app.
 */
import type { Readable } from "node:stream";
import type { HeaderList } from "../../../schemas/apps/app-exchange.ts";
import { WEBHOOK_BODIES_BYTES_MAX } from "../../../schemas/apps/limits.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { BYTES_ACCOUNT_SHARE, BYTES_APP_SHARE } from "../../../schemas/memory-limits.ts";
import { ByteBudget } from "../../http/byte-budget.ts";
import { readBytes } from "../../http/read-bytes.ts";

/** Limits the bytes of all events that are being read or stored. The owners are an account and its app. */
export const eventBudget = (limits: { bytesMax?: number; smallBytesMax?: number } = {}) =>
  new ByteBudget({
    bytesMax: WEBHOOK_BODIES_BYTES_MAX,
    shares: [BYTES_ACCOUNT_SHARE, BYTES_APP_SHARE],
    refusal: tooMany,
    ...limits,
  });

/** Reads a body. Its bytes count toward the limit until the caller disposes of the result. */
export async function readEventBody(
  { headers, body }: { headers: HeaderList; body: Readable },
  { budget, owners, bytesMax }: { budget: ByteBudget; owners: readonly string[]; bytesMax: number },
): Promise<Disposable & { bytes: Buffer }> {
  const declared = Number(headers.find(([name]) => name === "content-length")?.[1] ?? 0);
  if (declared > bytesMax) throw tooLarge(bytesMax);
  const held = budget.open(owners, declared);
  let read = 0;
  try {
    const bytes = await readBytes(body, (more) => {
      if (read + more > bytesMax) throw tooLarge(bytesMax);
      held.take(more);
      read += more;
    });
    return { bytes, [Symbol.dispose]: held.release };
  } catch (error) {
    held.release();
    throw error;
  }
}

const tooLarge = (bytesMax: number) =>
  new ActorError("body_too_large", `Cannot read event: expected at most ${bytesMax} bytes`);

const tooMany = () =>
  new ActorError(
    "queue_full",
    "Cannot read event: too many large uploads are in progress; try again",
    {
      retryAfterS: 1,
    },
  );
