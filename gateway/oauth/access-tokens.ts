/** OAuth access tokens as bearers of the REST API: what one opens now, and in which accounts. */
import type { ActorClient } from "../../actors/runtime/actor-client.ts";
import type { LiveUpdates } from "../../actors/runtime/live.ts";
import { account, type Member } from "../../schemas/account.ts";
import { ActorError } from "../../schemas/errors.ts";
import { oauthClient } from "../../schemas/oauth-client.ts";
import { type GrantEntry, oauthGrant } from "../../schemas/oauth-grant.ts";
import { TOKEN_CACHED_MS, TOKENS_CACHED_MAX } from "../../schemas/oauth-server-limits.ts";
import {
  ALL_PERMISSIONS,
  type Permission,
  permissionsOf,
  permits,
} from "../../schemas/permissions.ts";
import type { Caller } from "../locals.ts";
import { memberOf } from "./consents.ts";
import { knownScopes } from "./known-scopes.ts";
import { findClient, type LiveClient } from "./live-client.ts";
import { readTokenText, type TokenAddress } from "./token-text.ts";
import { WatchedCache } from "./watched-cache.ts";

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
  readonly #clients: WatchedCache<LiveClient | undefined>;
  readonly #members: WatchedCache<Member | undefined>;

  constructor({ actors, live, now }: AccessTokensOptions) {
    this.#actors = actors;
    this.#now = now;
    const options = { live, now, keptMs: TOKEN_CACHED_MS, entriesMax: TOKENS_CACHED_MAX };
    this.#tokens = new WatchedCache(options);
    this.#clients = new WatchedCache(options);
    this.#members = new WatchedCache(options);
  }

  /** Undefined when the text is no access token. */
  read(text: string): TokenAddress | undefined {
    const address = readTokenText(text);
    return address?.kind === "access" ? address : undefined;
  }

  /**
   * What the token opens in the account that is asked for; in another than it opens, the caller's account is another
   * too. Refuses as `unauthenticated`, whatever the reason.
   */
  async verify(address: TokenAddress, askedId: string | undefined): Promise<Caller> {
    const { grant, scope, expiresAt } = await this.#granted(address);
    const client = await this.#clientOf(grant.clientId);
    if (this.#now() >= expiresAt || !client || !(await this.#mayUse(client, grant)))
      throw unknown();
    const members = await this.#membersOf(grant);
    const opened = members.find(({ accountId }) => accountId === askedId) ?? members[0];
    const scopes = knownScopes(scope).filter((id) => client.scopes.includes(id));
    return {
      // A token that opens no account is counted, and limited, as its user.
      accountId: opened?.accountId ?? grant.userId,
      tokenId: address.grantId,
      permissions: opened ? permissionsIn(scopes, opened.member) : [],
      expiresAt,
      userId: grant.userId,
      clientId: grant.clientId,
      accountIds: members.map(({ accountId }) => accountId),
      isStillGood: () => this.#isStillGood(address, askedId),
    };
  }

  async #isStillGood(address: TokenAddress, askedId: string | undefined): Promise<boolean> {
    try {
      const { accountId } = await this.verify(address, askedId);
      return askedId === undefined || accountId === askedId;
    } catch (error) {
      if (error instanceof ActorError && error.code === "unauthenticated") return false;
      throw error;
    }
  }

  #granted({ kind, grantId, hash }: TokenAddress): Promise<Granted> {
    return this.#tokens.get(hash, { contract: oauthGrant, key: grantId }, async () => {
      try {
        const { grant, token } = await this.#actors.call(oauthGrant, grantId, "find", {
          kind,
          hash,
        });
        const { scope } = token.record;
        return { grant, scope: typeof scope === "string" ? scope : "", expiresAt: token.expiresAt };
      } catch (error) {
        if (error instanceof ActorError && error.code === "not_found") throw unknown();
        throw error;
      }
    });
  }

  #clientOf(clientId: string): Promise<LiveClient | undefined> {
    const source = { contract: oauthClient, key: clientId };
    return this.#clients.get(clientId, source, () => findClient(this.#actors, clientId));
  }

  async #mayUse({ visibility, accountId }: LiveClient, { userId }: GrantEntry): Promise<boolean> {
    return visibility === "public" || (await this.#memberOf(accountId, userId)) !== undefined;
  }

  /** The accounts that were chosen, and that the person still belongs to. */
  async #membersOf({ accountIds, userId }: GrantEntry) {
    const members = await Promise.all(accountIds.map((id) => this.#memberOf(id, userId)));
    return accountIds.flatMap((accountId, index) => {
      const member = members[index];
      return member ? [{ accountId, member }] : [];
    });
  }

  #memberOf(accountId: string, userId: string): Promise<Member | undefined> {
    const source = { contract: account, key: accountId };
    const name = `${accountId} ${userId}`;
    return this.#members.get(name, source, () => memberOf(this.#actors, accountId, userId));
  }
}

/** No more than the person may do themselves: a scope to write is one to read where they may only read. */
function permissionsIn(scopes: readonly string[], { roles }: Member): Permission[] {
  const held = permissionsOf(roles);
  const granted = ALL_PERMISSIONS.filter((id) => scopes.includes(id));
  return ALL_PERMISSIONS.filter((id) => permits(granted, id) && permits(held, id));
}

/** One message for every reason: an attacker learns nothing from the difference. */
const unknown = () => new ActorError("unauthenticated", "Cannot authenticate: unknown token");
