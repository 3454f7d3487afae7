/** Pages for who is signed in: which clients they allowed what, and their password. */
import type { AllowedClient } from "../../schemas/grant-list.ts";
import { grantList } from "../../schemas/grant-list.ts";
import { oauthGrant } from "../../schemas/oauth-grant.ts";
import { PASSWORD_CHARS_MIN } from "../../schemas/oauth-server-limits.ts";
import { SCOPES } from "../../schemas/scopes.ts";
import { session } from "../../schemas/session.ts";
import { Id } from "../../schemas/values.ts";
import { findClient } from "../oauth/live-client.ts";
import { field, refusalNote } from "./forms.ts";
import { type Html, html } from "./html.ts";
import type { PageParts } from "./page-parts.ts";
import { changePassword, Refused } from "./sign-in.ts";
import type { SignedIn, Visit } from "./visit.ts";

const CLIENTS = "/profile/clients";
const PASSWORD = "/profile/password";

export class ProfilePages {
  readonly #parts: PageParts;

  constructor(parts: PageParts) {
    this.#parts = parts;
  }

  async showClients(visit: Visit): Promise<void> {
    const person = this.#personOf(visit);
    if (person) await this.#clients(visit, person);
  }

  async revokeClient(visit: Visit): Promise<void> {
    const person = this.#personOf(visit);
    if (!person) return;
    if (!(await visit.isOurForm("revoke"))) return this.#clients(visit, person, stale());
    const { actors, link } = this.#parts;
    const clientId = Id.safeParse(visit.text("client"));
    if (clientId.success) {
      const asked = { clientId: clientId.data };
      const { grantIds } = await actors.call(grantList, person.userId, "revokeClient", asked);
      // By mail they end too; asked here, they have ended before the page says so.
      await Promise.all(grantIds.map((id) => actors.call(oauthGrant, id, "revoke", {})));
    }
    visit.leadTo(link(`${CLIENTS}?revoked=1`));
  }

  async showPassword(visit: Visit): Promise<void> {
    if (this.#personOf(visit)) await this.#password(visit, {});
  }

  async changePassword(visit: Visit): Promise<void> {
    const person = this.#personOf(visit);
    if (!person) return;
    const { actors, link } = this.#parts;
    try {
      if (!(await visit.isOurForm("password"))) throw stale();
      const change = { current: visit.text("current"), password: visit.text("password") };
      const ended = await changePassword(actors, person, change);
      // As above.
      await Promise.all(ended.map((id) => actors.call(session, id, "end", {})));
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      return this.#password(visit, { refused: error });
    }
    visit.leadTo(link(`${PASSWORD}?changed=1`));
  }

  #personOf(visit: Visit): SignedIn | undefined {
    if (!visit.signedIn) visit.leadTo(this.#parts.link("/login"));
    return visit.signedIn;
  }

  async #nav(visit: Visit, here: string): Promise<Html> {
    const { link } = this.#parts;
    const entries = [
      [CLIENTS, "Authorized clients"],
      [PASSWORD, "Password"],
    ] as const;
    return html`<nav aria-label="Profile">
${entries.map(
  ([path, name]) =>
    html`<a href="${link(path)}"${path === here && html` aria-current="page"`}>${name}</a>\n`,
)}
<form method="post" action="${link("/signout")}">${await visit.markField("signout")}<button class="plain">Sign out</button></form>
</nav>`;
  }

  async #clients(visit: Visit, person: SignedIn, refused?: Refused): Promise<void> {
    const { actors } = this.#parts;
    const { clients } = await actors.call(grantList, person.userId, "list", {});
    const named = await Promise.all(
      clients.map(async (client) => ({
        ...client,
        name: (await findClient(actors, client.clientId))?.clientName,
      })),
    );
    const mark = await visit.markField("revoke");
    const revoked = visit.query("revoked") !== "";
    visit.show(refused?.status ?? 200, {
      title: "Authorized clients",
      nav: await this.#nav(visit, CLIENTS),
      body: html`<h1>Authorized clients</h1>
${refusalNote(refused)}
${revoked && !refused && html`<p class="note good" role="status">Revoked. Its tokens open nothing any more.</p>`}
${named.length === 0 && html`<p>No client may do anything in your name, ${person.email}.</p>`}
${named.map((client) => this.#client(client, mark))}`,
    });
  }

  #client(client: AllowedClient & { name: string | undefined }, mark: Html): Html {
    const { clientId, name = "A client that was deleted", scopes, accountIds, grantIds } = client;
    const date = new Date(client.consentedAt).toISOString().slice(0, 10);
    const names = scopes.map((id) => SCOPES[id].name).join(", ");
    const open = grantIds.length === 1 ? "1 grant is open" : `${grantIds.length} grants are open`;
    return html`<section class="granted" aria-labelledby="client-${clientId}">
<h2 id="client-${clientId}">${name}</h2>
<p>${names || "Nothing"}</p>
<p class="quiet">Allowed on <time datetime="${date}">${date}</time> for ${accountIds.length} ${
      accountIds.length === 1 ? "account" : "accounts"
    }; ${open}.</p>
<form method="post" action="${this.#parts.link(`${CLIENTS}/revoke`)}">
${mark}
<input type="hidden" name="client" value="${clientId}">
<button class="bad" aria-describedby="client-${clientId}">Revoke</button>
</form>
</section>`;
  }

  async #password(visit: Visit, { refused }: { refused?: Refused }): Promise<void> {
    const changed = visit.query("changed") !== "" && !refused;
    visit.show(refused?.status ?? 200, {
      title: "Password",
      nav: await this.#nav(visit, PASSWORD),
      body: html`<h1>Change password</h1>
${refusalNote(refused)}
${changed && html`<p class="note good" role="status">Your password is changed, and your other sessions have ended.</p>`}
<form method="post" action="${this.#parts.link(PASSWORD)}">
${await visit.markField("password")}
<input type="hidden" name="username" autocomplete="username" value="${visit.signedIn?.email}">
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
}

const stale = () => new Refused(403, "This page was open for too long. Try once more.");
