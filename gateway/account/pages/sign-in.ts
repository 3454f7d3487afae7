/** Sign-in and sign-up, with limited attempts. Neither reveals which e-mail addresses belong to a user. */
import { randomBytes } from "node:crypto";
import { z } from "zod";
import type { ActorClient } from "../../../actors/runtime/calls/actor-client.ts";
import { account } from "../../../schemas/account/account.ts";
import { ACCOUNTS_PER_USER_MAX, PASSWORD_CHARS_MIN } from "../../../schemas/account/limits.ts";
import { user } from "../../../schemas/account/user.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { Email } from "../../../schemas/values.ts";
import { Refused } from "../../pages/refused.ts";
import { isCommonPassword } from "../common-passwords.ts";
import { readInvitation } from "../invitation-text.ts";
import { countersOf } from "../network-of.ts";
import { hashPassword, isDated, matchNoPassword, passwordMatches } from "../password.ts";
import type { PasswordSource } from "../password-hasher.ts";
import { attemptPassword, checkOrTakeBack, countAttempt, uncountAttempt } from "./attempts.ts";

export const PASSWORD_CHARS_MAX = 256;

export const LOGINS_PER_ADDRESS_MAX = 100;
/** Limits the sign-ups from one network in LOGIN_WINDOW_MS. */
export const SIGNUPS_PER_ADDRESS_MAX = 20;

export interface Person {
  userId: string;
  email: string;
  /** Version of the password that was checked. */
  passwordVersion?: number | undefined;
}

export const WRONG = "The e-mail address or the password is not right.";

/**
 * A new password needs only a minimum length. Passwords that are too long are refused, because hashing them takes
 * time.
 */
const Password = z.string().min(PASSWORD_CHARS_MIN).max(PASSWORD_CHARS_MAX);

export interface Credentials {
  email: string;
  password: string;
  /** The network of the request. */
  address: string;
  /** Resolves to a stable name of the browser if the person signed in there before. */
  known?: (email: string) => Promise<string | undefined>;
}

/** Signs in. A wrong password and an unknown address are refused with the same words and after the same time. */
export async function signIn(actors: ActorClient, given: Credentials): Promise<Person> {
  const { password, address } = given;
  const email = Email.safeParse(given.email.trim());
  const browser = email.success ? await given.known?.(email.data) : undefined;
  const network = `login-from ${address}`;
  const isKnown = browser !== undefined;
  if (!isKnown) await countAttempt(actors, network, LOGINS_PER_ADDRESS_MAX);
  if (!email.success || password.length > PASSWORD_CHARS_MAX) throw new Refused(401, WRONG);
  const from = isKnown ? `browser ${browser}` : `network ${address}`;
  const source = { from, network: address };
  const uncount = async () => {
    if (!isKnown) await uncountAttempt(actors, network);
  };
  const attempt = { email: email.data, from, isKnown };
  const check = () => userWith(actors, { email: email.data, password, source });
  const person = await checkOrTakeBack(() => attemptPassword(actors, attempt, check), uncount);
  if (!person) throw new Refused(401, WRONG);
  await uncount();
  return person;
}

/** Resolves to the user with this address and password; undefined if there is none. */
async function userWith(
  actors: ActorClient,
  { email, password, source }: { email: string; password: string; source: PasswordSource },
): Promise<Person | undefined> {
  const known = await passwordOf(actors, email);
  const matches = known
    ? await passwordMatches(password, known.passwordHash, source)
    : await matchNoPassword(password, source);
  if (!matches || !known) return undefined;
  const { id, passwordHash: before, passwordVersion } = known;
  if (isDated(before)) {
    const after = await hashPassword(password, source);
    await actors.call(user, email, "setPassword", { before, after }).catch((error: unknown) => {
      // Another sign-in stored a new hash meanwhile. If it is of another password, the session is refused later.
      if (!(error instanceof ActorError && error.code === "conflict")) throw error;
    });
  }
  return { userId: id, email, passwordVersion };
}

/**
 * Registers a user, with an own account unless they were invited. For an address that already has a user it does the
 * same work but changes nothing, so that neither the answer nor its time reveals this. The account itself is created
 * by the first page that lists it (`ownAccounts`).
 */
export async function signUp(
  actors: ActorClient,
  asked: { email: string; password: string; address: string; isInvited: boolean },
): Promise<void> {
  const email = Email.safeParse(asked.email.trim());
  if (!email.success) throw new Refused(400, "Enter an e-mail address.", { field: "email" });
  await checkNewPassword(asked.password, email.data);
  const counters = countersOf("signup", asked.address, SIGNUPS_PER_ADDRESS_MAX);
  for (const { key, limit } of counters) await countAttempt(actors, key, limit);
  const source = { from: `network ${asked.address}`, network: asked.address };
  const passwordHash = await checkOrTakeBack(
    () => hashPassword(asked.password, source),
    () => Promise.all(counters.map(({ key }) => uncountAttempt(actors, key))),
  );
  const roles = ["Super Administrator" as const];
  const accounts = asked.isInvited ? [] : [{ accountId: newId(), roles }];
  const entry = { id: newId(), email: email.data, passwordHash, accounts };
  try {
    await actors.call(user, email.data, "register", entry);
  } catch (error) {
    if (!(error instanceof ActorError && error.code === "conflict")) throw error;
  }
}

/** Creates a user's own account. Repeating the call changes nothing. */
export async function openOwnAccount(
  actors: ActorClient,
  accountId: string,
  { userId, email }: Person,
): Promise<void> {
  const [name = email] = email.split("@");
  const owner = { userId, email, roles: ["Super Administrator" as const] };
  await actors.call(account, accountId, "open", { name, owner });
}

/** Resolves to an invitation; undefined if it is unknown, used or expired. */
export async function findInvitation(actors: ActorClient, text: string) {
  const invitation = readInvitation(text);
  if (!invitation) return undefined;
  const { accountId, id, secretHash } = invitation;
  try {
    return await actors.call(account, accountId, "getInvitation", { id, secretHash });
  } catch (error) {
    if (error instanceof ActorError && error.code === "not_found") return undefined;
    throw error;
  }
}

export async function acceptInvitation(
  actors: ActorClient,
  text: string,
  { userId, email }: Person,
): Promise<void> {
  const invitation = readInvitation(text);
  if (!invitation) return;
  const { accountId, id, secretHash } = invitation;
  const { accounts } = await actors.call(user, email, "get", {});
  if (accounts.length >= ACCOUNTS_PER_USER_MAX) {
    const text = `You belong to ${ACCOUNTS_PER_USER_MAX} accounts, which is the limit. Leave one of them first.`;
    throw new Refused(409, text);
  }
  try {
    await actors.call(account, accountId, "acceptInvitation", { id, secretHash, userId, email });
  } catch (error) {
    const isRefused =
      error instanceof ActorError &&
      ["not_found", "forbidden", "limit_reached"].includes(error.code);
    if (!isRefused) throw error;
    throw new Refused(403, "This invitation is over, or it is for another e-mail address.");
  }
}

/**
 * Changes the password. Resolves to the sessions that the change ended, and to the person with the new password
 * version.
 */
export async function changePassword(
  actors: ActorClient,
  { email, sessionId }: Person & { sessionId: string },
  { current, password, address }: { current: string; password: string; address: string },
): Promise<{ ended: readonly string[]; person: Person }> {
  const source = { from: `session ${sessionId}`, network: address };
  const attempt = { email, from: source.from, isKnown: true };
  const known = await attemptPassword(actors, attempt, async () => {
    const found = await passwordOf(actors, email);
    const matches =
      found !== undefined &&
      current.length <= PASSWORD_CHARS_MAX &&
      (await passwordMatches(current, found.passwordHash, source));
    return matches ? found : undefined;
  });
  if (!known) throw new Refused(403, "The current password is not right.", { field: "current" });
  await checkNewPassword(password, email);
  const { id: userId, passwordHash: before, passwordVersion = 0 } = known;
  const after = await hashPassword(password, source);
  const ends = { keep: sessionId };
  const { ended } = await actors.call(user, email, "setPassword", { before, after, ends });
  return { ended, person: { userId, email, passwordVersion: passwordVersion + 1 } };
}

async function checkNewPassword(password: string, email: string): Promise<void> {
  const field = "password";
  if (!Password.safeParse(password).success) {
    const text = `Choose a password of ${PASSWORD_CHARS_MIN} to ${PASSWORD_CHARS_MAX} characters.`;
    throw new Refused(400, text, { field });
  }
  if (await isCommonPassword(password, email)) {
    const text = "Choose a password that is harder to guess: this one is common or your own name.";
    throw new Refused(400, text, { field });
  }
}

async function passwordOf(actors: ActorClient, email: string) {
  try {
    return await actors.call(user, email, "getPassword", {});
  } catch (error) {
    if (error instanceof ActorError && error.code === "not_found") return undefined;
    throw error;
  }
}

const newId = () => randomBytes(16).toString("hex");
