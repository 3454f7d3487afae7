/** Pages on which a signed-in person manages authorized clients and the password. */

import { PASSWORD_CHARS_MIN } from "../../../schemas/account/limits.ts";
import { session } from "../../../schemas/account/session.ts";
import type { AllowedClient } from "../../../schemas/oauth/grant-list.ts";
import { grantList, ListCursor } from "../../../schemas/oauth/grant-list.ts";
import { oauthGrant } from "../../../schemas/oauth/oauth-grant.ts";
import { SCOPES } from "../../../schemas/oauth/scopes.ts";
import { Id } from "../../../schemas/values.ts";
import { callAndNotify } from "../../http/call-and-notify.ts";
import { callFew } from "../../http/call-few.ts";
import { field, refusalNote } from "../../pages/forms.ts";
import { type Html, html } from "../../pages/html.ts";
import { Refused, staleForm } from "../../pages/refused.ts";
import type { SignedIn } from "../find-session.ts";
import type { FormPage } from "./form-page.ts";
import { administeredAccounts } from "./own-accounts.ts";
import type { PageParts } from "./page-parts.ts";
import { PROFILE_PATHS, profileNav } from "./profile-nav.ts";
import { changePassword } from "./sign-in.ts";
import type { Visit } from "./visit.ts";

const { clients: CLIENTS, password: PASSWORD } = PROFILE_PATHS;

/** `name` is undefined if the client was deleted. */
type ListedClient = AllowedClient & { name: string | undefined };

/** The pages on which a signed-in person manages authorized clients and the password. */
export function profilePages(parts: PageParts): FormPage[] {
  return [
    { path: "/profile", get: async (visit) => visit.leadTo(parts.link(CLIENTS)) },
    { path: CLIENTS, get: showClients(parts) },
    { path: `${CLIENTS}/revoke`, post: revokeClient(parts) },
    { path: PASSWORD, get: showPassword(parts), post: changeOwnPassword(parts) },
  ];
}

function showClients(parts: PageParts) {
  return async (visit: Visit): Promise<void> => {
    const person = requirePerson(parts, visit);
    if (person) await showClientList(parts, visit, person);
  };
}

function revokeClient(parts: PageParts) {
  return async (visit: Visit): Promise<void> => {
    const person = requirePerson(parts, visit);
    if (!person) return;
    if (!(await visit.isOurForm("revoke")))
      return showClientList(parts, visit, person, staleForm());
    const { actors, link } = parts;
    const clientId = Id.safeParse(visit.text("client"));
    if (clientId.success) {
      const revocation = { clientId: clientId.data };
      const { grantIds } = await actors.call(grantList, person.userId, "revokeClient", revocation);
      // The person's grant list also sends messages that revoke these grants, but they arrive later. These calls
      // revoke the grants before the page confirms it.
      await callFew(grantIds, (id) => callAndNotify(actors, oauthGrant, id, "revoke", {}));
    }
    visit.leadTo(link(`${CLIENTS}?revoked=1`));
  };
}

function showPassword(parts: PageParts) {
  return async (visit: Visit): Promise<void> => {
    const person = requirePerson(parts, visit);
    if (person) await showPasswordForm(parts, visit, person);
  };
}

function changeOwnPassword(parts: PageParts) {
  return async (visit: Visit): Promise<void> => {
    const person = requirePerson(parts, visit);
    if (!person) return;
    const { actors, link } = parts;
    try {
      if (!(await visit.isOurForm("password"))) throw staleForm();
      const { address } = visit;
      const change = { current: visit.text("current"), password: visit.text("password"), address };
      const changed = await changePassword(actors, person, change);
      // The user's actor also sends messages that end the other sessions, but they arrive later. These calls end the
      // sessions before the page confirms it.
      await callFew(changed.ended, (id) => actors.call(session, id, "end", {}));
      // The browser gets a new session too. So a person who stole its old session cookie is signed out.
      await visit.signIn(changed.person);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      visit.noteRefusal(error);
      return showPasswordForm(parts, visit, person, error);
    }
    visit.leadTo(link(`${PASSWORD}?changed=1`));
  };
}

function requirePerson(parts: PageParts, visit: Visit): SignedIn | undefined {
  if (!visit.signedIn) visit.leadTo(parts.link("/login"));
  return visit.signedIn;
}

async function navOf(
  parts: PageParts,
  visit: Visit,
  person: SignedIn,
  here: string,
): Promise<Html> {
  const { actors, link } = parts;
  const isAdministrator = (await administeredAccounts(actors, person)).length > 0;
  return profileNav(visit, { link, here, isAdministrator });
}

async function showClientList(
  parts: PageParts,
  visit: Visit,
  person: SignedIn,
  refused?: Refused,
): Promise<void> {
  const { actors } = parts;
  const after = ListCursor.safeParse(visit.query("after"));
  const page = after.success ? { cursor: after.data } : {};
  const { clients, cursor } = await actors.call(grantList, person.userId, "list", page);
  const named = await Promise.all(
    clients.map(async (client) => ({
      ...client,
      name: await parts.clientNameOf(client.clientId),
    })),
  );
  const mark = await visit.markField("revoke");
  const revoked = visit.query("revoked") !== "";
  visit.show(refused?.status ?? 200, {
    title: "Authorized clients",
    nav: await navOf(parts, visit, person, CLIENTS),
    body: html`<h1>Authorized clients</h1>
${refusalNote(refused)}
${revoked && !refused && html`<p class="note good" role="status">Revoked. Its tokens no longer work.</p>`}
${named.length === 0 && !after.success && html`<p>No client may do anything in your name, ${person.email}.</p>`}
${named.map((client) => clientItem(parts, client, mark))}
${cursor !== undefined && html`<p><a href="${parts.link(`${CLIENTS}?after=${cursor}`)}">Clients you allowed before these</a></p>`}`,
  });
}

function clientItem(parts: PageParts, client: ListedClient, mark: Html): Html {
  const { clientId, name, scopes, accountIds } = client;
  const date = new Date(client.consentedAt).toISOString().slice(0, 10);
  const names = scopes.map((id) => SCOPES[id].name).join(", ");
  return html`<article class="granted" aria-labelledby="client-${clientId}">
<h2 id="client-${clientId}">${name ?? "A client that was deleted"}</h2>
<p>${names || "Nothing"}</p>
<p class="quiet">Allowed on <time datetime="${date}">${date}</time> for ${accountIds.length} ${
    accountIds.length === 1 ? "account" : "accounts"
  }; ${openGrants(client)}.</p>
<form method="post" action="${parts.link(`${CLIENTS}/revoke`)}">
${mark}
<input type="hidden" name="client" value="${clientId}">
<button class="bad" aria-describedby="client-${clientId}">Revoke</button>
</form>
</article>`;
}

async function showPasswordForm(
  parts: PageParts,
  visit: Visit,
  person: SignedIn,
  refused?: Refused,
): Promise<void> {
  const changed = visit.query("changed") !== "" && !refused;
  visit.show(refused?.status ?? 200, {
    title: "Password",
    nav: await navOf(parts, visit, person, PASSWORD),
    body: html`<h1>Change password</h1>
${refusalNote(refused)}
${changed && html`<p class="note good" role="status">Your password is changed, and your other sessions have ended.</p>`}
<form method="post" action="${parts.link(PASSWORD)}">
${await visit.markField("password")}
<input type="hidden" name="username" autocomplete="username" value="${person.email}">
${field({ name: "current", label: "Current password", type: "password", autocomplete: "current-password", refused })}
${field({
  name: "password",
  label: "New password",
  type: "password",
  autocomplete: "new-password",
  hint: `At least ${PASSWORD_CHARS_MIN} characters`,
  refused,
})}
<button class="wide">Change password</button>
</form>
<p class="quiet">Everywhere else you are signed in, you will have to sign in again.</p>`,
  });
}

function openGrants({ name, grantIds }: ListedClient): string {
  if (name === undefined) return "its grants ended with it";
  return grantIds.length === 1 ? "1 grant is open" : `${grantIds.length} grants are open`;
}
