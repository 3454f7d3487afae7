/** Members and invitations of an account, and the rules for changing them. */
import type {
  account,
  Invitation,
  Member,
  MemberChanger,
} from "../../../schemas/account/account.ts";
import { MEMBERS_PER_ACCOUNT_MAX } from "../../../schemas/account/limits.ts";
import {
  HIGHEST_ROLE,
  PERMISSIONS,
  permissionsOf,
  permits,
  type Role,
} from "../../../schemas/account/permissions.ts";
import { user } from "../../../schemas/account/user.ts";
import { type DeepReadonly, envelope, type Input } from "../../../schemas/contract.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { sameHash } from "../lib/hashes/same-hash.ts";
import type { AccountState, StoredInvitation } from "./account-state.ts";

/** An invitation is valid for a week. */
export const INVITATION_MS = 7 * 86_400_000;

type State = DeepReadonly<AccountState>;
type Messages = (typeof account)["messages"];
interface Moment {
  accountId: string;
  now: number;
}

/** The live update that is published after each change of members. */
export const live = { change: "members" } as const;

export function memberOf(state: State, userId: string): DeepReadonly<Member> {
  const member = state.members.find((entry) => entry.userId === userId);
  if (!member) throw new ActorError("not_found", `Cannot find member: "${userId}" is unknown`);
  return member;
}

/**
 * Returns the invitations that open the account. An invitation is void while the person who gave it may not give its
 * roles: otherwise a removed administrator could come back by an invitation to another address of theirs.
 */
export function validInvitations({ invitations, members }: State, now: number) {
  return invitations.filter(({ expiresAt, invitedBy, roles }) => {
    const giver = members.find(({ userId }) => userId === invitedBy);
    const isGiven = invitedBy === undefined || (giver !== undefined && mayGive(giver, roles));
    return now < expiresAt && isGiven;
  });
}

/** Removes the other invitations, so that none opens the account again when its giver gets the roles back. */
const withValidInvitations = (state: State, now: number): State => ({
  ...state,
  invitations: validInvitations(state, now),
});

/** Returns whether a member with these roles may give such roles. */
const mayGive = ({ roles: own }: DeepReadonly<Member>, roles: readonly Role[]) =>
  isAdministrator(own) && (!roles.includes(HIGHEST_ROLE) || own.includes(HIGHEST_ROLE));

const isAdministrator = (roles: readonly Role[]) => permits(permissionsOf(roles), "account.write");

export function invite(state: State, input: Input<Messages["invite"]>, now: number) {
  const { id, email, roles, secretHash, by } = input;
  const known = state.invitations.find((invitation) => invitation.id === id);
  if (known) return { state, reply: shown(known) };
  checkMayChange(state, roles, by);
  if (state.members.some((member) => member.email === email)) {
    throw new ActorError("conflict", `Cannot invite "${email}": they are a member`);
  }
  const valid = validInvitations(state, now);
  const replaced = valid.find((invitation) => invitation.email === email);
  checkMayChange(state, replaced?.roles ?? [], by);
  const others = valid.filter((invitation) => invitation !== replaced);
  if (state.members.length + others.length >= MEMBERS_PER_ACCOUNT_MAX) {
    throw new ActorError(
      "limit_reached",
      `Cannot invite "${email}": the account has ${MEMBERS_PER_ACCOUNT_MAX} members and invitations, which is the limit`,
    );
  }
  const invitation = { id, email, roles, invitedAt: now, expiresAt: now + INVITATION_MS };
  const invitations = [...others, { ...invitation, secretHash, ...givenBy(state, by) }];
  return { state: { ...state, invitations }, reply: invitation };
}

export function setRoles(
  state: State,
  { id, roles, by }: Input<Messages["setRoles"]>,
  { accountId, now }: Moment,
) {
  const found = findChangeable(state, id, by, now);
  checkMayChange(state, roles, by);
  if (found.kind === "invitation") {
    const { invitedBy: _before, ...entry } = found.entry;
    const changed = { ...entry, roles, ...givenBy(state, by) };
    const invitations = replaced(state.invitations, found.entry, changed);
    return { state: { ...state, invitations }, reply: {} };
  }
  if (!roles.includes(HIGHEST_ROLE)) checkNotLast(state, found.entry);
  const { userId, email } = found.entry;
  const members = replaced(state.members, found.entry, { ...found.entry, roles });
  const send = [envelope(user, email, "joined", { userId, accountId, roles })];
  return { state: withValidInvitations({ ...state, members }, now), reply: {}, send, live };
}

export function removeMember(
  state: State,
  { id, by }: Input<Messages["removeMember"]>,
  { accountId, now }: Moment,
) {
  const found = findChangeable(state, id, by, now);
  if (found.kind === "invitation") {
    const invitations = state.invitations.filter((invitation) => invitation !== found.entry);
    return { state: { ...state, invitations }, reply: {} };
  }
  checkNotLast(state, found.entry);
  return withoutMember(state, found.entry, { accountId, now });
}

export function leave(state: State, { userId }: Input<Messages["leave"]>, moment: Moment) {
  const member = memberOf(state, userId);
  if (isLast(state, member)) {
    const text = `you are its last ${HIGHEST_ROLE}; give this role to another member first`;
    throw new ActorError("conflict", `Cannot leave account: ${text}`);
  }
  return withoutMember(state, member, moment);
}

function withoutMember(state: State, left: DeepReadonly<Member>, { accountId, now }: Moment) {
  const { userId, email } = left;
  const members = state.members.filter((member) => member !== left);
  const send = [envelope(user, email, "left", { userId, accountId })];
  return { state: withValidInvitations({ ...state, members }, now), reply: {}, send, live };
}

/**
 * Finds the invitation whose id and secret match. The error is the same for every reason, so that attackers learn
 * nothing from a difference.
 */
export function provenInvitation(
  state: State,
  { id, secretHash }: Pick<StoredInvitation, "id" | "secretHash">,
  now: number,
): DeepReadonly<StoredInvitation> {
  const invitation = validInvitations(state, now).find((entry) => entry.id === id);
  if (invitation && sameHash(invitation.secretHash, secretHash)) return invitation;
  throw new ActorError("not_found", "Cannot find invitation: it is unknown, used or expired");
}

export function acceptInvitation(
  state: State,
  { id, secretHash, userId, email }: Input<Messages["acceptInvitation"]>,
  { accountId, now }: Moment,
) {
  const member = state.members.find((entry) => entry.userId === userId);
  if (member) return { state, reply: { roles: member.roles } };
  const invitation = provenInvitation(state, { id, secretHash }, now);
  if (invitation.email !== email) {
    throw new ActorError("forbidden", "Cannot accept invitation: it is for another e-mail address");
  }
  const { roles } = invitation;
  const members = [...state.members, { userId, email, roles, invitationId: id }];
  const invitations = state.invitations.filter((entry) => entry !== invitation);
  const send = [envelope(user, email, "joined", { userId, accountId, roles })];
  return { state: { ...state, members, invitations }, reply: { roles }, send, live };
}

type Changeable =
  | { kind: "member"; entry: DeepReadonly<Member> }
  | { kind: "invitation"; entry: DeepReadonly<StoredInvitation> };

function findChangeable(state: State, id: string, by: MemberChanger, now: number): Changeable {
  const invitation = validInvitations(state, now).find((entry) => entry.id === id);
  const found: Changeable = invitation
    ? { kind: "invitation", entry: invitation }
    : { kind: "member", entry: memberOf(state, id) };
  checkMayChange(state, found.entry.roles, by);
  return found;
}

/** Throws `forbidden` if the author of a change may not give or change these roles. */
function checkMayChange(state: State, roles: readonly Role[], by: MemberChanger): void {
  const missing = permissionsOf(roles).filter((needed) => !permits(by.permissions, needed));
  if (missing.length > 0) {
    const names = missing.map((permission) => `"${PERMISSIONS[permission]}"`).join(", ");
    throw new ActorError("forbidden", `Cannot change members: the token lacks ${names}`);
  }
  const person = personOf(state, by);
  if (person === undefined) return;
  const changer = state.members.find(({ userId }) => userId === person);
  if (!changer)
    throw new ActorError("forbidden", "Cannot change members: the user is not a member");
  // The gateway has checked the permissions of the token. This check uses the author's current roles, which only this
  // actor knows.
  if (!isAdministrator(changer.roles)) {
    throw new ActorError("forbidden", "Cannot change members: the user is no administrator");
  }
  if (!mayGive(changer, roles)) {
    throw new ActorError(
      "forbidden",
      `Cannot change members: only a ${HIGHEST_ROLE} changes another`,
    );
  }
}

/**
 * Returns the id of the person for whom a caller acts; undefined for a token of the first release. Throws `forbidden`
 * for a token that was deleted while its request was under way.
 */
function personOf(state: State, { userId, tokenId }: MemberChanger): string | undefined {
  if (userId !== undefined || tokenId === undefined) return userId;
  const token = state.tokens.find(({ id }) => id === tokenId);
  if (token) return token.userId;
  throw new ActorError("forbidden", "Cannot change members: the token was deleted");
}

function givenBy(state: State, by: MemberChanger): { invitedBy?: string } {
  const invitedBy = personOf(state, by);
  return invitedBy === undefined ? {} : { invitedBy };
}

function checkNotLast(state: State, member: DeepReadonly<Member>): void {
  if (!isLast(state, member)) return;
  throw new ActorError("conflict", `Cannot change member: they are the last ${HIGHEST_ROLE}`);
}

const isLast = ({ members }: State, { userId, roles }: DeepReadonly<Member>) =>
  roles.includes(HIGHEST_ROLE) &&
  !members.some((other) => other.userId !== userId && other.roles.includes(HIGHEST_ROLE));

function replaced<T>(entries: readonly T[], old: T, next: T): T[] {
  return entries.map((entry) => (entry === old ? next : entry));
}

function shown({
  secretHash: _hash,
  invitedBy: _giver,
  ...invitation
}: DeepReadonly<StoredInvitation>): DeepReadonly<Invitation> {
  return invitation;
}
