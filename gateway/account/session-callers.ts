/**
 * Lets the browser of a signed-in person use the REST API with its session cookie. Only scripts of the platform's own
 * origin can do this.
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
 * The header that such a script must send. A form or a picture of another site cannot set a header. A script of
 * another site may set it only after a CORS preflight request, which the REST API never grants.
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

  /** Resolves to whether a person is signed in. Also creates the person's own account if it does not exist yet. */
  async welcome(request: Request): Promise<boolean> {
    const person = await findSession(this.#actors, request, this.#cookies);
    if (person) await ownAccounts(this.#actors, person);
    return person !== undefined;
  }

  /**
   * Resolves to the caller; undefined if the request has no SESSION_HEADER. `askedId` is the account that the request
   * is for.
   */
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
    return this.#callerOf(person, askedId);
  }

  /**
   * Checks that the request comes from our own origin. Browsers send Sec-Fetch-Site to https addresses and loopback
   * addresses, and Origin with every request that writes.
   */
  #checkOrigin(request: Request): void {
    const site = request.get("sec-fetch-site");
    const origin = request.get("origin");
    const isRead = request.method === "GET" || request.method === "HEAD";
    const isOwn = origin === undefined ? isRead : origin === this.#origin;
    if (isOwn && (site === undefined || site === "same-origin")) return;
    const text = `Cannot use the session: the request comes from ${origin ?? "an unknown origin"}, expected ${this.#origin}`;
    throw new ActorError("forbidden", text);
  }

  async #callerOf(person: SignedIn, askedId: string | undefined): Promise<Caller> {
    const { userId, sessionId: id, email } = person;
    const held = { userId, session: { id, email }, tokenId: id };
    const member = askedId && (await findMember(this.#actors, askedId, userId));
    if (askedId !== undefined && member) {
      const permissions = permissionsOf(member.roles);
      return { ...held, accountId: askedId, permissions, accountIds: [askedId] };
    }
    const own = await ownAccounts(this.#actors, person);
    const [first] = own;
    return {
      ...held,
      // If the person has no account, the user's id stands for it.
      accountId: first?.accountId ?? userId,
      permissions: first ? permissionsOf(first.roles) : [],
      accountIds: own.map(({ accountId }) => accountId),
    };
  }
}
