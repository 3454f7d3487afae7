/**
 * The store of codes and tokens. In separate steps, oidc-provider reads a token, marks it as used and writes the new
 * tokens. This store collects these steps and sends one message to the grant, so that they succeed or fail together.
 */
import assert from "node:assert/strict";
import type { Adapter, AdapterPayload } from "oidc-provider";
import type { ActorClient } from "../../../actors/runtime/calls/actor-client.ts";
import { grantList } from "../../../schemas/oauth/grant-list.ts";
import { GRANT_MS } from "../../../schemas/oauth/limits.ts";
import { type GrantToken, oauthGrant } from "../../../schemas/oauth/oauth-grant.ts";
import { callAndNotify } from "../../http/call-and-notify.ts";
import { countRefresh } from "../library/limit-refreshes.ts";
import { errors, Provider } from "../library/oidc-library.ts";
import { type FoundToken, recordsOf } from "../library/request-records.ts";
import { beginAttempt } from "../library/throttle.ts";
import { readTokenText, type TokenAddress } from "../tokens/token-text.ts";
import { clientOf } from "./client-store.ts";
import { findToken } from "./find-token.ts";
import { revoke } from "./grant-store.ts";
import { isUnknown, type StoreParts, seconds, store } from "./library-store.ts";
import { isCodeGood } from "./registration-check.ts";

export function tokenStore(
  { actors, failed, now, requestsPerWindow: limit }: StoreParts,
  kind: TokenAddress["kind"],
): Adapter {
  return store({
    async find(text) {
      const address = readTokenText(text);
      if (address?.kind !== kind) return undefined;
      await beginAttempt(failed);
      const { grantId } = address;
      const found = await findToken(actors, address);
      // The replay of a used token ends the grant, so no limit may prevent it.
      const mayEndGrant = found?.token.used && isOwn(found);
      if (kind === "refresh" && !mayEndGrant) {
        await countRefresh(actors, Provider.ctx, { found, limit });
      }
      if (!found) {
        // The token may be unknown because it has ended. Then make its grant notify all gateways again before this
        // request is answered, because the first notification may have been lost.
        await actors.call(oauthGrant, grantId, "tellAgain", {});
        return undefined;
      }
      const { grant, token } = found;
      if (isReplay(address, found)) {
        await revoke(actors, grantId);
        return undefined;
      }
      recordsOf(Provider.ctx).grants.set(grantId, grant);
      const client = await clientOf(actors, grant.clientId);
      // The tokens of a deleted client are invalid.
      if (!client) return undefined;
      if (kind === "code" && !token.used && !isCodeGood(client, token.record)) return undefined;
      const held = new Set<string>(client.registration.scopes);
      const { scope, ...record } = token.record;
      return {
        ...record,
        jti: text,
        grantId,
        accountId: grant.userId,
        clientId: grant.clientId,
        // Scopes that the client has lost are removed from its tokens.
        ...(typeof scope === "string" && {
          scope: scope
            .split(" ")
            .filter((id) => held.has(id))
            .join(" "),
        }),
        // oidc-provider checks the expiry before it checks whether the token was used. So a used token is returned as
        // unexpired; otherwise its replay would stay unnoticed.
        exp: seconds(token.used ? now() + 60_000 : token.expiresAt),
        ...(token.used && { consumed: seconds(now()) }),
      };
    },

    async consume(text) {
      recordsOf(Provider.ctx).using = readTokenText(text);
    },

    async upsert(text, payload, expiresIn = 0) {
      const address = readTokenText(text);
      if (!address) throw new Error(`Cannot keep ${kind}: its text is none of ours`);
      const token = tokenOf(address, payload, now() + expiresIn * 1_000);
      if (kind === "code") {
        const opened = { payload, code: token, expiresAt: now() + GRANT_MS };
        return openGrant(actors, address, opened);
      }
      await keepToken(actors, { kind, token });
    },

    async destroy(text) {
      const address = readTokenText(text);
      if (kind !== "access" || !address) return;
      const { grantId, hash } = address;
      await callAndNotify(actors, oauthGrant, grantId, "revokeAccess", { hash });
    },

    async revokeByGrantId(grantId) {
      // RFC 7009 section 2.1: when a client revokes an access token, its refresh token stays valid.
      const { oidc } = Provider.ctx ?? {};
      if (oidc?.route === "revocation" && oidc.entities.AccessToken) return;
      await revoke(actors, grantId);
    },
  });
}

/**
 * Returns whether the client sends a refresh token that it has used before (RFC 9700 section 4.14.2). The check runs
 * here, after the client has authenticated. oidc-provider would first compare the requested scope with the scope of
 * the used token, whose record is no longer stored.
 */
function isReplay({ kind }: TokenAddress, found: FoundToken): boolean {
  const { oidc } = Provider.ctx ?? {};
  return kind === "refresh" && found.token.used && oidc?.route === "token" && isOwn(found);
}

/** Returns whether the client of the request is the client of the token. */
const isOwn = ({ grant }: FoundToken) => Provider.ctx?.oidc.client?.clientId === grant.clientId;

/** Opens a grant together with its code in one call, so that neither exists without the other. */
async function openGrant(
  actors: ActorClient,
  { grantId }: TokenAddress,
  { payload, ...begun }: { payload: AdapterPayload; code: GrantToken; expiresAt: number },
): Promise<void> {
  const { newGrants, email } = recordsOf(Provider.ctx);
  const grant = newGrants.get(grantId);
  if (!grant || email === undefined) throw new Error("Cannot open grant: there is no consent");
  const [clientId, userId] = [String(payload.clientId), String(payload.accountId)];
  await actors.call(oauthGrant, grantId, "open", { ...grant, clientId, userId, email, ...begun });
  // The grant's actor also sends this to the grant list, but later. This call makes the grant revocable before the
  // client has its code.
  const added = await actors.call(grantList, userId, "addGrant", { clientId, grantId });
  if (added.isRecorded !== false) return;
  await revoke(actors, grantId);
  throw new errors.AccessDenied("the resource owner withdrew the consent");
}

/**
 * Collects the new tokens and stores them when it has all: an access token, and a refresh token if the client may use
 * one. oidc-provider writes the access token first when it redeems a code, and last when it uses a refresh token.
 */
async function keepToken(
  actors: ActorClient,
  { kind, token }: { kind: "access" | "refresh"; token: GrantToken },
): Promise<void> {
  const context = Provider.ctx;
  const records = recordsOf(context);
  records[kind] = token;
  const { using, access, refresh } = records;
  const hasRefresh = context?.oidc.client?.grantTypeAllowed("refresh_token") === true;
  if (!using) throw new Error(`Cannot keep ${kind}: nothing is used up for it`);
  if (!access || (hasRefresh && !refresh)) return;
  const { outcome } = await orInvalidGrant(exchangeToken(actors, using, { access, refresh }));
  if (outcome === "issued") return;
  await actors.call(oauthGrant, using.grantId, "tellAgain", {});
  throw new errors.InvalidGrant("it was used already");
}

/** Marks the code or refresh token as used and stores the new tokens, in one message. */
function exchangeToken(
  actors: ActorClient,
  { kind, grantId, hash }: TokenAddress,
  { access, refresh }: { access: GrantToken; refresh: GrantToken | undefined },
) {
  if (kind === "code") {
    const tokens = { access, ...(refresh && { refresh }) };
    return actors.call(oauthGrant, grantId, "redeem", { codeHash: hash, ...tokens });
  }
  assert(refresh, "A refresh token gives its next one");
  return actors.call(oauthGrant, grantId, "refresh", { refreshHash: hash, access, refresh });
}

/** Converts the actor's refusal of an unknown or ended code or token to the OAuth error `invalid_grant`. */
async function orInvalidGrant<T>(calling: Promise<T>): Promise<T> {
  try {
    return await calling;
  } catch (error) {
    if (isUnknown(error)) throw new errors.InvalidGrant("it is over");
    throw error;
  }
}

/** Returns the token in its stored form, without the fields that the token's address or its grant already contain. */
function tokenOf({ hash }: TokenAddress, payload: AdapterPayload, expiresAt: number): GrantToken {
  const { jti: _text, grantId: _grant, accountId: _user, clientId: _client, ...record } = payload;
  delete record.exp;
  return { hash, record, expiresAt };
}
