/** Makes the calls of one request to many actors, a few at a time. */
import { Semaphore } from "../../actors/runtime/lib/semaphore.ts";

/**
 * Calls that one request makes at the same time. All requests of an account share its part of the calls of the
 * gateway's client (ACCOUNT_CALLS_MAX). With a hundred calls each, the requests of its tokens in one window would take
 * all of them, and every other request of the account would be refused as busy.
 */
export const CALLS_OF_REQUEST_MAX = 8;

/** Calls `call` for each of the items. Resolves to the replies in the order of the items. */
export function callFew<Item, Reply>(
  items: readonly Item[],
  call: (item: Item) => Promise<Reply>,
): Promise<Reply[]> {
  const places = new Semaphore(CALLS_OF_REQUEST_MAX);
  return Promise.all(items.map((item) => places.run(() => call(item))));
}
