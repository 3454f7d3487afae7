/** REST routes that show the caller's own accounts. */
import type { z } from "zod";
import type { ActorClient } from "../../../actors/runtime/calls/actor-client.ts";
import { account } from "../../../schemas/account/account.ts";
import {
  AccountPath,
  AccountsQuery,
  WireAccount,
  WireUser,
} from "../../../schemas/account/http/accounts.ts";
import { INSTALLATION_KEY, installation } from "../../../schemas/account/installation.ts";
import { ActorError } from "../../../schemas/errors.ts";
import type { Listing } from "../../../schemas/http/listing.ts";
import { nothing } from "../../../schemas/http/nothing.ts";
import { callFew } from "../../http/call-few.ts";
import { pageOf } from "../../http/listing.ts";
import { defineRoute, type Route, type RouteRequest, type Tag } from "../../http/route.ts";

const ACCOUNTS_TAG: Tag = {
  name: "Accounts",
  description: "Accounts of the caller, and the permissions that scopes and tokens name",
};

const LIST_ACCOUNTS = {
  method: "get",
  path: "/accounts",
  id: "listAccounts",
  tag: ACCOUNTS_TAG,
  summary: "List the accounts that the token can use",
  parameters: nothing,
  query: AccountsQuery,
  answer: { result: WireAccount.array(), paged: "numbers" },
} as const;

const GET_ACCOUNT = {
  method: "get",
  path: "/accounts/{account_id}",
  id: "getAccount",
  tag: ACCOUNTS_TAG,
  summary: "Get an account",
  parameters: AccountPath,
  query: nothing,
  answer: { result: WireAccount },
} as const;

const GET_USER = {
  method: "get",
  path: "/user",
  id: "getUser",
  tag: ACCOUNTS_TAG,
  summary: "Get the token's user: the user who authorized its client or created it",
  parameters: nothing,
  query: nothing,
  refusals: ["not_found"],
  answer: { result: WireUser },
} as const;

/** The REST routes of accounts and of the user behind a token. */
export function accountRoutes(actors: ActorClient): Route[] {
  return [
    defineRoute({ ...LIST_ACCOUNTS, handle: listAccounts(actors) }),
    defineRoute({ ...GET_ACCOUNT, handle: getAccount(actors) }),
    defineRoute({ ...GET_USER, handle: getUser(actors) }),
  ];
}

function listAccounts(actors: ActorClient) {
  return async ({
    caller,
    query,
  }: RouteRequest<unknown, Listing & { name?: string | undefined }>) => {
    const ids = caller.accountIds ?? [caller.accountId];
    const own = await callFew(ids, (id) => wireAccount(actors, id));
    return pageOf(
      own.filter(({ name }) => query.name === undefined || query.name === name),
      query,
    );
  };
}

function getAccount(actors: ActorClient) {
  return async ({ caller }: RouteRequest) => {
    return { result: await wireAccount(actors, caller.accountId) };
  };
}

function getUser(actors: ActorClient) {
  return async ({ caller }: RouteRequest) => {
    const { accountId, tokenId, session } = caller;
    if (session && caller.userId) {
      const { userId: id } = caller;
      const asked = { userId: id };
      const { is } = await actors.call(installation, INSTALLATION_KEY, "isAdministrator", asked);
      return { result: { id, email: session.email, is_administrator: is } };
    }
    const userId =
      caller.userId ?? (await actors.call(account, accountId, "getToken", { id: tokenId })).userId;
    const { members } = await actors.call(account, accountId, "listMembers", {});
    const member = members.find((one) => one.userId === userId);
    if (!member) {
      throw new ActorError(
        "not_found",
        "Cannot find user: the token belongs to the account, not to a person",
      );
    }
    return { result: { id: member.userId, email: member.email } };
  };
}

async function wireAccount(actors: ActorClient, id: string): Promise<z.input<typeof WireAccount>> {
  const { name, createdAt } = await actors.call(account, id, "get", {});
  return { id, name, type: "standard", created_on: new Date(createdAt).toISOString() };
}
