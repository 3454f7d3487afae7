/** Pages on which administrators say who is a member of their account: invited, listed, given roles, removed. */
import { account, type Invitation, type Member } from "../../../schemas/account/account.ts";
import {
  HIGHEST_ROLE,
  permissionsOf,
  ROLES,
  type Role,
  Role as RoleName,
} from "../../../schemas/account/permissions.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { Email, Id } from "../../../schemas/values.ts";
import { callTold } from "../../http/call-told.ts";
import { field, refusalNote } from "../../pages/forms.ts";
import { type Html, html } from "../../pages/html.ts";
import { Refused, staleForm } from "../../pages/refused.ts";
import { newInvitation } from "../invitation-text.ts";
import { administeredAccounts, type OwnAccount } from "./own-accounts.ts";
import type { PageParts } from "./page-parts.ts";
import { PROFILE_PATHS, profileNav } from "./profile-nav.ts";
import { rolesField, rolesText } from "./roles-field.ts";
import type { SignedIn, Visit } from "./visit.ts";

const MEMBERS = PROFILE_PATHS.members;

/** Somebody who administers an account, and the account. */
interface Administering {
  person: SignedIn;
  own: OwnAccount;
  others: readonly OwnAccount[];
}

/** A member, or one who is invited. */
interface Entry {
  id: string;
  email: string;
  roles: readonly Role[];
  expiresAt?: number;
}

/** What the form for an invitation says again, once it was refused. */
interface InvitationForm {
  email: string;
  roles: readonly Role[];
  refused?: Refused;
}

const EMPTY: InvitationForm = { email: "", roles: ["Member"] };

export class MembersPage {
  readonly #parts: PageParts;

  constructor(parts: PageParts) {
    this.#parts = parts;
  }

  async show(visit: Visit): Promise<void> {
    const asking = await this.#administering(visit, visit.query("account"));
    if (asking) await this.#list(visit, asking, EMPTY);
  }

  /** The invitation is shown on this answer and nowhere else: an address would be kept in the browser's history. */
  async invite(visit: Visit): Promise<void> {
    const asking = await this.#administering(visit, visit.text("account"));
    if (!asking) return;
    const { own } = asking;
    const form = { email: visit.text("email").trim(), roles: rolesOf(visit) };
    try {
      if (!(await visit.isOurForm(purposeOf(own)))) throw staleForm();
      const email = Email.safeParse(form.email);
      if (!email.success) throw new Refused(400, "Enter an e-mail address.", { field: "email" });
      checkRoles(form.roles);
      const { text, id, secretHash } = newInvitation(own.accountId);
      const by = changerOf(asking);
      const asked = { id, secretHash, email: email.data, roles: form.roles, by };
      const invitation = await this.#change(() =>
        this.#parts.actors.call(account, own.accountId, "invite", asked),
      );
      await this.#invited(visit, asking, { invitation, text });
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      await this.#list(visit, asking, { ...form, refused: error });
    }
  }

  async showMember(visit: Visit): Promise<void> {
    const asking = await this.#administering(visit, visit.query("account"));
    if (!asking) return;
    const entry = await this.#find(asking.own, visit.query("member"));
    if (!entry) return this.#leadToList(visit, asking.own, "gone");
    await this.#member(visit, asking, entry);
  }

  async changeMember(visit: Visit): Promise<void> {
    const asking = await this.#administering(visit, visit.text("account"));
    if (!asking) return;
    const { own } = asking;
    const entry = await this.#find(own, visit.text("member"));
    if (!entry) return this.#leadToList(visit, own, "gone");
    const isRemoval = visit.text("change") === "remove";
    const roles = rolesOf(visit);
    try {
      if (!(await visit.isOurForm(purposeOf(own)))) throw staleForm();
      if (!isRemoval) checkRoles(roles);
      const { actors } = this.#parts;
      const { accountId } = own;
      const asked = { id: entry.id, by: changerOf(asking) };
      await this.#change(() =>
        isRemoval
          ? callTold(actors, account, accountId, "removeMember", asked)
          : callTold(actors, account, accountId, "setRoles", { ...asked, roles }),
      );
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      return this.#member(visit, asking, isRemoval ? entry : { ...entry, roles }, error);
    }
    this.#leadToList(visit, own, isRemoval ? "removed" : "changed");
  }

  /** Undefined when they are not signed in, or administer no such account: the person has been told. */
  async #administering(visit: Visit, accountId: string): Promise<Administering | undefined> {
    const { signedIn: person } = visit;
    const { actors, link } = this.#parts;
    if (!person) {
      visit.leadTo(link("/login"));
      return undefined;
    }
    const all = await administeredAccounts(actors, person);
    const own = accountId === "" ? all[0] : all.find((one) => one.accountId === accountId);
    if (own) return { person, own, others: all.filter((one) => one !== own) };
    visit.show(403, {
      title: "Members",
      nav: await this.#nav(visit, all.length > 0),
      body: html`<h1>For administrators</h1>
<p>Only a Super Administrator or an Administrator of an account sees its members here, and says who they are.</p>`,
    });
    return undefined;
  }

  #nav(visit: Visit, isAdministrator: boolean): Promise<Html> {
    return profileNav(visit, { link: this.#parts.link, here: MEMBERS, isAdministrator });
  }

  async #entries({ accountId }: OwnAccount): Promise<{ members: Entry[]; invited: Entry[] }> {
    const listed = await this.#parts.actors.call(account, accountId, "listMembers", {});
    return { members: listed.members.map(entryOf), invited: [...listed.invitations] };
  }

  async #find(own: OwnAccount, id: string): Promise<Entry | undefined> {
    if (!Id.safeParse(id).success) return undefined;
    const { members, invited } = await this.#entries(own);
    return [...members, ...invited].find((entry) => entry.id === id);
  }

  #leadToList(visit: Visit, { accountId }: OwnAccount, done: keyof typeof DONE): void {
    visit.leadTo(
      this.#parts.link(`${MEMBERS}?${new URLSearchParams({ account: accountId, done })}`),
    );
  }

  /** Refusals of the account, as a person reads them. */
  async #change<T>(change: () => Promise<T>): Promise<T> {
    try {
      return await change();
    } catch (error) {
      if (!(error instanceof ActorError)) throw error;
      const text = REFUSALS[error.code];
      throw text === undefined ? error : new Refused(text.status, text.of(error.message));
    }
  }

  async #list(visit: Visit, asking: Administering, form: InvitationForm): Promise<void> {
    const { own, others } = asking;
    const { members, invited } = await this.#entries(own);
    const done = form.refused ? undefined : DONE[visit.query("done") as keyof typeof DONE];
    visit.show(form.refused?.status ?? 200, {
      title: "Members",
      nav: await this.#nav(visit, true),
      body: html`<h1>Members of ${own.name}</h1>
${form.refused && refusalNote(form.refused)}
${done !== undefined && html`<p class="note good" role="status">${done}</p>`}
${others.length > 0 && this.#otherAccounts(others)}
<ul class="plain rows">
${members.map((entry) => this.#row(asking, entry))}
</ul>
${
  invited.length > 0 &&
  html`<h2>Invited</h2>
<ul class="plain rows">
${invited.map((entry) => this.#row(asking, entry))}
</ul>`
}
<h2>Invite somebody</h2>
<form method="post" action="${this.#parts.link(`${MEMBERS}/invite`)}">
${await this.#hidden(visit, own)}
${field({ name: "email", label: "Email", type: "email", autocomplete: "off", value: form.email, refused: form.refused })}
${rolesField(form.roles, own.roles)}
<div class="buttons"><button>Invite</button></div>
</form>`,
    });
  }

  #otherAccounts(others: readonly OwnAccount[]): Html {
    const link = ({ accountId, name }: OwnAccount) =>
      html`<a href="${this.#parts.link(`${MEMBERS}?account=${accountId}`)}">${name}</a> `;
    return html`<p class="links quiet">You also administer ${others.map(link)}</p>`;
  }

  #row({ own, person }: Administering, { id, email, roles, expiresAt }: Entry): Html {
    const query = new URLSearchParams({ account: own.accountId, member: id });
    const canChange = !roles.includes(HIGHEST_ROLE) || own.roles.includes(HIGHEST_ROLE);
    const name = canChange
      ? html`<a href="${this.#parts.link(`${MEMBERS}/change?${query}`)}">${email}</a>`
      : html`${email}`;
    return html`<li><span class="name">${name}${id === person.userId && html` (you)`}</span>
<span class="quiet">${rolesText(roles)}${expiresAt !== undefined && html`; until ${dateOf(expiresAt)}`}</span></li>
`;
  }

  async #member(
    visit: Visit,
    { own, person }: Administering,
    { id, email, roles, expiresAt }: Entry,
    refused?: Refused,
  ): Promise<void> {
    const { link } = this.#parts;
    const isInvited = expiresAt !== undefined;
    const action = link(`${MEMBERS}/change`);
    const hidden = html`${await this.#hidden(visit, own)}
<input type="hidden" name="member" value="${id}">`;
    const [who, whom] = id === person.userId ? ["You", "you"] : ["They", "them"];
    visit.show(refused?.status ?? 200, {
      title: email,
      nav: await this.#nav(visit, true),
      body: html`<h1>${email}</h1>
<p>${isInvited ? html`Invited to ${own.name}, until ${dateOf(expiresAt)}.` : html`A member of ${own.name}.`}</p>
${refusalNote(refused)}
<form method="post" action="${action}">
${hidden}
${rolesField(roles, own.roles)}
<div class="buttons">
<button name="change" value="roles">Save roles</button>
<a class="button" href="${link(`${MEMBERS}?account=${own.accountId}`)}">Back</a>
</div>
</form>
<h2>${isInvited ? "Take the invitation back" : "Remove from the account"}</h2>
<p class="quiet" id="removal">${
        isInvited
          ? "Its link opens nothing from then on."
          : `${who} can do nothing in it from then on, and neither can the clients that act for ${whom}.`
      }</p>
<form method="post" action="${action}">
${hidden}
<button class="bad" name="change" value="remove" aria-describedby="removal">${isInvited ? "Take back" : "Remove"}</button>
</form>`,
    });
  }

  async #invited(
    visit: Visit,
    { own }: Administering,
    { invitation, text }: { invitation: Invitation; text: string },
  ): Promise<void> {
    const { link, publicUrl } = this.#parts;
    const { email, expiresAt, roles } = invitation;
    visit.show(200, {
      title: "Invited",
      nav: await this.#nav(visit, true),
      body: html`<h1>Invited</h1>
<p><strong>${email}</strong> can join ${own.name} as ${rolesText(roles)} until ${dateOf(expiresAt)}, by this address. Send it to
them: no mail is sent from here, and it is shown this once.</p>
<p class="copy"><code>${publicUrl}/signup?invitation=${text}</code></p>
<p><a href="${link(`${MEMBERS}?account=${own.accountId}`)}">Back to the members</a></p>`,
    });
  }

  async #hidden(visit: Visit, own: OwnAccount): Promise<Html> {
    return html`${await visit.markField(purposeOf(own))}
<input type="hidden" name="account" value="${own.accountId}">`;
  }
}

const DONE = {
  changed: "Saved.",
  removed: "Removed.",
  gone: "They are not here any more: somebody else removed them, or the invitation was used or is over.",
} as const;

/** What an account refuses; anything else is a fault. */
const REFUSALS: Partial<
  Record<ActorError["code"], { status: number; of: (message: string) => string }>
> = {
  conflict: { status: 409, of: reasonOf },
  forbidden: { status: 403, of: reasonOf },
  limit_reached: { status: 409, of: reasonOf },
  not_found: { status: 409, of: () => DONE.gone },
};

/** Of "Cannot do this: what is so" the second half, as a sentence. */
function reasonOf(message: string): string {
  const reason = message.slice(message.indexOf(": ") + 2);
  return `${reason.charAt(0).toUpperCase()}${reason.slice(1)}.`;
}

const purposeOf = ({ accountId }: OwnAccount) => `members ${accountId}`;

/** As on the REST API: no more than they may do themselves. */
const changerOf = ({ person, own }: Administering) => ({
  userId: person.userId,
  permissions: permissionsOf(own.roles),
});

const entryOf = ({ userId, email, roles }: Member): Entry => ({ id: userId, email, roles });

const rolesOf = (visit: Visit): Role[] =>
  RoleName.options.filter((role) => visit.texts("role").includes(role));

function checkRoles(roles: readonly Role[]): void {
  if (roles.length > 0) return;
  throw new Refused(400, `Choose at least one role, ${Object.keys(ROLES).at(-1)} for one.`);
}

const dateOf = (at: number) => {
  const date = new Date(at).toISOString().slice(0, 10);
  return html`<time datetime="${date}">${date}</time>`;
};
