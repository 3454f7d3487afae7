/**
 * Caches introspection responses for a few seconds. A repeated introspection is answered from the cache, without
 * oidc-provider and without calls to actors. A resource server introspects the same token at each request of its
 * client, many times a second.
 */
import type { Request, RequestHandler, Response } from "express";
import type { LiveUpdates } from "../../../actors/runtime/bus/live.ts";
import type { ActorClient } from "../../../actors/runtime/calls/actor-client.ts";
import { account } from "../../../schemas/account/account.ts";
import { oauthClient } from "../../../schemas/oauth/oauth-client.ts";
import { oauthGrant } from "../../../schemas/oauth/oauth-grant.ts";
import { sha256 } from "../../http/sha256.ts";
import { WatchedCache } from "../../http/watched-cache.ts";
import { findClient } from "../clients/find-client.ts";
import { TOKEN_CACHED_MS, TOKENS_CACHED_MAX } from "./access-tokens.ts";
import { readTokenText } from "./token-text.ts";

/** A form with a token and a hint has 180 bytes. Larger bodies go to oidc-provider. */
const FORM_BYTES_MAX = 1_024;

/** A cached response with `active: true`, and the time when it expires. */
interface Known {
  text: string;
  expiresAt: number;
}

/** A number that changes whenever the client or account changes. */
interface Version {
  number: number;
  /** The account that owns the client, if the client is private. */
  accountId: string | undefined;
}

/**
 * Thrown if oidc-provider has answered a request, and the gateway must not cache the response: it is not `active:
 * true`.
 */
class NotKnown extends Error {}

export class KnownIntrospections {
  readonly #actors: ActorClient;
  readonly #now: () => number;
  readonly #answers: WatchedCache<Known>;
  readonly #clients: WatchedCache<Version>;
  readonly #accounts: WatchedCache<Version>;
  /**
   * Clients for which this gateway has answered an introspection with `active: true`. Requests of other clients go to
   * oidc-provider, which limits guesses before it looks a client up.
   */
  readonly #proven = new Set<string>();
  /** Responses of oidc-provider to the requests that are being handled. */
  readonly #given = new WeakMap<object, { active?: unknown; exp?: unknown }>();
  #versions = 0;

  constructor({
    actors,
    live,
    now,
  }: {
    actors: ActorClient;
    live: LiveUpdates;
    now: () => number;
  }) {
    this.#actors = actors;
    this.#now = now;
    // A response depends on its grant and its client. For a private client it also depends on the members of the
    // client's account. That a person joined the grant's accounts again is seen after TOKEN_CACHED_MS; requests with
    // the token are refused at once.
    const options = { live, now, keptMs: TOKEN_CACHED_MS, entriesMax: TOKENS_CACHED_MAX };
    this.#answers = new WatchedCache(options);
    this.#clients = new WatchedCache(options);
    this.#accounts = new WatchedCache(options);
  }

  /** Records oidc-provider's response to an introspection. */
  record(request: object, body: { active?: unknown; exp?: unknown }): void {
    this.#given.set(request, body);
  }

  /**
   * Returns the handler of introspection requests. `toLibrary` passes a request to oidc-provider and resolves when it
   * has answered.
   */
  handler(toLibrary: RequestHandler): RequestHandler {
    return async (request, response, next) => {
      const form = await readAhead(request);
      const asked = form === undefined ? undefined : readAsked(request, form);
      if (!asked) {
        await toLibrary(request, response, next);
        return;
      }
      const { clientId, grantId, hash } = asked;
      if (!this.#proven.has(clientId)) {
        await toLibrary(request, response, next);
        if (this.#given.get(request)?.active === true) this.#remember(clientId);
        return;
      }
      const client = await this.#clientVersion(clientId);
      const members = client.accountId && (await this.#accountVersion(client.accountId));
      const versions = `${client.number} ${members ? members.number : ""}`;
      const source = { contract: oauthGrant, key: grantId };
      const load = async () => {
        await toLibrary(request, response, next);
        return this.#knownOf(request);
      };
      const known = await this.#answers
        .get(`${hash} ${versions}`, source, load)
        .catch((error: unknown) => {
          if (!(error instanceof NotKnown)) throw error;
        });
      if (!known || response.headersSent) return;
      if (this.#now() >= known.expiresAt) {
        await toLibrary(request, response, next);
        return;
      }
      answer(response, known.text);
      // Reads the rest of the request. Otherwise it would never end, and its time limit would close the connection.
      request.resume();
    };
  }

  #remember(clientId: string): void {
    if (this.#proven.size >= TOKENS_CACHED_MAX) this.#proven.clear();
    this.#proven.add(clientId);
  }

  #knownOf(request: Request): Known {
    const body = this.#given.get(request);
    if (body?.active !== true || typeof body.exp !== "number") throw new NotKnown();
    return { text: JSON.stringify(body), expiresAt: body.exp * 1_000 };
  }

  #clientVersion(clientId: string): Promise<Version> {
    const source = { contract: oauthClient, key: clientId };
    return this.#clients.get(clientId, source, async () => {
      const client = await findClient(this.#actors, clientId);
      const accountId = client?.visibility === "private" ? client.accountId : undefined;
      return { number: ++this.#versions, accountId };
    });
  }

  #accountVersion(accountId: string): Promise<Version> {
    const source = { contract: account, key: accountId };
    return this.#accounts.get(accountId, source, async () => ({
      number: ++this.#versions,
      accountId,
    }));
  }
}

/** Returns the names that a response depends on; undefined if the request is unusual and must go to oidc-provider. */
function readAsked(request: Request, form: string) {
  const { authorization, origin } = request.headers;
  const [, encoded = ""] = /^Basic ([\w+/]+=*)$/i.exec(authorization ?? "") ?? [];
  const [, clientId] = /^([0-9a-f]{32}):/.exec(Buffer.from(encoded, "base64").toString()) ?? [];
  const fields = new URLSearchParams(form);
  const names = [...fields.keys()];
  const isUsual = new Set(names).size === names.length && names.every((name) => USUAL.has(name));
  const address = readTokenText(fields.get("token") ?? "");
  // A request with an Origin comes from a browser and gets other response headers.
  if (!isUsual || clientId === undefined || address?.kind !== "access" || origin !== undefined) {
    return undefined;
  }
  const { grantId } = address;
  return { clientId, grantId, hash: sha256(`${authorization}\n${form}`) };
}

const USUAL = new Set(["token", "token_type_hint"]);

/**
 * Reads a small form that has arrived in one piece, and puts its bytes back into the request for oidc-provider.
 * Resolves to undefined for any other body.
 */
async function readAhead(request: Request): Promise<string | undefined> {
  const { "content-type": type, "content-length": length } = request.headers;
  const bytes = Number(length);
  if (request.method !== "POST" || type !== "application/x-www-form-urlencoded") return undefined;
  if (!(bytes > 0 && bytes <= FORM_BYTES_MAX)) return undefined;
  if (request.readableLength < bytes) await untilReadable(request);
  const form: Buffer | null = request.readableLength === bytes ? request.read() : null;
  if (form === null) return undefined;
  request.unshift(form);
  return form.toString();
}

/** Waits for the first piece of the body. A body in several pieces is not read here but by oidc-provider. */
function untilReadable(request: Request): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      for (const name of EVENTS) request.removeListener(name, done);
      resolve();
    };
    for (const name of EVENTS) request.once(name, done);
  });
}

const EVENTS = ["readable", "close", "error"];

/** Writes the cached response with the headers that oidc-provider sends. */
function answer(response: Response, text: string): void {
  response.writeHead(200, {
    Vary: "Origin",
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Expose-Headers": "WWW-Authenticate",
    "Cache-Control": "no-store",
    "Content-Type": "application/json; charset=utf-8",
    "Content-Length": Buffer.byteLength(text),
  });
  response.end(text);
}
