/**
 * Counts attempts to sign in and sign up before they are executed, so that a burst of attempts cannot exceed the
 * limit.
 */
import type { ActorClient } from "../../../actors/runtime/calls/actor-client.ts";
import { LOGIN_WINDOW_MS } from "../../../schemas/account/limits.ts";
import { loginGuard } from "../../../schemas/account/login-guard.ts";
import { requestLimit } from "../../../schemas/account/request-limit.ts";
import { Refused } from "../../pages/refused.ts";
import { isUnchecked } from "../password-hasher.ts";

/** Counts an attempt before it is executed. Refuses it if the window already has `limit` attempts. */
export async function countAttempt(actors: ActorClient, key: string, limit: number): Promise<void> {
  const window = { limit, windowMs: LOGIN_WINDOW_MS };
  const { allowed, resetS } = await actors.call(requestLimit, key, "take", window);
  if (!allowed) throw tooMany(resetS);
}

/** Subtracts an attempt from the count: a successful one, or one whose password was not checked. */
export async function uncountAttempt(actors: ActorClient, key: string): Promise<void> {
  await actors.call(requestLimit, key, "giveBack", {});
}

/** Runs a check of a password. If the password was not checked, takes back the count of its attempt. */
export async function checkOrTakeBack<T>(
  check: () => Promise<T>,
  takeBack: () => Promise<unknown>,
): Promise<T> {
  try {
    return await check();
  } catch (error) {
    if (isUnchecked(error)) await takeBack();
    throw error;
  }
}

/**
 * Counts an attempt for its source, then checks the password. Refuses without a check if the source must wait.
 * Resolves to undefined if the password is wrong.
 */
export async function attemptPassword<T>(
  actors: ActorClient,
  { email, ...source }: { email: string; from: string; isKnown: boolean },
  check: () => Promise<T | undefined>,
): Promise<T | undefined> {
  const { waitMs } = await actors.call(loginGuard, email, "take", source);
  if (waitMs > 0) throw tooMany(Math.ceil(waitMs / 1_000));
  const found = await checkOrTakeBack(check, () =>
    actors.call(loginGuard, email, "unchecked", { from: source.from }),
  );
  if (found !== undefined) await actors.call(loginGuard, email, "passed", { from: source.from });
  return found;
}

function tooMany(retryAfterS: number): Refused {
  const wait =
    retryAfterS > 90 ? `${Math.ceil(retryAfterS / 60)} minutes` : `${retryAfterS} seconds`;
  return new Refused(429, `Too many tries. Wait ${wait} and try again.`, { retryAfterS });
}
