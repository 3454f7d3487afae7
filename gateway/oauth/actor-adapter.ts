/**
 * The library's store, kept by actors. It reads a token, checks it, marks it used and writes the next ones, in steps;
 * what is used up and what is given for it are held back here until both are known, and are one message.
 */
import type { Adapter, AdapterPayload } from "oidc-provider";
import { errors, Provider } from "oidc-provider";
import type { ActorClient } from "../../actors/runtime/actor-client.ts";
import { ActorError } from "../../schemas/errors.ts";
import { interaction } from "../../schemas/interaction.ts";
import { type GrantEntry, type GrantToken, oauthGrant } from "../../schemas/oauth-grant.ts";
import { GRANT_MS } from "../../schemas/oauth-server-limits.ts";
import { PendingLogout, session } from "../../schemas/session.ts";
import { browserHashOf, sessionAddress } from "./browser-cookies.ts";
import { findClient, metadataOf } from "./live-client.ts";
import { recordsOf } from "./request-records.ts";
import { readTokenText, sha256, type TokenAddress } from "./token-text.ts";

const KINDS = {
  AuthorizationCode: "code",
  AccessToken: "access",
  RefreshToken: "refresh",
} as const;

/** What the library asks for by name; each name has a store. */
export function actorAdapter(actors: ActorClient): (model: string) => Adapter {
  return (model) => {
    if (model === "Client") return store({ find: (id) => clientOf(actors, id) });
    if (model === "Grant") return grantStore(actors);
    if (model === "Session") return sessionStore(actors);
    if (model === "Interaction") return interactionStore(actors);
    if (model in KINDS) return tokenStore(actors, KINDS[model as keyof typeof KINDS]);
    // Models of what is switched off.
    return store({});
  };
}

/** A client, once a request. */
export async function clientOf(actors: ActorClient, id: string) {
  const { clients } = recordsOf(Provider.ctx);
  const known =
    clients.get(id) ?? findClient(actors, id).then((client) => client && metadataOf(id, client));
  clients.set(id, known);
  return known;
}

function grantStore(actors: ActorClient): Adapter {
  return store({
    async find(id) {
      const { grants } = recordsOf(Provider.ctx);
      const grant = grants.get(id) ?? (await unlessUnknown(actors.call(oauthGrant, id, "get", {})));
      return grant && grantPayload(id, grant);
    },
    destroy: (id) => revoke(actors, id),
  });
}

function grantPayload(id: string, grant: GrantEntry) {
  return {
    jti: id,
    kind: "Grant",
    accountId: grant.userId,
    clientId: grant.clientId,
    iat: seconds(grant.createdAt),
    exp: seconds(grant.expiresAt),
    openid: { scope: grant.scopes.join(" ") },
    rejected: { openid: { scope: grant.rejectedScopes.join(" ") } },
  };
}

function tokenStore(actors: ActorClient, kind: TokenAddress["kind"]): Adapter {
  return store({
    async find(text) {
      const address = readTokenText(text);
      if (address?.kind !== kind) return undefined;
      const { grantId, hash } = address;
      const found = await unlessUnknown(actors.call(oauthGrant, grantId, "find", { kind, hash }));
      if (!found) return undefined;
      const { grant, token } = found;
      recordsOf(Provider.ctx).grants.set(grantId, grant);
      const client = await clientOf(actors, grant.clientId);
      const held = new Set<string>(client?.registration.scopes);
      const { scope, ...record } = token.record;
      return {
        ...record,
        jti: text,
        grantId,
        accountId: grant.userId,
        clientId: grant.clientId,
        // What the client may not ask for any more, its tokens do not open.
        ...(typeof scope === "string" && {
          scope: scope
            .split(" ")
            .filter((id) => held.has(id))
            .join(" "),
        }),
        // The library looks at the time before it looks whether it was used, and that would hide a replay.
        exp: seconds(token.used ? Date.now() + 60_000 : token.expiresAt),
        ...(token.used && { consumed: seconds(Date.now()) }),
      };
    },

    async consume(text) {
      recordsOf(Provider.ctx).using = readTokenText(text);
    },

    async upsert(text, payload, expiresIn = 0) {
      const address = readTokenText(text);
      if (!address) throw new Error(`Cannot keep ${kind}: its text is none of ours`);
      const token = tokenOf(address, payload, expiresIn);
      if (kind === "code") return openGrant(actors, address, payload, token);
      await keepToken(actors, { kind, token, grantId: address.grantId });
    },

    async destroy(text) {
      const address = readTokenText(text);
      if (kind !== "access" || !address) return;
      await actors.call(oauthGrant, address.grantId, "revokeAccess", { hash: address.hash });
    },

    async revokeByGrantId(grantId) {
      // RFC 7009 section 2.1: a client that gives back an access token keeps its refresh token.
      const { oidc } = Provider.ctx ?? {};
      if (oidc?.route === "revocation" && oidc.entities.AccessToken) return;
      await revoke(actors, grantId);
    },
  });
}

/** A grant begins with its code: neither is there without the other. */
async function openGrant(
  actors: ActorClient,
  { grantId }: TokenAddress,
  { clientId, accountId }: AdapterPayload,
  code: GrantToken,
): Promise<void> {
  const { newGrants, email } = recordsOf(Provider.ctx);
  const grant = newGrants.get(grantId);
  if (!grant || email === undefined) throw new Error("Cannot open grant: nobody consented to it");
  const expiresAt = Date.now() + GRANT_MS;
  const owner = { clientId: String(clientId), userId: String(accountId), email };
  const opened = { ...grant, ...owner, expiresAt, code };
  await actors.call(oauthGrant, grantId, "open", opened);
}

/** For a code the access token comes first, for a refresh token last. */
async function keepToken(
  actors: ActorClient,
  { kind, token, grantId }: { kind: "access" | "refresh"; token: GrantToken; grantId: string },
): Promise<void> {
  const context = Provider.ctx;
  const records = recordsOf(context);
  records[kind] = token;
  const { using, access, refresh } = records;
  const hasRefresh = context?.oidc.client?.grantTypeAllowed("refresh_token") === true;
  if (!using) throw new Error(`Cannot keep ${kind}: nothing is used up for it`);
  if (!access || (hasRefresh && !refresh)) return;
  const tokens = { access, ...(refresh && { refresh }) };
  const { outcome } = await used(
    using.kind === "code"
      ? actors.call(oauthGrant, grantId, "redeem", { codeHash: using.hash, ...tokens })
      : actors.call(oauthGrant, grantId, "refresh", {
          refreshHash: using.hash,
          access,
          refresh: refresh ?? access,
        }),
  );
  if (outcome === "reused") throw new errors.InvalidGrant("it was used already");
}

/** Whoever came first has it, or it is over by now. */
async function used<T>(calling: Promise<T>): Promise<T> {
  try {
    return await calling;
  } catch (error) {
    if (isUnknown(error)) throw new errors.InvalidGrant("it is over");
    throw error;
  }
}

/** What is found again by the address or in the grant is not kept twice. */
function tokenOf({ hash }: TokenAddress, payload: AdapterPayload, expiresIn: number): GrantToken {
  const { jti: _text, grantId: _grant, accountId: _user, clientId: _client, ...record } = payload;
  delete record.exp;
  return { hash, record, expiresAt: Date.now() + expiresIn * 1_000 };
}

async function revoke(actors: ActorClient, grantId: string): Promise<void> {
  await actors.call(oauthGrant, grantId, "revoke", {});
}

/** The pages open sessions; the library reads them, and keeps with them a sign-out that waits for its confirmation. */
function sessionStore(actors: ActorClient): Adapter {
  return store({
    async find(text) {
      const { id, secretHash } = sessionAddress(text);
      const found = await unlessUnknown(actors.call(session, id, "get", { secretHash }));
      if (!found) return undefined;
      const { user, expiresAt, logout } = found;
      const records = recordsOf(Provider.ctx);
      records.email = user?.email;
      records.logout = logout;
      return {
        jti: text,
        kind: "Session",
        uid: id,
        exp: seconds(expiresAt),
        ...(user && { accountId: user.userId, loginTs: seconds(user.authenticatedAt) }),
        ...(logout && { state: logout }),
      };
    },

    async upsert(text, { state }) {
      const { id, secretHash } = sessionAddress(text);
      const records = recordsOf(Provider.ctx);
      if (JSON.stringify(state) === JSON.stringify(records.logout)) return;
      const logout = state && PendingLogout.parse(state);
      await unlessUnknown(
        actors.call(session, id, "awaitLogout", { secretHash, ...(logout && { logout }) }),
      );
    },

    async destroy(text) {
      await actors.call(session, sessionAddress(text).id, "end", {});
    },
  });
}

/** For the browser in which it began alone. */
function interactionStore(actors: ActorClient): Adapter {
  const browserHash = () => {
    const context = Provider.ctx;
    return context ? browserHashOf(context.req) : sha256("");
  };
  return store({
    async find(uid) {
      const asked = actors.call(interaction, uid, "get", { browserHash: browserHash() });
      return (await unlessUnknown(asked))?.record;
    },
    async upsert(uid, payload, expiresIn = 0) {
      await actors.call(interaction, uid, "put", {
        browserHash: browserHash(),
        record: { ...payload, session: undefined },
        expiresAt: Date.now() + expiresIn * 1_000,
      });
    },
    async destroy(uid) {
      await actors.call(interaction, uid, "end", {});
    },
  });
}

async function unlessUnknown<T>(calling: Promise<T>): Promise<T | undefined> {
  try {
    return await calling;
  } catch (error) {
    if (isUnknown(error)) return undefined;
    throw error;
  }
}

const isUnknown = (error: unknown) =>
  error instanceof ActorError && ["not_found", "unauthenticated"].includes(error.code);

const seconds = (ms: number) => Math.floor(ms / 1_000);

type Found = Record<string, unknown> | undefined;

/** A store that lacks what its model never asks for. */
function store(parts: {
  find?: (id: string) => Promise<Found>;
  upsert?: (id: string, payload: AdapterPayload, expiresIn?: number) => Promise<void>;
  consume?: (id: string) => Promise<void>;
  destroy?: (id: string) => Promise<void>;
  revokeByGrantId?: (id: string) => Promise<void>;
}): Adapter {
  const none = async () => undefined;
  return {
    find: parts.find ?? none,
    findByUid: none,
    findByUserCode: none,
    upsert: parts.upsert ?? none,
    consume: parts.consume ?? none,
    destroy: parts.destroy ?? none,
    revokeByGrantId: parts.revokeByGrantId ?? none,
  };
}
