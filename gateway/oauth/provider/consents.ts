/** Decides whether a stored consent covers a request, and whether a grant may still be used. */
import type { Grant, KoaContextWithOIDC } from "oidc-provider";
import type { ActorClient } from "../../../actors/runtime/calls/actor-client.ts";
import type { DeepReadonly } from "../../../schemas/contract.ts";
import { grantList } from "../../../schemas/oauth/grant-list.ts";
import type { Consent } from "../../../schemas/oauth/oauth-grant.ts";
import { isIdentityScope } from "../../../schemas/oauth/scopes.ts";
import { findMember } from "../../account/find-member.ts";
import { callFew } from "../../http/call-few.ts";
import type { Registered } from "../clients/live-client.ts";
import { recordsOf } from "../library/request-records.ts";
import { coversMembership } from "../../account/covers-membership.ts";
import { knownScopes } from "../tokens/known-scopes.ts";
import { newGrantId } from "../tokens/token-text.ts";

export class Consents {
  readonly #actors: ActorClient;

  constructor(actors: ActorClient) {
    this.#actors = actors;
  }

  /**
   * Returns a new grant with the requested scopes that the stored consent contains; undefined without a usable
   * consent. If the grant does not cover the request, oidc-provider asks the person. The grant is stored later,
   * together with its code.
   */
  async grantFor(context: KoaContextWithOIDC): Promise<Grant | undefined> {
    const { client, account: person, params, provider } = context.oidc;
    const registration = client?.registration as Registered | undefined;
    if (!client || !registration || !person) return undefined;
    const { clientId } = client;
    const userId = person.accountId;
    const { consent } = await this.#actors.call(grantList, userId, "getConsent", { clientId });
    if (!consent || !(await this.#mayUse(registration, userId))) return undefined;
    const requested = new Set(knownScopes(String(params?.scope ?? "")));
    const held = new Set(registration.scopes);
    const scopes = consent.scopes.filter((scope) => requested.has(scope) && held.has(scope));
    const rejectedScopes = consent.rejectedScopes.filter((scope) => requested.has(scope));
    const accountIds = await this.#accountsOf(userId, consent);
    // If the consent counts for none of its accounts any more, the grant would give access to nothing. So the person
    // must choose again.
    if (accountIds.length === 0 && scopes.some((scope) => !isIdentityScope(scope)))
      return undefined;

    const grant = new provider.Grant({ accountId: userId, clientId });
    grant.jti = newGrantId();
    grant.addOIDCScope(scopes.join(" "));
    grant.rejectOIDCScope(rejectedScopes.join(" "));
    const { invitationIds = [] } = consent;
    const given = { scopes, rejectedScopes, accountIds, invitationIds };
    recordsOf(context).newGrants.set(grant.jti, given);
    return grant;
  }

  /** Resolves to whether the person may still use the client. A private client requires membership in its account. */
  async stillAllowed(
    context: KoaContextWithOIDC,
    userId: string,
    grantId: string | undefined,
  ): Promise<boolean> {
    const { clients, grants } = recordsOf(context);
    const grant = grants.get(grantId ?? "");
    const client = grant && (await clients.get(grant.clientId));
    return client !== undefined && this.#mayUse(client.registration, userId);
  }

  async #mayUse({ visibility, accountId }: Registered, userId: string): Promise<boolean> {
    return (
      visibility === "public" || (await findMember(this.#actors, accountId, userId)) !== undefined
    );
  }

  /** Resolves to the accounts of the consent for which it still counts. */
  async #accountsOf(userId: string, consent: DeepReadonly<Consent>): Promise<string[]> {
    const { accountIds } = consent;
    const members = await callFew(accountIds, (id) => findMember(this.#actors, id, userId));
    return accountIds.filter((_id, index) => {
      const member = members[index];
      return member !== undefined && coversMembership(consent, member);
    });
  }
}
