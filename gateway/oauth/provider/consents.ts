/** Decides whether a stored consent covers a request, and whether a grant may still be used. */
import type { Grant, KoaContextWithOIDC } from "oidc-provider";
import type { ActorClient } from "../../../actors/runtime/calls/actor-client.ts";
import type { DeepReadonly } from "../../../schemas/contract.ts";
import { grantList } from "../../../schemas/oauth/grant-list.ts";
import type { Consent } from "../../../schemas/oauth/oauth-grant.ts";
import { isIdentityScope } from "../../../schemas/oauth/scopes.ts";
import { coversMembership } from "../../account/covers-membership.ts";
import { findMember } from "../../account/find-member.ts";
import { callFew } from "../../http/call-few.ts";
import type { Registered } from "../clients/live-client.ts";
import { recordsOf } from "../library/request-records.ts";
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
    if (!consent || !(await this.#mayUse(registration, userId, consent))) return undefined;
    const requested = new Set(knownScopes(String(params?.scope ?? "")));
    const held = new Set(registration.scopes);
    const scopes = consent.scopes.filter((scope) => requested.has(scope) && held.has(scope));
    const rejectedScopes = consent.rejectedScopes.filter((scope) => requested.has(scope));
    // A grant of the identity alone opens no account.
    const needsAccount = scopes.some((scope) => !isIdentityScope(scope));
    const members = needsAccount ? await this.#membersOf(userId, consent.accountIds) : [];
    // If the person left one of the accounts and joined it again, they must choose again.
    if (members.some(({ member }) => !coversMembership(consent, member))) return undefined;
    const accountIds = members.map(({ accountId }) => accountId);
    // If the person has left all accounts of the consent, the grant would give access to nothing.
    if (needsAccount && accountIds.length === 0) return undefined;

    const grant = new provider.Grant({ accountId: userId, clientId });
    grant.jti = newGrantId();
    grant.addOIDCScope(scopes.join(" "));
    grant.rejectOIDCScope(rejectedScopes.join(" "));
    const { invitationIds = [] } = consent;
    const given = { scopes, rejectedScopes, accountIds, invitationIds };
    recordsOf(context).newGrants.set(grant.jti, given);
    return grant;
  }

  /**
   * Resolves to whether the person may still use the client with this grant. The result is false if the person left
   * each of the grant's accounts after the consent and joined it again, because the grant opens none of them.
   */
  async stillAllowed(
    context: KoaContextWithOIDC,
    userId: string,
    grantId: string | undefined,
  ): Promise<boolean> {
    const { clients, grants } = recordsOf(context);
    const grant = grants.get(grantId ?? "");
    const client = grant && (await clients.get(grant.clientId));
    if (!client || !(await this.#mayUse(client.registration, userId, grant))) return false;
    for (const accountId of grant.accountIds) {
      const member = await findMember(this.#actors, accountId, userId);
      if (!member || coversMembership(grant, member)) return true;
    }
    return grant.accountIds.length === 0;
  }

  /** A private client requires that the person has been a member of its account since the consent. */
  async #mayUse(
    { visibility, accountId }: Registered,
    userId: string,
    consent: DeepReadonly<Consent>,
  ): Promise<boolean> {
    if (visibility === "public") return true;
    const member = await findMember(this.#actors, accountId, userId);
    return member !== undefined && coversMembership(consent, member);
  }

  /** Resolves to those of the accounts of which the person is a member, each with the member. */
  async #membersOf(userId: string, accountIds: readonly string[]) {
    const found = await callFew(accountIds, async (accountId) => {
      const member = await findMember(this.#actors, accountId, userId);
      return member ? [{ accountId, member }] : [];
    });
    return found.flat();
  }
}
