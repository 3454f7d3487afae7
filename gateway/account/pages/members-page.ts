/** Pages on which administrators invite, list, change and remove members of their account. */
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
import { callAndNotify } from "../../http/call-and-notify.ts";
import { field, refusalNote } from "../../pages/forms.ts";
import { type Html, html } from "../../pages/html.ts";
import { Refused, staleForm } from "../../pages/refused.ts";
import type { SignedIn } from "../find-session.ts";
import { newInvitation } from "../invitation-text.ts";
import type { FormPage } from "./form-page.ts";
import { administeredAccounts, type OwnAccount } from "./own-accounts.ts";
import type { PageParts } from "./page-parts.ts";
import { PROFILE_PATHS, profileNav } from "./profile-nav.ts";
import { rolesField, rolesText } from "./roles-field.ts";
import type { Visit } from "./visit.ts";

const MEMBERS = PROFILE_PATHS.members;

/** An administrator, and the account that the page shows. */
interface Administering {
  person: SignedIn;
  own: OwnAccount;
  others: readonly OwnAccount[];
}

/** A member or an invited person. */
interface Entry {
  id: string;
  email: string;
  roles: readonly Role[];
  expiresAt?: number;
}

/** The values of an invitation form, shown again after a refusal. */
interface InvitationForm {
  email: string;
  roles: readonly Role[];
  refused?: Refused;
}

const EMPTY: InvitationForm = { email: "", roles: ["Member"] };

/** The pages on which an administrator manages the members of an account. */
export function membersPages(parts: PageParts): FormPage[] {
  return [
    { path: MEMBERS, get: showMembers(parts) },
    { path: `${MEMBERS}/invite`, post: invite(parts) },
    { path: `${MEMBERS}/change`, get: showMember(parts), post: changeMember(parts) },
  ];
}

function showMembers(parts: PageParts) {
  return async (visit: Visit): Promise<void> => {
    const administering = await requireAdministrator(parts, visit, visit.query("account"));
    if (administering) await showList(parts, visit, administering, EMPTY);
  };
}

/**
 * Creates an invitation and shows its link in this answer only. If the answer redirected to an address with the link,
 * the link would stay in the browser's history.
 */
function invite(parts: PageParts) {
  return async (visit: Visit): Promise<void> => {
    const administering = await requireAdministrator(parts, visit, visit.text("account"));
    if (!administering) return;
    const { own } = administering;
    const form = { email: visit.text("email").trim(), roles: rolesOf(visit) };
    try {
      if (!(await visit.isOurForm(purposeOf(own)))) throw staleForm();
      const email = Email.safeParse(form.email);
      if (!email.success) throw new Refused(400, "Enter an e-mail address.", { field: "email" });
      checkRoles(form.roles);
      const { text, id, secretHash } = newInvitation(own.accountId);
      const by = changerOf(administering);
      const input = { id, secretHash, email: email.data, roles: form.roles, by };
      const invitation = await orRefused(() =>
        parts.actors.call(account, own.accountId, "invite", input),
      );
      await showInvitation(parts, visit, administering, { invitation, text });
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      await showList(parts, visit, administering, { ...form, refused: error });
    }
  };
}

function showMember(parts: PageParts) {
  return async (visit: Visit): Promise<void> => {
    const administering = await requireAdministrator(parts, visit, visit.query("account"));
    if (!administering) return;
    const entry = await findEntry(parts, administering.own, visit.query("member"));
    if (!entry) return leadToList(parts, visit, administering.own, "gone");
    await showMemberForm(parts, visit, administering, entry);
  };
}

function changeMember(parts: PageParts) {
  return async (visit: Visit): Promise<void> => {
    const administering = await requireAdministrator(parts, visit, visit.text("account"));
    if (!administering) return;
    const { own } = administering;
    const entry = await findEntry(parts, own, visit.text("member"));
    if (!entry) return leadToList(parts, visit, own, "gone");
    const isRemoval = visit.text("change") === "remove";
    const roles = rolesOf(visit);
    try {
      if (!(await visit.isOurForm(purposeOf(own)))) throw staleForm();
      if (!isRemoval) checkRoles(roles);
      const { actors } = parts;
      const { accountId } = own;
      const change = { id: entry.id, by: changerOf(administering) };
      await orRefused(() =>
        isRemoval
          ? callAndNotify(actors, account, accountId, "removeMember", change)
          : callAndNotify(actors, account, accountId, "setRoles", { ...change, roles }),
      );
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      return showMemberForm(
        parts,
        visit,
        administering,
        isRemoval ? entry : { ...entry, roles },
        error,
      );
    }
    leadToList(parts, visit, own, isRemoval ? "removed" : "changed");
  };
}

/**
 * Resolves to the administrator and the account. If nobody is signed in, or the person is no administrator, it
 * answers the request itself and resolves to undefined.
 */
async function requireAdministrator(
  parts: PageParts,
  visit: Visit,
  accountId: string,
): Promise<Administering | undefined> {
  const { signedIn: person } = visit;
  const { actors, link } = parts;
  if (!person) {
    visit.leadTo(link("/login"));
    return undefined;
  }
  const all = await administeredAccounts(actors, person);
  const own = accountId === "" ? all[0] : all.find((one) => one.accountId === accountId);
  if (own) return { person, own, others: all.filter((one) => one !== own) };
  visit.show(403, {
    title: "Members",
    nav: await navOf(parts, visit, all.length > 0),
    body: html`<h1>For administrators</h1>
<p>Only a Super Administrator or an Administrator of an account sees its members here, and says who they are.</p>`,
  });
  return undefined;
}

function navOf(parts: PageParts, visit: Visit, isAdministrator: boolean): Promise<Html> {
  return profileNav(visit, { link: parts.link, here: MEMBERS, isAdministrator });
}

async function readEntries(
  parts: PageParts,
  { accountId }: OwnAccount,
): Promise<{ members: Entry[]; invited: Entry[] }> {
  const listed = await parts.actors.call(account, accountId, "listMembers", {});
  return { members: listed.members.map(entryOf), invited: [...listed.invitations] };
}

async function findEntry(
  parts: PageParts,
  own: OwnAccount,
  id: string,
): Promise<Entry | undefined> {
  if (!Id.safeParse(id).success) return undefined;
  const { members, invited } = await readEntries(parts, own);
  return [...members, ...invited].find((entry) => entry.id === id);
}

function leadToList(
  parts: PageParts,
  visit: Visit,
  { accountId }: OwnAccount,
  done: keyof typeof DONE,
): void {
  visit.leadTo(parts.link(`${MEMBERS}?${new URLSearchParams({ account: accountId, done })}`));
}

/** Converts refusals of the account's actor to messages for people. */
async function orRefused<T>(change: () => Promise<T>): Promise<T> {
  try {
    return await change();
  } catch (error) {
    if (!(error instanceof ActorError)) throw error;
    const text = REFUSALS[error.code];
    throw text === undefined ? error : new Refused(text.status, text.of(error.message));
  }
}

async function showList(
  parts: PageParts,
  visit: Visit,
  administering: Administering,
  form: InvitationForm,
): Promise<void> {
  const { own, others } = administering;
  const { members, invited } = await readEntries(parts, own);
  const done = form.refused ? undefined : doneText(visit.query("done"));
  visit.show(form.refused?.status ?? 200, {
    title: "Members",
    nav: await navOf(parts, visit, true),
    body: html`<h1>Members of ${own.name}</h1>
${form.refused && refusalNote(form.refused)}
${done !== undefined && html`<p class="note good" role="status">${done}</p>`}
${others.length > 0 && otherAccounts(parts, others)}
<ul class="plain rows">
${members.map((entry) => entryRow(parts, administering, entry))}
</ul>
${
  invited.length > 0 &&
  html`<h2>Invited</h2>
<ul class="plain rows">
${invited.map((entry) => entryRow(parts, administering, entry))}
</ul>`
}
<h2>Invite somebody</h2>
<form method="post" action="${parts.link(`${MEMBERS}/invite`)}">
${await hiddenFields(visit, own)}
${field({ name: "email", label: "Email", type: "email", autocomplete: "off", value: form.email, refused: form.refused })}
${rolesField(form.roles, own.roles)}
<div class="buttons"><button>Invite</button></div>
</form>`,
  });
}

function otherAccounts(parts: PageParts, others: readonly OwnAccount[]): Html {
  const link = ({ accountId, name }: OwnAccount) =>
    html`<a href="${parts.link(`${MEMBERS}?account=${accountId}`)}">${name}</a> `;
  return html`<p class="links quiet">You also administer ${others.map(link)}</p>`;
}

function entryRow(
  parts: PageParts,
  { own, person }: Administering,
  { id, email, roles, expiresAt }: Entry,
): Html {
  const query = new URLSearchParams({ account: own.accountId, member: id });
  const canChange = !roles.includes(HIGHEST_ROLE) || own.roles.includes(HIGHEST_ROLE);
  const name = canChange
    ? html`<a href="${parts.link(`${MEMBERS}/change?${query}`)}">${email}</a>`
    : html`${email}`;
  return html`<li><span class="name">${name}${id === person.userId && html` (you)`}</span>
<span class="quiet">${rolesText(roles)}${expiresAt !== undefined && html`; until ${dateOf(expiresAt)}`}</span></li>
`;
}

async function showMemberForm(
  parts: PageParts,
  visit: Visit,
  { own, person }: Administering,
  { id, email, roles, expiresAt }: Entry,
  refused?: Refused,
): Promise<void> {
  const { link } = parts;
  const isInvited = expiresAt !== undefined;
  const action = link(`${MEMBERS}/change`);
  const hidden = html`${await hiddenFields(visit, own)}
<input type="hidden" name="member" value="${id}">`;
  const [who, whom] = id === person.userId ? ["You", "you"] : ["They", "them"];
  visit.show(refused?.status ?? 200, {
    title: email,
    nav: await navOf(parts, visit, true),
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
        : `${who} can do nothing in it from then on, and neither can the clients that act for ${whom}. Invitations that ${who.toLowerCase()} sent are void. API tokens that ${who.toLowerCase()} made belong to the account, and stay.`
    }</p>
<form method="post" action="${action}">
${hidden}
<button class="bad" name="change" value="remove" aria-describedby="removal">${isInvited ? "Take back" : "Remove"}</button>
</form>`,
  });
}

async function showInvitation(
  parts: PageParts,
  visit: Visit,
  { own }: Administering,
  { invitation, text }: { invitation: Invitation; text: string },
): Promise<void> {
  const { link, publicUrl } = parts;
  const { email, expiresAt, roles } = invitation;
  visit.show(200, {
    title: "Invited",
    nav: await navOf(parts, visit, true),
    body: html`<h1>Invited</h1>
<p><strong>${email}</strong> can join ${own.name} as ${rolesText(roles)} until ${dateOf(expiresAt)}, by this address. Send it to
them: no mail is sent from here, and it is shown this once.</p>
<p class="copy"><code>${publicUrl}/signup?invitation=${text}</code></p>
<p><a href="${link(`${MEMBERS}?account=${own.accountId}`)}">Back to the members</a></p>`,
  });
}

async function hiddenFields(visit: Visit, own: OwnAccount): Promise<Html> {
  return html`${await visit.markField(purposeOf(own))}
<input type="hidden" name="account" value="${own.accountId}">`;
}

const DONE = {
  changed: "Saved.",
  removed: "Removed.",
  gone: "This entry no longer exists: somebody removed it, or the invitation was used or has expired.",
} as const;

/** The name comes from the address, so it may also be the name of a method that every object has. */
const doneText = (name: string) =>
  Object.hasOwn(DONE, name) ? DONE[name as keyof typeof DONE] : undefined;

/** How pages show each refusal of the account's actor. Every other error is a fault. */
const REFUSALS: Partial<
  Record<ActorError["code"], { status: number; of: (message: string) => string }>
> = {
  conflict: { status: 409, of: reasonOf },
  forbidden: { status: 403, of: reasonOf },
  limit_reached: { status: 409, of: reasonOf },
  not_found: { status: 409, of: () => DONE.gone },
};

/** Returns the reason in "Cannot do this: reason" as a sentence. */
function reasonOf(message: string): string {
  const reason = message.slice(message.indexOf(": ") + 2);
  return `${reason.charAt(0).toUpperCase()}${reason.slice(1)}.`;
}

const purposeOf = ({ accountId }: OwnAccount) => `members ${accountId}`;

/**
 * Returns the author of a change with their permissions. As in the REST API, nobody can give permissions that they
 * lack.
 */
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
