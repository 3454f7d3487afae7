/**
 * Bodies that another process is still writing. When code reads such a body, its parts are requested through the
 * host. An unread body can be passed on by its number.
 */
import type { StreamPart } from "../../../schemas/apps/app-process.ts";
import type { HostLink } from "./host-link.ts";

/** A body that has not been read. */
interface Untouched {
  lent: number;
  first: Uint8Array | undefined;
}

const untouched = new WeakMap<object, Untouched>();

/** Returns a body that starts with `first` and continues with the stream. */
export function lentBody(
  link: HostLink,
  lent: number,
  first: Uint8Array | undefined,
): ReadableStream<Uint8Array> {
  let part = 0;
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        if (untouched.delete(body) && first !== undefined && first.length > 0) {
          controller.enqueue(first);
          return;
        }
        part += 1;
        const next = await readPart(link, lent, part);
        if ("bytes" in next) controller.enqueue(next.bytes);
        else if ("isEnd" in next) controller.close();
        else throw new TypeError(`The answer broke off: ${next.failed}`);
      },
      async cancel() {
        untouched.delete(body);
        await link.operate({ type: "read", lent, part: part + 1, isLeft: true });
      },
    },
    // Nothing is read ahead, so that code which does not read the stream can pass it on.
    { highWaterMark: 0 },
  );
  untouched.set(body, { lent, first });
  return body;
}

/**
 * Takes an unread body that can be passed on by its number. The body then belongs to the caller, and no other code
 * may read it.
 */
export function takeUntouched({ body }: Response): Untouched | undefined {
  if (body === null || body.locked) return undefined;
  const found = untouched.get(body);
  untouched.delete(body);
  return found;
}

async function readPart(link: HostLink, lent: number, part: number): Promise<StreamPart> {
  for (;;) {
    const result = await link.operate({ type: "read", lent, part });
    if (result.type !== "part") throw new TypeError("Cannot read an answer's body");
    if (result.part !== undefined) return result.part;
  }
}
