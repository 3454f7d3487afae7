/** REST routes to create, list, change, roll and revoke API tokens. A secret is shown once. */
import type { z } from "zod";
import type { ActorClient } from "../../../actors/runtime/calls/actor-client.ts";
import { account, type TokenEntry } from "../../../schemas/account/account.ts";
import { apiToken } from "../../../schemas/account/api-token.ts";
import { AccountPath } from "../../../schemas/account/http/accounts.ts";
import {
  ACCOUNT_SCOPE,
  CreatedToken,
  CreateToken,
  DeletedToken,
  GroupsQuery,
  PermissionGroup,
  RolledToken,
  TokenPath,
  TokensQuery,
  UpdateToken,
  VerifiedToken,
  WireToken,
} from "../../../schemas/account/http/tokens.ts";
import { ALL_PERMISSIONS, type Permission } from "../../../schemas/account/permissions.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { nothing } from "../../../schemas/http/nothing.ts";
import { JSON_BODY_BYTES_MAX } from "../../../schemas/limits.ts";
import { callFew } from "../../http/call-few.ts";
import { pageOf } from "../../http/listing.ts";
import type { Caller } from "../../http/locals.ts";
import { defineRoute, type Route, type RouteRequest, type Tag } from "../../http/route.ts";
import { newToken } from "../api-token-text.ts";
import { addWithRoom, hasEnded, removeToken } from "./ended-tokens.ts";
import {
  checkExpiry,
  checkHeld,
  checkLifetime,
  checkOwner,
  checkResources,
  checkRoll,
  type TokenTimes,
} from "./token-checks.ts";
import { permissionGroup, wireToken, wireValidity } from "./wire-token.ts";

const TOKENS_TAG: Tag = {
  name: "Tokens",
  description: "API tokens of an account",
};

const TOKENS = "/accounts/{account_id}/tokens";

const CREATE_TOKEN = {
  tag: TOKENS_TAG,
  method: "post",
  path: TOKENS,
  id: "createToken",
  summary:
    "Create a token with some or all of the caller's own permissions; a token created with an OAuth access token ends with its grant",
  permissions: ["account.write"],
  parameters: AccountPath,
  query: nothing,
  body: { schema: CreateToken, bytesMax: JSON_BODY_BYTES_MAX },
  refusals: ["limit_reached"],
  answer: { result: CreatedToken },
} as const;

const LIST_TOKENS = {
  tag: TOKENS_TAG,
  method: "get",
  path: TOKENS,
  id: "listTokens",
  summary: "List the account's tokens, without their secrets",
  permissions: ["account.read"],
  parameters: AccountPath,
  query: TokensQuery,
  answer: { result: WireToken.array(), paged: "numbers" },
} as const;

const LIST_PERMISSION_GROUPS = {
  tag: TOKENS_TAG,
  method: "get",
  path: `${TOKENS}/permission_groups`,
  id: "listPermissionGroups",
  summary: "List the permissions that a token can have",
  permissions: ["account.read"],
  parameters: AccountPath,
  query: GroupsQuery,
  answer: { result: PermissionGroup.array(), paged: "numbers" },
} as const;

const VERIFY_ACCOUNT_TOKEN = {
  tag: TOKENS_TAG,
  method: "get",
  path: `${TOKENS}/verify`,
  id: "verifyAccountToken",
  summary: "Verify the token of this request",
  parameters: AccountPath,
  query: nothing,
  answer: { result: VerifiedToken },
} as const;

const GET_TOKEN = {
  tag: TOKENS_TAG,
  method: "get",
  path: `${TOKENS}/{token_id}`,
  id: "getToken",
  summary: "Get a token, without its secret",
  permissions: ["account.read"],
  parameters: TokenPath,
  query: nothing,
  answer: { result: WireToken },
} as const;

const UPDATE_TOKEN = {
  tag: TOKENS_TAG,
  method: "put",
  path: `${TOKENS}/{token_id}`,
  id: "updateToken",
  isRevocation: true,
  summary: "Replace a token's name, permissions, times and status; its secret is kept",
  permissions: ["account.write"],
  parameters: TokenPath,
  query: nothing,
  body: { schema: UpdateToken, bytesMax: JSON_BODY_BYTES_MAX },
  answer: { result: WireToken },
} as const;

const ROLL_TOKEN = {
  tag: TOKENS_TAG,
  method: "put",
  path: `${TOKENS}/{token_id}/value`,
  id: "rollToken",
  isRevocation: true,
  summary: "Replace a token's secret at once; the new secret is shown only in this response",
  permissions: ["account.write"],
  parameters: TokenPath,
  query: nothing,
  answer: { result: RolledToken },
} as const;

const DELETE_TOKEN = {
  tag: TOKENS_TAG,
  method: "delete",
  path: `${TOKENS}/{token_id}`,
  id: "deleteToken",
  isRevocation: true,
  summary: "Revoke a token at once; this cannot be undone",
  permissions: ["account.write"],
  parameters: TokenPath,
  query: nothing,
  answer: { result: DeletedToken },
} as const;

const VERIFY_TOKEN = {
  tag: TOKENS_TAG,
  method: "get",
  path: "/user/tokens/verify",
  id: "verifyToken",
  summary: "Verify the token of this request",
  parameters: nothing,
  query: nothing,
  answer: { result: VerifiedToken },
} as const;

interface TokenParts {
  actors: ActorClient;
  now: () => number;
}

/** The REST routes of API tokens. */
export function tokenRoutes(actors: ActorClient, now: () => number): Route[] {
  const parts = { actors, now };
  return [
    defineRoute({ ...CREATE_TOKEN, handle: createToken(parts) }),
    defineRoute({ ...LIST_TOKENS, handle: listTokens(parts) }),
    defineRoute({
      ...LIST_PERMISSION_GROUPS,
      handle: async ({ query }) => pageOf(groupsOf(query), query),
    }),
    // This route must come before the route of one token, which would read "verify" as the id of a token.
    defineRoute({ ...VERIFY_ACCOUNT_TOKEN, handle: verifyToken }),
    defineRoute({ ...GET_TOKEN, handle: getToken(parts) }),
    defineRoute({ ...UPDATE_TOKEN, handle: updateToken(parts) }),
    defineRoute({ ...ROLL_TOKEN, handle: rollToken(parts) }),
    defineRoute({ ...DELETE_TOKEN, handle: deleteToken(parts) }),
    defineRoute({ ...VERIFY_TOKEN, handle: verifyToken }),
  ];
}

function createToken({ actors, now }: TokenParts) {
  return async ({ caller, body }: RouteRequest<unknown, unknown, CreateToken>) => {
    checkResources(body, caller.accountId);
    checkExpiry(body, now());
    const permissions = requestedPermissions(body);
    checkHeld(permissions, caller, "create");
    const { id, text, secretHash, lastFour } = newToken();
    const validity = validityOf(body);
    checkLifetime(validity.expiresAt, caller, "create");
    const { accountId, grantId } = caller;
    const origin = grantId === undefined ? {} : { grantId };
    // The account lists the token before the token becomes valid. So every valid token is in the list, where it can
    // be revoked.
    const userId = await personOf(actors, caller);
    const maker = userId === undefined ? {} : { userId };
    const entry = { id, name: body.name, permissions, lastFour, ...validity, ...origin, ...maker };
    const created = await addWithRoom({ actors, caller, now: now() }, entry);
    const issued = { accountId, permissions, secretHash, ...validity, ...origin };
    await actors.call(apiToken, id, "issue", issued);
    return { result: { ...wireToken(created, { accountId, now: now() }), value: text } };
  };
}

function listTokens({ actors, now }: TokenParts) {
  return async ({ caller, query }: RouteRequest<unknown, TokensQuery>) => {
    const { tokens } = await actors.call(account, caller.accountId, "listTokens", {});
    const wire = async (token: TokenEntry) =>
      wireToken(token, {
        accountId: caller.accountId,
        now: now(),
        hasGrantEnded: await hasEnded(actors, caller.accountId, token),
      });
    if (query.include_expired === "false") {
      const all = await callFew(tokens, wire);
      return pageOf(
        all.filter(({ status }) => status !== "expired"),
        query,
      );
    }
    const { result, resultInfo } = pageOf(tokens, query);
    return { result: await callFew(result, wire), resultInfo };
  };
}

function getToken({ actors, now }: TokenParts) {
  return async ({ caller, parameters }: RouteRequest<z.output<typeof TokenPath>>) => {
    const id = parameters.token_id;
    const token = await actors.call(account, caller.accountId, "getToken", { id });
    const { accountId } = caller;
    const hasGrantEnded = await hasEnded(actors, accountId, token);
    return { result: wireToken(token, { accountId, now: now(), hasGrantEnded }) };
  };
}

function deleteToken({ actors }: TokenParts) {
  return async ({ caller, parameters }: RouteRequest<z.output<typeof TokenPath>>) => {
    const id = parameters.token_id;
    await findChangeable(actors, id, caller, "delete");
    await removeToken(actors, caller.accountId, id);
    return { result: { id } };
  };
}

function updateToken({ actors, now }: TokenParts) {
  return async ({
    caller,
    parameters: { token_id: id },
    body,
  }: RouteRequest<z.output<typeof TokenPath>, unknown, UpdateToken>) => {
    const { accountId } = caller;
    checkResources(body, accountId);
    // The expiry is checked only if it changes, so that an expired token can keep its expiry time.
    const before = await findChangeable(actors, id, caller, "update");
    const { lastFour, expiresAt } = before;
    const validity = validityOf(body);
    if (validity.expiresAt !== expiresAt) {
      checkExpiry(body, now());
      checkLifetime(validity.expiresAt, caller, "update");
    }
    const permissions = requestedPermissions(body);
    checkHeld(permissions, caller, "update");
    // "expired" hides whether the token is disabled too. A body that does not say it must not make the token active.
    const { status = "expired" } = body;
    const isDisabled = status === "expired" ? before.isDisabled === true : status === "disabled";
    const opens = { permissions, ...validity, ...(isDisabled && { isDisabled }) };
    // The permissions are changed first. If the second call fails, repeating the request updates the account's list.
    const { changes } = await actors.call(apiToken, id, "change", { opens });
    const counted = changes === undefined ? {} : { changes };
    const entry = { id, name: body.name, lastFour, ...opens, ...counted };
    const changed = await actors.call(account, accountId, "changeToken", entry);
    const hasGrantEnded = await hasEnded(actors, accountId, changed);
    return { result: wireToken(changed, { accountId, now: now(), hasGrantEnded }) };
  };
}

function rollToken({ actors }: TokenParts) {
  return async ({ caller, parameters }: RouteRequest<z.output<typeof TokenPath>>) => {
    const id = parameters.token_id;
    const {
      createdAt: _at,
      grantId: _grant,
      userId: owner,
      lastUsedAt: _used,
      ...token
    } = await findChangeable(actors, id, caller, "roll");
    // The caller learns the secret.
    checkRoll(token, caller);
    await checkOwner(actors, { accountId: caller.accountId, owner }, () =>
      personOf(actors, caller),
    );
    const { text, secretHash, lastFour } = newToken(id);
    await actors.call(apiToken, id, "change", { secretHash });
    // A host of an earlier version replaces the whole entry.
    const change = { ...token, lastFour, only: "lastFour" as const };
    await actors.call(account, caller.accountId, "changeToken", change);
    return { result: text };
  };
}

/**
 * Finds a token of the caller's account that the caller may change. Refuses a token with more permissions than the
 * caller's. A caller whose token comes from an OAuth grant may change only tokens of the same grant, but may delete
 * others.
 */
async function findChangeable(
  actors: ActorClient,
  id: string,
  caller: Caller,
  verb: string,
): Promise<TokenEntry> {
  const token = await actors.call(account, caller.accountId, "getToken", { id });
  checkHeld(token.permissions, caller, verb);
  if (verb === "delete" || caller.grantId === undefined || caller.grantId === token.grantId) {
    return token;
  }
  const text = `Cannot ${verb} token: a token created by an OAuth client can only change tokens of the same grant`;
  throw new ActorError("forbidden", text);
}

/**
 * Resolves to the id of the person for whom the caller acts; undefined for a token of the first release. Rejects if
 * the caller's token was deleted while its request was under way.
 */
async function personOf(actors: ActorClient, { accountId, tokenId, userId }: Caller) {
  if (userId !== undefined) return userId;
  const { tokens } = await actors.call(account, accountId, "listTokens", {});
  const token = tokens.find(({ id }) => id === tokenId);
  if (token) return token.userId;
  throw new ActorError("unauthenticated", "Cannot authenticate: the token was deleted");
}

async function verifyToken({ caller }: RouteRequest) {
  return { result: { id: caller.tokenId, status: "active" as const, ...wireValidity(caller) } };
}

function groupsOf({ name, scope = ACCOUNT_SCOPE }: GroupsQuery) {
  if (scope !== ACCOUNT_SCOPE) return [];
  const groups = ALL_PERMISSIONS.map(permissionGroup);
  return name === undefined ? groups : groups.filter((group) => group.name === name);
}

function validityOf({ not_before, expires_on }: TokenTimes) {
  return {
    ...(not_before === undefined ? {} : { notBeforeAt: Date.parse(not_before) }),
    ...(expires_on === undefined ? {} : { expiresAt: Date.parse(expires_on) }),
  };
}

function requestedPermissions({ policies }: Pick<CreateToken, "policies">): Permission[] {
  return [...new Set(policies.flatMap((policy) => policy.permission_groups.map(({ id }) => id)))];
}
