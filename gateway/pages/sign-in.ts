/** Signing in and up: throttled, and telling nobody which addresses are known. */
import { randomBytes } from "node:crypto";
import { z } from "zod";
import type { ActorClient } from "../../actors/runtime/actor-client.ts";
import { account } from "../../schemas/account.ts";
import { ActorError } from "../../schemas/errors.ts";
import {
  LOGIN_WINDOW_MS,
  LOGINS_PER_ACCOUNT_MAX,
  LOGINS_PER_ADDRESS_MAX,
  PASSWORD_CHARS_MAX,
  PASSWORD_CHARS_MIN,
  SIGNUPS_PER_ADDRESS_MAX,
} from "../../schemas/oauth-server-limits.ts";
import { requestLimit } from "../../schemas/request-limit.ts";
import { user } from "../../schemas/user.ts";
import { Email } from "../../schemas/values.ts";
import { readInvitation } from "../invitation-text.ts";
import { hashPassword, isDated, matchNoPassword, passwordMatches } from "../password.ts";

export interface Person {
  userId: string;
  email: string;
}

/** What went wrong, as the person reads it; `field` is what they should look at. */
export class Refused extends Error {
  readonly status: number;
  readonly field: "email" | "password" | "current" | undefined;

  constructor(status: number, message: string, field?: Refused["field"]) {
    super(message);
    this.status = status;
    this.field = field;
  }
}

const WRONG = "The e-mail address or the password is not right.";
const TOO_OFTEN = "Too many tries. Wait a quarter of an hour and try again.";

/** Long enough is what counts; longer than this is no password but an attempt to keep us busy. */
const Password = z.string().min(PASSWORD_CHARS_MIN).max(PASSWORD_CHARS_MAX);

/** Refuses a wrong password and an unknown address with the same words, after the same time. */
export async function signIn(
  actors: ActorClient,
  { email: given, password, address }: { email: string; password: string; address: string },
): Promise<Person> {
  const email = Email.safeParse(given.trim());
  await takeTry(actors, `login-from ${address}`, LOGINS_PER_ADDRESS_MAX);
  if (!email.success || password.length > PASSWORD_CHARS_MAX) throw new Refused(401, WRONG);
  await takeTry(actors, `login-to ${email.data}`, LOGINS_PER_ACCOUNT_MAX);
  const known = await passwordOf(actors, email.data);
  const matches = known
    ? await passwordMatches(password, known.passwordHash)
    : await matchNoPassword(password);
  if (!matches || !known) throw new Refused(401, WRONG);
  const { id, passwordHash: before } = known;
  if (isDated(before)) {
    const after = await hashPassword(password);
    await actors.call(user, email.data, "setPassword", { before, after });
  }
  return { userId: id, email: email.data };
}

/** Makes a user, with an account of their own unless they come by an invitation. */
export async function signUp(
  actors: ActorClient,
  asked: { email: string; password: string; address: string; invitation: string },
): Promise<Person> {
  const email = Email.safeParse(asked.email.trim());
  if (!email.success) throw new Refused(400, "Enter an e-mail address.", "email");
  checkNewPassword(asked.password, "password");
  await takeTry(actors, `signup-from ${asked.address}`, SIGNUPS_PER_ADDRESS_MAX);
  const accountId = asked.invitation === "" ? newId() : undefined;
  const person = { userId: newId(), email: email.data };
  const roles = ["Super Administrator" as const];
  try {
    await actors.call(user, person.email, "register", {
      id: person.userId,
      email: person.email,
      passwordHash: await hashPassword(asked.password),
      accounts: accountId === undefined ? [] : [{ accountId, roles }],
    });
  } catch (error) {
    if (!(error instanceof ActorError && error.code === "conflict")) throw error;
    const text = "This account cannot be created. If you have one already, sign in.";
    throw new Refused(409, text, "email");
  }
  if (accountId !== undefined) await openOwnAccount(actors, accountId, person);
  return person;
}

/** A user's own account; repeating it changes nothing. */
export async function openOwnAccount(
  actors: ActorClient,
  accountId: string,
  { userId, email }: Person,
): Promise<void> {
  const [name = email] = email.split("@");
  const owner = { userId, email, roles: ["Super Administrator" as const] };
  await actors.call(account, accountId, "open", { name, owner });
}

/** What an invitation is for; undefined when it is unknown, used or expired. */
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

/** Resolves to the sessions that ended with it. */
export async function changePassword(
  actors: ActorClient,
  { email, sessionId }: Person & { sessionId: string },
  { current, password }: { current: string; password: string },
): Promise<readonly string[]> {
  await takeTry(actors, `login-to ${email}`, LOGINS_PER_ACCOUNT_MAX);
  const known = await passwordOf(actors, email);
  const matches =
    known !== undefined &&
    current.length <= PASSWORD_CHARS_MAX &&
    (await passwordMatches(current, known.passwordHash));
  if (!matches) throw new Refused(403, "The current password is not right.", "current");
  checkNewPassword(password, "password");
  const { passwordHash: before } = known;
  const after = await hashPassword(password);
  const ends = { keep: sessionId };
  const { ended } = await actors.call(user, email, "setPassword", { before, after, ends });
  return ended;
}

function checkNewPassword(password: string, field: "password"): void {
  if (Password.safeParse(password).success) return;
  const text = `Choose a password of ${PASSWORD_CHARS_MIN} to ${PASSWORD_CHARS_MAX} characters.`;
  throw new Refused(400, text, field);
}

async function passwordOf(actors: ActorClient, email: string) {
  try {
    return await actors.call(user, email, "getPassword", {});
  } catch (error) {
    if (error instanceof ActorError && error.code === "not_found") return undefined;
    throw error;
  }
}

async function takeTry(actors: ActorClient, key: string, limit: number): Promise<void> {
  const window = { limit, windowMs: LOGIN_WINDOW_MS };
  const { allowed } = await actors.call(requestLimit, key, "take", window);
  if (!allowed) throw new Refused(429, TOO_OFTEN);
}

const newId = () => randomBytes(16).toString("hex");
