/** Verifies OAuth access tokens for the REST API, and returns the accounts and permissions that they give now. */

import type { LiveUpdates } from "../../../actors/runtime/bus/live.ts";
import type { ActorClient } from "../../../actors/runtime/calls/actor-client.ts";
import { account, type Member } from "../../../schemas/account/account.ts";
import {
  ALL_PERMISSIONS,
  type Permission,
  permissionsOf,
  permits,
} from "../../../schemas/account/permissions.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { oauthClient } from "../../../schemas/oauth/oauth-client.ts";
import { type GrantEntry, oauthGrant } from "../../../schemas/oauth/oauth-grant.ts";
import type { Scope } from "../../../schemas/oauth/scopes.ts";
import { coversMembership } from "../../account/covers-membership.ts";
import { findMember } from "../../account/find-member.ts";
import { callFew } from "../../http/call-few.ts";
import type { Caller } from "../../http/locals.ts";
import { WatchedCache } from "../../http/watched-cache.ts";
import { findClient } from "../clients/find-client.ts";
import type { LiveClient } from "../clients/live-client.ts";
import { knownScopes } from "./known-scopes.ts";
import { readTokenText, type TokenAddress } from "./token-text.ts";

/** How long the grant, client and members of a token are cached if no live update arrives. */
export const TOKEN_CACHED_MS = 5_000;
/** Limits the number of tokens that one gateway caches. */
export const TOKENS_CACHED_MAX = 10_000;

interface Granted {
  grant: GrantEntry;
  scope: string;
  expiresAt: number;
}

export interface AccessTokensOptions {
  actors: ActorClient;
  live: LiveUpdates;
  now: () => number;
}

export class AccessTokens {
  readonly #actors: ActorClient;
  readonly #now: () => number;
  readonly #tokens: WatchedCache<Granted>;
  readonly #grants: WatchedCache<GrantEntry>;
  readonly #clients: WatchedCache<LiveClient | undefined>;
  readonly #members: WatchedCache<Member | undefined>;

  constructor({ actors, live, now }: AccessTokensOptions) {
    this.#actors = actors;
    this.#now = now;
    const options = { live, now, keptMs: TOKEN_CACHED_MS, entriesMax: TOKENS_CACHED_MAX };
    this.#tokens = new WatchedCache(options);
    this.#grants = new WatchedCache(options);
    this.#clients = new WatchedCache(options);
    this.#members = new WatchedCache(options);
  }

  /** Returns the address of the token; undefined if the text is no access token. */
  read(text: string): TokenAddress | undefined {
    const address = readTokenText(text);
    return address?.kind === "access" ? address : undefined;
  }

  /**
   * Resolves to the caller in the requested account. If the token does not give access to that account, it resolves
   * to the caller in another account of the token. Refuses as `unauthenticated` for every reason.
   */
  async verify(address: TokenAddress, askedId: string | undefined): Promise<Caller> {
    const { grant, scope, expiresAt } = await this.#granted(address);
    if (this.#now() >= expiresAt) throw unknown();
    const client = await this.#clientFor(grant);
    const members = await this.#membersOf(grant);
    const opened = members.find(({ accountId }) => accountId === askedId) ?? members[0];
    const scopes = knownScopes(scope).filter((id) => client.scopes.includes(id));
    return {
      // If the token gives access to no account, its requests are counted and limited under the user's id.
      accountId: opened?.accountId ?? grant.userId,
      tokenId: address.grantId,
      permissions: opened ? permissionsIn(opened.member, scopes) : [],
      scopes,
      expiresAt,
      userId: grant.userId,
      clientId: grant.clientId,
      grantId: address.grantId,
      accountIds: members.map(({ accountId }) => accountId),
    };
  }

  /**
   * Limits an API token that was created with an access token: it gives no more access than its client and its person
   * have now. Refuses as `unauthenticated` if the grant has ended.
   */
  async verifyIssued(issued: Caller & { grantId: string }): Promise<Caller> {
    const { grantId, accountId } = issued;
    const grant = await this.#grantOf(grantId);
    const client = await this.#clientFor(grant);
    const members = await this.#membersOf(grant);
    const opened = members.find((one) => one.accountId === accountId);
    if (!opened) throw unknown();
    const permissions = permissionsIn(opened.member, client.scopes, issued.permissions);
    return { ...issued, permissions, userId: grant.userId, clientId: grant.clientId };
  }

  #grantOf(grantId: string): Promise<GrantEntry> {
    return this.#grants.get(grantId, { contract: oauthGrant, key: grantId }, () =>
      orUnknown(this.#actors.call(oauthGrant, grantId, "get", {})),
    );
  }

  #granted({ kind, grantId, hash }: TokenAddress): Promise<Granted> {
    return this.#tokens.get(hash, { contract: oauthGrant, key: grantId }, async () => {
      const found = this.#actors.call(oauthGrant, grantId, "find", { kind, hash });
      const { grant, token } = await orUnknown(found);
      const { scope } = token.record;
      return { grant, scope: typeof scope === "string" ? scope : "", expiresAt: token.expiresAt };
    });
  }

  /** Resolves to the client of a grant. Refuses as `unauthenticated` if the person may not use the client. */
  async #clientFor(grant: GrantEntry): Promise<LiveClient> {
    const { clientId } = grant;
    const source = { contract: oauthClient, key: clientId };
    const find = () => findClient(this.#actors, clientId);
    const client = await this.#clients.get(clientId, source, find);
    if (!client || !(await this.#mayUse(client, grant))) throw unknown();
    return client;
  }

  /** A private client requires that the person has been a member of its account since the consent. */
  async #mayUse({ visibility, accountId }: LiveClient, grant: GrantEntry): Promise<boolean> {
    if (visibility === "public") return true;
    const member = await this.#memberOf(accountId, grant.userId);
    return member !== undefined && coversMembership(grant, member);
  }

  /** Resolves to the chosen accounts of the grant in which the person has been a member since the consent. */
  async #membersOf(grant: GrantEntry) {
    const { accountIds, userId } = grant;
    const members = await callFew(accountIds, (id) => this.#memberOf(id, userId));
    return accountIds.flatMap((accountId, index) => {
      const member = members[index];
      return member && coversMembership(grant, member) ? [{ accountId, member }] : [];
    });
  }

  #memberOf(accountId: string, userId: string): Promise<Member | undefined> {
    const source = { contract: account, key: accountId };
    const name = `${accountId} ${userId}`;
    return this.#members.get(name, source, () => findMember(this.#actors, accountId, userId));
  }
}

/**
 * Returns the permissions that the person's roles and every list of scopes allow. If one of them allows only to read,
 * a write permission becomes its read permission.
 */
function permissionsIn({ roles }: Member, ...granted: (readonly Scope[])[]): Permission[] {
  const bounds = [permissionsOf(roles), ...granted.map(permissionsAmong)];
  return ALL_PERMISSIONS.filter((id) => bounds.every((held) => permits(held, id)));
}

const permissionsAmong = (scopes: readonly Scope[]) =>
  ALL_PERMISSIONS.filter((id) => scopes.includes(id));

async function orUnknown<T>(calling: Promise<T>): Promise<T> {
  try {
    return await calling;
  } catch (error) {
    if (error instanceof ActorError && error.code === "not_found") throw unknown();
    throw error;
  }
}

/** The error has the same message for every reason, so that attackers learn nothing from a difference. */
const unknown = () => new ActorError("unauthenticated", "Cannot authenticate: unknown token");
