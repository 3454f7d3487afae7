/** REST routes to invite, list, change and remove members of an account. */
import type { z } from "zod";
import type { ActorClient } from "../../../actors/runtime/calls/actor-client.ts";
import { account, type Invitation, type Member } from "../../../schemas/account/account.ts";
import { AccountPath } from "../../../schemas/account/http/accounts.ts";
import {
  InvitedMember,
  InviteMember,
  LeftAccount,
  MemberPath,
  MembersQuery,
  RemovedMember,
  RolePath,
  UpdateMember,
  WireMember,
  WireRole,
  wireRole,
} from "../../../schemas/account/http/members.ts";
import { ALL_ROLES } from "../../../schemas/account/permissions.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { Listing } from "../../../schemas/http/listing.ts";
import { nothing } from "../../../schemas/http/nothing.ts";
import { JSON_BODY_BYTES_MAX } from "../../../schemas/limits.ts";
import { callAndNotify } from "../../http/call-and-notify.ts";
import { pageOf } from "../../http/listing.ts";
import type { Caller } from "../../http/locals.ts";
import { defineRoute, type Route, type RouteRequest, type Tag } from "../../http/route.ts";
import { newInvitation } from "../invitation-text.ts";

const MEMBERS_TAG: Tag = {
  name: "Members",
  description: "People of an account, their roles and invitations",
};

const MEMBERS = "/accounts/{account_id}/members";
const MEMBER = `${MEMBERS}/{member_id}`;

type OfMember<B = unknown> = RouteRequest<z.output<typeof MemberPath>, unknown, B>;

const INVITE_MEMBER = {
  tag: MEMBERS_TAG,
  permissions: ["account.write"],
  method: "post",
  path: MEMBERS,
  id: "inviteMember",
  summary: "Invite a person by e-mail address; a second invitation replaces the first",
  parameters: AccountPath,
  query: nothing,
  body: { schema: InviteMember, bytesMax: JSON_BODY_BYTES_MAX },
  refusals: ["conflict", "limit_reached"],
  answer: { result: InvitedMember },
} as const;

const LIST_MEMBERS = {
  tag: MEMBERS_TAG,
  permissions: ["account.read"],
  method: "get",
  path: MEMBERS,
  id: "listMembers",
  summary: "List the account's members and invited persons",
  parameters: AccountPath,
  query: MembersQuery,
  answer: { result: WireMember.array(), paged: "numbers" },
} as const;

const GET_MEMBER = {
  tag: MEMBERS_TAG,
  permissions: ["account.read"],
  method: "get",
  path: MEMBER,
  id: "getMember",
  summary: "Get a member or an invited person",
  parameters: MemberPath,
  query: nothing,
  answer: { result: WireMember },
} as const;

const UPDATE_MEMBER = {
  tag: MEMBERS_TAG,
  permissions: ["account.write"],
  method: "put",
  path: MEMBER,
  id: "updateMember",
  isRevocation: true,
  summary: "Change the roles of a member or of an invited person",
  parameters: MemberPath,
  query: nothing,
  body: { schema: UpdateMember, bytesMax: JSON_BODY_BYTES_MAX },
  refusals: ["conflict"],
  answer: { result: WireMember },
} as const;

const REMOVE_MEMBER = {
  tag: MEMBERS_TAG,
  permissions: ["account.write"],
  method: "delete",
  path: MEMBER,
  id: "removeMember",
  isRevocation: true,
  summary: "Remove a member, or withdraw an invitation",
  parameters: MemberPath,
  query: nothing,
  refusals: ["conflict"],
  answer: { result: RemovedMember },
} as const;

const LEAVE_ACCOUNT = {
  tag: MEMBERS_TAG,
  permissions: ["account.write"],
  isOfPerson: true,
  method: "delete",
  path: "/user/accounts/{account_id}",
  id: "leaveAccount",
  isRevocation: true,
  summary:
    "Leave an account, which every member but the last Super Administrator can (needs a session; tokens are refused)",
  parameters: AccountPath,
  query: nothing,
  refusals: ["conflict"],
  answer: { result: LeftAccount },
} as const;

const LIST_ROLES = {
  tag: MEMBERS_TAG,
  permissions: ["account.read"],
  method: "get",
  path: "/accounts/{account_id}/roles",
  id: "listRoles",
  summary: "List the members' roles and their permissions",
  parameters: AccountPath,
  query: Listing,
  answer: { result: WireRole.array(), paged: "numbers" },
} as const;

const GET_ROLE = {
  tag: MEMBERS_TAG,
  permissions: ["account.read"],
  method: "get",
  path: "/accounts/{account_id}/roles/{role_id}",
  id: "getRole",
  summary: "Get a role and its permissions",
  parameters: RolePath,
  query: nothing,
  answer: { result: WireRole },
} as const;

interface MemberParts {
  actors: ActorClient;
  /** The base URL of the links to invitations. */
  publicUrl: string;
}

/** The REST routes of members and roles. */
export function memberRoutes(actors: ActorClient, publicUrl: string): Route[] {
  const parts = { actors, publicUrl };
  return [
    defineRoute({ ...INVITE_MEMBER, handle: inviteMember(parts) }),
    defineRoute({ ...LIST_MEMBERS, handle: listMembers(parts) }),
    defineRoute({ ...GET_MEMBER, handle: getMember(parts) }),
    defineRoute({ ...UPDATE_MEMBER, handle: updateMember(parts) }),
    defineRoute({ ...REMOVE_MEMBER, handle: removeMember(parts) }),
    defineRoute({ ...LEAVE_ACCOUNT, handle: leaveAccount(parts) }),
    defineRoute({
      ...LIST_ROLES,
      handle: async ({ query }) => pageOf(ALL_ROLES.map(wireRole), query),
    }),
    defineRoute({
      ...GET_ROLE,
      handle: async ({ parameters }) => ({ result: wireRole(parameters.role_id) }),
    }),
  ];
}

function inviteMember({ actors, publicUrl }: MemberParts) {
  return async ({ caller, body }: RouteRequest<unknown, unknown, InviteMember>) => {
    const { text, id, secretHash } = newInvitation(caller.accountId);
    const invitation = await actors.call(account, caller.accountId, "invite", {
      id,
      secretHash,
      by: changerOf(caller),
      email: body.email,
      roles: body.roles,
    });
    return {
      result: {
        ...wireInvitation(invitation),
        invitation_token: text,
        invitation_url: `${publicUrl}/signup?invitation=${text}`,
      },
    };
  };
}

function listMembers({ actors }: MemberParts) {
  return async ({ caller, query }: RouteRequest<unknown, MembersQuery>) => {
    const { status, order } = query;
    const members = (await membersOf(actors, caller.accountId)).filter(
      (member) => status === undefined || member.status === status,
    );
    if (order === "user.email") members.sort((one, other) => compare(one.email, other.email));
    if (order === "status") members.sort((one, other) => compare(one.status, other.status));
    return pageOf(members, query);
  };
}

function getMember({ actors }: MemberParts) {
  return async ({ caller, parameters }: OfMember) => {
    return { result: await findMember(actors, caller.accountId, parameters.member_id) };
  };
}

function updateMember({ actors }: MemberParts) {
  return async ({ caller, parameters, body }: OfMember<UpdateMember>) => {
    const { member_id: id } = parameters;
    const change = { id, roles: body.roles, by: changerOf(caller) };
    await callAndNotify(actors, account, caller.accountId, "setRoles", change);
    return { result: await findMember(actors, caller.accountId, id) };
  };
}

function removeMember({ actors }: MemberParts) {
  return async ({ caller, parameters: { member_id: id } }: OfMember) => {
    await callAndNotify(actors, account, caller.accountId, "removeMember", {
      id,
      by: changerOf(caller),
    });
    return { result: { id } };
  };
}

function leaveAccount({ actors }: MemberParts) {
  return async ({ caller: { accountId: id, userId } }: RouteRequest) => {
    if (userId === undefined) throw new Error("Cannot leave account: the session names no person");
    await callAndNotify(actors, account, id, "leave", { userId });
    return { result: { id } };
  };
}

async function findMember(actors: ActorClient, accountId: string, id: string) {
  const found = (await membersOf(actors, accountId)).find((member) => member.id === id);
  if (found) return found;
  throw new ActorError("not_found", `Cannot find member: "${id}" is unknown`);
}

async function membersOf(actors: ActorClient, accountId: string) {
  const { members, invitations } = await actors.call(account, accountId, "listMembers", {});
  return [...members.map(wireMember), ...invitations.map(wireInvitation)];
}

const compare = (one: string, other: string) => (one < other ? -1 : Number(one > other));

const changerOf = ({ permissions, tokenId, userId }: Caller) => ({
  permissions,
  tokenId,
  ...(userId !== undefined && { userId }),
});

function wireMember({ userId, email, roles }: Member): z.input<typeof WireMember> {
  return { id: userId, email, status: "accepted", roles: roles.map(wireRole) };
}

function wireInvitation({ id, email, roles, expiresAt }: Invitation): z.input<typeof WireMember> {
  const expires_at = new Date(expiresAt).toISOString();
  return { id, email, status: "pending", roles: roles.map(wireRole), expires_at };
}
