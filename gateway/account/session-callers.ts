/**
 * Opens the REST API to a signed-in person's browser by its session cookie, for scripts of the platform's own origin
 * alone.
 */
import type { Request } from "express";
import type { ActorClient } from "../../actors/runtime/calls/actor-client.ts";
import { permissionsOf } from "../../schemas/account/permissions.ts";
import { ActorError } from "../../schemas/errors.ts";
import type { Caller } from "../http/locals.ts";
import { findMember } from "./find-member.ts";
import { findSession, type SignedIn } from "./find-session.ts";
import { type CookieNames, cookieNames } from "./pages/browser-cookies.ts";
import { ownAccounts } from "./pages/own-accounts.ts";

/**
 * A form or a picture of another site cannot set a header, and its scripts may set this one only after a preflight
 * request, which the REST API never grants.
 */
export const SESSION_HEADER = "X-Trunkline-Session";
export const SESSION_HEADER_VALUE = "use";

export class SessionCallers {
  readonly #actors: ActorClient;
  readonly #cookies: CookieNames;
  readonly #origin: string;

  constructor({ actors, publicUrl }: { actors: ActorClient; publicUrl: string }) {
    this.#actors = actors;
    this.#cookies = cookieNames(publicUrl);
    this.#origin = new URL(publicUrl).origin;
  }

  /** Resolves to whether a person is signed in. Opens their own account if nothing has needed it before. */
  async welcome(request: Request): Promise<boolean> {
    const person = await findSession(this.#actors, request, this.#cookies);
    if (person) await ownAccounts(this.#actors, person);
    return person !== undefined;
  }

  /** Resolves to undefined if the request does not ask to use its session. `askedId` is the account to be opened. */
  async find(request: Request, askedId: string | undefined): Promise<Caller | undefined> {
    const asked = request.get(SESSION_HEADER);
    if (asked === undefined) return undefined;
    if (asked !== SESSION_HEADER_VALUE) {
      const text = `Cannot authenticate: ${SESSION_HEADER} is "${asked.slice(0, 20)}", expected "${SESSION_HEADER_VALUE}"`;
      throw new ActorError("unauthenticated", text);
    }
    this.#checkOrigin(request);
    const person = await findSession(this.#actors, request, this.#cookies);
    if (!person) {
      throw new ActorError(
        "unauthenticated",
        "Cannot authenticate: the browser session has ended; sign in again",
      );
    }
    return this.#callerOf(request, person, askedId);
  }

  /** Browsers send Sec-Fetch-Site to https and to loopback addresses, and Origin with every request that writes. */
  #checkOrigin(request: Request): void {
    const site = request.get("sec-fetch-site");
    const origin = request.get("origin");
    const isRead = request.method === "GET" || request.method === "HEAD";
    const isOwn = origin === undefined ? isRead : origin === this.#origin;
    if (isOwn && (site === undefined || site === "same-origin")) return;
    const text = `Cannot use the session: the request comes from ${origin ?? "an unknown origin"}, expected ${this.#origin}`;
    throw new ActorError("forbidden", text);
  }

  async #callerOf(
    request: Request,
    person: SignedIn,
    askedId: string | undefined,
  ): Promise<Caller> {
    const { userId, sessionId: id, email } = person;
    const held = { userId, session: { id, email }, tokenId: id };
    const isStillGood = async () => {
      const now = await findSession(this.#actors, request, this.#cookies);
      if (!now) return false;
      return (
        askedId === undefined || (await findMember(this.#actors, askedId, userId)) !== undefined
      );
    };
    const member = askedId && (await findMember(this.#actors, askedId, userId));
    if (askedId !== undefined && member) {
      const permissions = permissionsOf(member.roles);
      return { ...held, accountId: askedId, permissions, accountIds: [askedId], isStillGood };
    }
    const own = await ownAccounts(this.#actors, person);
    const [first] = own;
    return {
      ...held,
      // A person without an account is counted, and limited, as a user.
      accountId: first?.accountId ?? userId,
      permissions: first ? permissionsOf(first.roles) : [],
      accountIds: own.map(({ accountId }) => accountId),
      isStillGood,
    };
  }
}
