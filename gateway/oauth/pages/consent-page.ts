/** The consent page. */
import { account } from "../../../schemas/account/account.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { grantList } from "../../../schemas/oauth/grant-list.ts";
import { ACCOUNTS_PER_GRANT_MAX, CLIENTS_PER_USER_MAX } from "../../../schemas/oauth/limits.ts";
import type { Consent } from "../../../schemas/oauth/oauth-grant.ts";
import { isIdentityScope, SCOPES, type Scope } from "../../../schemas/oauth/scopes.ts";
import { coversMembership } from "../../account/covers-membership.ts";
import { findMember } from "../../account/find-member.ts";
import type { SignedIn } from "../../account/find-session.ts";
import type { FormPage } from "../../account/pages/form-page.ts";
import type { Waiting } from "../../account/pages/interactions.ts";
import type { PageParts } from "../../account/pages/page-parts.ts";
import type { Visit } from "../../account/pages/visit.ts";
import { refusalNote } from "../../pages/forms.ts";
import { type Html, html } from "../../pages/html.ts";
import { Refused, staleForm } from "../../pages/refused.ts";
import { findClient } from "../clients/find-client.ts";
import { type LiveClient, scopesOf } from "../clients/live-client.ts";
import { knownScopes } from "../tokens/known-scopes.ts";
import { clientHeading } from "./client-heading.ts";
import { logoPath } from "./client-logo.ts";
import { type AccountChoice, type Choices, choicesOf } from "./consent-choices.ts";

interface ConsentRequest {
  uid: string;
  waiting: Waiting;
  clientId: string;
  client: LiveClient;
  person: SignedIn;
}

/** The page on which a person allows or denies the request of a client. */
export function consentPages(parts: PageParts): FormPage[] {
  return [{ path: "/oauth2/consent", get: showConsent(parts), post: decide(parts) }];
}

function showConsent(parts: PageParts) {
  return async (visit: Visit): Promise<void> => {
    const request = await readRequest(parts, visit, visit.query("interaction"));
    if (!request) return;
    if (!(await mayUse(parts, request))) return showPrivateClient(parts, visit, request);
    await showChoices(parts, visit, request);
  };
}

function decide(parts: PageParts) {
  return async (visit: Visit): Promise<void> => {
    const request = await readRequest(parts, visit, visit.text("interaction"));
    if (!request) return;
    if (!(await visit.isOurForm(purposeOf(request)))) {
      const text = "This page was open for too long, or you signed in again. Decide again.";
      return showChoices(parts, visit, request, new Refused(403, text));
    }
    if (!(await mayUse(parts, request))) {
      return deny(parts, visit, request, "This client is for members of the account that owns it");
    }
    if (visit.text("decision") !== "allow") {
      return deny(parts, visit, request, "The resource owner denied the request");
    }
    const removedScope = goneScope(request);
    if (removedScope !== undefined) {
      const error_description = `The client is not registered for the scope '${removedScope}' any more`;
      return finish(parts, visit, request, { error: "invalid_scope", error_description });
    }
    const choices = await readChoices(parts, request);
    const consent = consentOf(visit, choices);
    const shown = visit.text("shown");
    // The form is of a gateway of an earlier version, which does not say what it showed.
    if (shown === "") return showChoices(parts, visit, request, staleForm(), consent);
    if (shown !== shownScopes(choices)) {
      const text = `The owner of ${request.client.clientName} changed what it asks for. Decide again.`;
      return showChoices(parts, visit, request, new Refused(409, text), consent);
    }
    if (consent.accountIds.length === 0 && choices.accounts.length > 0) {
      return showChoices(
        parts,
        visit,
        request,
        new Refused(400, "Choose at least one account."),
        consent,
      );
    }
    if (choices.accounts.length === 0 && needsAccount(consent.scopes)) {
      // The grant would give access to nothing, so the next request of the client would come here again.
      return showChoices(parts, visit, request, new Refused(400, NO_ACCOUNT), consent);
    }
    if (consent.accountIds.length > ACCOUNTS_PER_GRANT_MAX) {
      const text = `Choose at most ${ACCOUNTS_PER_GRANT_MAX} accounts.`;
      return showChoices(parts, visit, request, new Refused(400, text), consent);
    }
    const { clientId, person } = request;
    const invitationIds = await invitationsOf(parts, request, consent);
    try {
      const given = { clientId, ...consent, invitationIds };
      await parts.actors.call(grantList, person.userId, "consent", given);
    } catch (error) {
      if (!(error instanceof ActorError && error.code === "limit_reached")) throw error;
      const text = `You have allowed ${CLIENTS_PER_USER_MAX} clients, which is the limit. Revoke one under Authorized clients, and decide again.`;
      return showChoices(parts, visit, request, new Refused(409, text), consent);
    }
    await finish(parts, visit, request, { consent: {} });
  };
}

/**
 * Reads the request on which the person decides. If there is no such request, it shows a page that says so and
 * resolves to undefined.
 */
async function readRequest(
  parts: PageParts,
  visit: Visit,
  uid: string,
): Promise<ConsentRequest | undefined> {
  const waiting = await parts.interactions.find(visit, uid);
  const clientId = waiting?.params.client_id ?? "";
  const client = waiting && (await findClient(parts.actors, clientId));
  const { signedIn: person } = visit;
  if (waiting && client && person) return { uid, waiting, clientId, client, person };
  parts.showOver(visit);
  return undefined;
}

async function mayUse(parts: PageParts, { client, person }: ConsentRequest): Promise<boolean> {
  if (client.visibility === "public") return true;
  return (await findMember(parts.actors, client.accountId, person.userId)) !== undefined;
}

/**
 * Resolves to the invitations that the consent names: those of the chosen accounts, and for a private client also that of
 * the client's account. Without its membership there, the person may not use the client.
 */
async function invitationsOf(
  parts: PageParts,
  { client, person }: ConsentRequest,
  { invitationIds = [] }: Consent,
): Promise<string[]> {
  if (client.visibility === "public") return invitationIds;
  const member = await findMember(parts.actors, client.accountId, person.userId);
  return [...new Set([...invitationIds, ...(member?.invitationId ? [member.invitationId] : [])])];
}

function readChoices(
  parts: PageParts,
  { client, person, waiting }: ConsentRequest,
): Promise<Choices> {
  const { scope } = waiting.params;
  return choicesOf(parts.actors, person, { client, scope });
}

function deny(
  parts: PageParts,
  visit: Visit,
  asked: ConsentRequest,
  error_description: string,
): Promise<void> {
  return finish(parts, visit, asked, { error: "access_denied", error_description });
}

async function finish(
  parts: PageParts,
  visit: Visit,
  { uid, waiting }: ConsentRequest,
  result: Record<string, unknown>,
) {
  visit.leadTo(await parts.interactions.finish(visit, uid, { waiting, result }));
}

async function showPrivateClient(
  parts: PageParts,
  visit: Visit,
  asked: ConsentRequest,
): Promise<void> {
  const { client, person } = asked;
  visit.show(403, {
    title: "Private client",
    leadsOut: true,
    body: html`<h1>${client.clientName} is private</h1>
<p>Only members of the account that owns it can authorize it, and you, ${person.email}, are not one of them.
Ask an administrator of that account to invite you, or sign in as somebody else.</p>
${await denialForm(parts, visit, asked)}`,
  });
}

/** Shows that the person cannot give what the client requires, because it is in an account. */
async function showNoAccount(
  parts: PageParts,
  visit: Visit,
  asked: ConsentRequest,
  { required }: Choices,
): Promise<void> {
  const { client, person } = asked;
  visit.show(403, {
    title: "No account",
    leadsOut: true,
    body: html`<h1>You belong to no account</h1>
<p>${client.clientName} asks for access to an account, and you, ${person.email}, are a member of none.
Ask an administrator of an account to invite you, or sign in as somebody else.</p>
${requiredList(required)}
${await denialForm(parts, visit, asked)}`,
  });
}

async function denialForm(parts: PageParts, visit: Visit, asked: ConsentRequest): Promise<Html> {
  const { client, uid } = asked;
  return html`<form method="post" action="${parts.link("/oauth2/consent")}">
${await visit.markField(purposeOf(asked))}
<input type="hidden" name="interaction" value="${uid}">
<div class="buttons"><button name="decision" value="deny">Back to ${client.clientName}</button></div>
</form>`;
}

/** Shows the consent page again with the choices that the person just submitted. */
async function showChoices(
  parts: PageParts,
  visit: Visit,
  asked: ConsentRequest,
  refused?: Refused,
  chosen?: Consent,
): Promise<void> {
  const { client, clientId, person, uid } = asked;
  const { actors, link } = parts;
  const choices = await readChoices(parts, asked);
  if (choices.accounts.length === 0 && needsAccount(choices.required)) {
    return showNoAccount(parts, visit, asked, choices);
  }
  const { consent } = await actors.call(grantList, person.userId, "getConsent", { clientId });
  const ticked = chosen
    ? new Set(chosen.accountIds)
    : defaultAccounts(choices.accounts, client, consent);
  const owner =
    client.visibility === "private"
      ? (await actors.call(account, client.accountId, "get", {})).name
      : undefined;
  const logo = await logoPath(actors, clientId, client);
  visit.show(refused?.status ?? 200, {
    title: `Authorize ${client.clientName}`,
    leadsOut: true,
    hasImages: logo !== undefined,
    body: html`${clientHeading(client, { owner, logo: logo && link(logo) })}
<p>It asks for access as <strong>${person.email}</strong>.</p>
${refusalNote(refused)}
<form method="post" action="${link("/oauth2/consent")}">
${await visit.markField(purposeOf(asked))}
<input type="hidden" name="interaction" value="${uid}">
<input type="hidden" name="shown" value="${shownScopes(choices)}">
${accountsField(choices.accounts, ticked)}
${requiredList(choices.required)}
${optionalField(choices.optional, chosen ?? consent)}
<div class="buttons">
<button name="decision" value="allow">Allow</button>
<button name="decision" value="deny" class="second">Deny</button>
</div>
</form>
<p class="quiet">You can take this back at any time, under Authorized clients.</p>`,
  });
}

/** Returns a requested scope for which the client is no longer registered. */
function goneScope({ client, waiting }: ConsentRequest): Scope | undefined {
  const held = scopesOf(client);
  return knownScopes(waiting.params.scope).find((id) => !held.has(id));
}

const NO_ACCOUNT =
  "You belong to no account, so you cannot allow access to one. Untick what you cannot allow.";

const needsAccount = (scopes: readonly Scope[]) => scopes.some((id) => !isIdentityScope(id));

const purposeOf = ({ uid }: ConsentRequest) => `consent ${uid}`;

/**
 * Returns the scopes as the page shows them. The form sends this text back: if the client changed while the page was
 * open, an optional scope that the person unticked may be required now, and must not count as allowed.
 */
const shownScopes = ({ required, optional }: Choices) =>
  `${required.join(" ")} | ${optional.join(" ")}`;

function consentOf(visit: Visit, { required, optional, accounts }: Choices): Consent {
  const ticked = new Set(visit.texts("scope"));
  const chosen = new Set(visit.texts("account"));
  const allowed = accounts.filter(
    ({ accountId, reason }) => reason === undefined && chosen.has(accountId),
  );
  return {
    scopes: [...required, ...optional.filter((id) => ticked.has(id))],
    rejectedScopes: optional.filter((id) => !ticked.has(id)),
    accountIds: allowed.map(({ accountId }) => accountId),
    invitationIds: allowed.flatMap(({ invitationId }) => invitationId ?? []),
  };
}

/**
 * Returns the accounts to preselect: those for which the last consent still counts and that can be chosen. If there are
 * none, returns one account: the client's owner if it can be chosen, otherwise the first that can.
 */
function defaultAccounts(
  accounts: readonly AccountChoice[],
  client: LiveClient,
  consent: Consent | null,
): Set<string> {
  const able = accounts.filter(({ reason }) => reason === undefined);
  const before = able.filter(
    (choice) => consent?.accountIds.includes(choice.accountId) && coversMembership(consent, choice),
  );
  const own = able.find(({ accountId }) => accountId === client.accountId) ?? able[0];
  const ticked = before.length > 0 ? before : own ? [own] : [];
  return new Set(ticked.map(({ accountId }) => accountId));
}

function accountsField(accounts: readonly AccountChoice[], ticked: Set<string>): Html {
  if (accounts.length === 0) return html``;
  return html`<fieldset aria-describedby="accounts-hint">
<legend>In which accounts</legend>
${accounts.map((choice) => accountItem(choice, ticked))}
<p class="quiet" id="accounts-hint">These are the accounts you are a member of. If one is missing, an administrator of it can invite you.</p>
</fieldset>`;
}

function accountItem({ accountId, name, roles, reason }: AccountChoice, ticked: Set<string>): Html {
  const id = `account-${accountId}`;
  const state = reason === undefined ? ticked.has(accountId) && html` checked` : html` disabled`;
  return html`<div class="item${reason !== undefined && " off"}">
<input type="checkbox" id="${id}" name="account" value="${accountId}" aria-describedby="${id}-hint"${state}>
<span class="what"><label class="name" for="${id}">${name}</label>
<span class="quiet" id="${id}-hint">${reason ?? roles.join(", ")}</span></span>
</div>`;
}

function requiredList(scopes: readonly Scope[]): Html {
  if (scopes.length === 0) return html``;
  return html`<h2>It will be able to</h2>
<ul class="plain">
${scopes.map(
  (id) => html`<li><div class="item"><span class="mark" aria-hidden="true">✓</span>
<span class="what"><span class="name">${SCOPES[id].name}</span>
<span class="quiet">${SCOPES[id].description}</span></span></div></li>`,
)}
</ul>`;
}

function optionalField(scopes: readonly Scope[], consent: Consent | null): Html {
  if (scopes.length === 0) return html``;
  const declined = new Set(consent?.rejectedScopes);
  return html`<fieldset>
<legend>If you like, also</legend>
${scopes.map(
  (id) => html`<div class="item">
<input type="checkbox" id="scope-${id}" name="scope" value="${id}" aria-describedby="scope-${id}-hint"${
    !declined.has(id) && html` checked`
  }>
<span class="what"><label class="name" for="scope-${id}">${SCOPES[id].name}</label>
<span class="quiet" id="scope-${id}-hint">${SCOPES[id].description}</span></span>
</div>`,
)}
</fieldset>`;
}
