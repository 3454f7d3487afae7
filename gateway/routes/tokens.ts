/** API tokens of an account: made, listed, revoked; their secret is shown once. */
import type { z } from "zod";
import type { ActorClient } from "../../actors/runtime/actor-client.ts";
import { account, type TokenEntry } from "../../schemas/account.ts";
import { apiToken } from "../../schemas/api-token.ts";
import { ActorError } from "../../schemas/errors.ts";
import { AccountPath } from "../../schemas/http/accounts.ts";
import { Listing } from "../../schemas/http/listing.ts";
import { nothing } from "../../schemas/http/nothing.ts";
import {
  CreatedToken,
  CreateToken,
  DeletedToken,
  PermissionGroup,
  TokenPath,
  VerifiedToken,
  WireToken,
} from "../../schemas/http/tokens.ts";
import { JSON_BODY_BYTES_MAX } from "../../schemas/limits.ts";
import { oauthGrant } from "../../schemas/oauth-grant.ts";
import {
  ALL_PERMISSIONS,
  PERMISSIONS,
  type Permission,
  permits,
} from "../../schemas/permissions.ts";
import { newToken } from "../api-token-text.ts";
import { pageOf } from "../listing.ts";
import type { Caller } from "../locals.ts";
import { type Asked, defineRoute, type Route } from "../route.ts";

const TOKENS = "/accounts/{account_id}/tokens";

export function tokenRoutes(actors: ActorClient, now: () => number): Route[] {
  const shared = { tag: "Tokens" };
  return [
    defineRoute({
      ...shared,
      method: "post",
      path: TOKENS,
      id: "createToken",
      summary:
        "Make a token that opens some or all of what the caller's own opens; made with an OAuth access token, it ends with the grant",
      permissions: ["account.write"],
      parameters: AccountPath,
      query: nothing,
      body: { schema: CreateToken, bytesMax: JSON_BODY_BYTES_MAX },
      refusals: ["limit_reached"],
      answer: { result: CreatedToken },
      handle: createToken,
    }),
    defineRoute({
      ...shared,
      method: "get",
      path: TOKENS,
      id: "listTokens",
      summary: "The account's tokens, without their secrets",
      permissions: ["account.read"],
      parameters: AccountPath,
      query: Listing,
      answer: { result: WireToken.array(), paged: "numbers" },
      handle: listTokens,
    }),
    defineRoute({
      ...shared,
      method: "get",
      path: `${TOKENS}/permission_groups`,
      id: "listPermissionGroups",
      summary: "What a token can open",
      permissions: ["account.read"],
      parameters: AccountPath,
      query: nothing,
      answer: { result: PermissionGroup.array() },
      handle: async () => ({ result: ALL_PERMISSIONS.map(permissionGroup) }),
    }),
    defineRoute({
      ...shared,
      method: "get",
      path: `${TOKENS}/{token_id}`,
      id: "getToken",
      summary: "One token, without its secret",
      permissions: ["account.read"],
      parameters: TokenPath,
      query: nothing,
      answer: { result: WireToken },
      handle: getToken,
    }),
    defineRoute({
      ...shared,
      method: "delete",
      path: `${TOKENS}/{token_id}`,
      id: "deleteToken",
      summary: "Revoke a token, at once and for good",
      permissions: ["account.write"],
      parameters: TokenPath,
      query: nothing,
      answer: { result: DeletedToken },
      handle: deleteToken,
    }),
    defineRoute({
      ...shared,
      method: "get",
      path: "/user/tokens/verify",
      id: "verifyToken",
      summary: "Whether the token of this very request is valid",
      parameters: nothing,
      query: nothing,
      answer: { result: VerifiedToken },
      handle: verifyToken,
    }),
  ];

  async function createToken({ caller, body }: Asked<unknown, unknown, CreateToken>) {
    checkResources(body, caller.accountId);
    checkExpiry(body, now());
    const permissions = requestedPermissions(body);
    checkHeld(permissions, caller);
    const { id, text, secretHash, lastFour } = newToken();
    const validity = {
      ...(body.not_before === undefined ? {} : { notBeforeAt: Date.parse(body.not_before) }),
      ...(body.expires_on === undefined ? {} : { expiresAt: Date.parse(body.expires_on) }),
    };
    const { accountId, grantId } = caller;
    const origin = grantId === undefined ? {} : { grantId };
    // In this order a token that opens anything is always in the account's list, and so can be revoked.
    const entry = { id, name: body.name, permissions, lastFour, ...validity, ...origin };
    const created = await actors.call(account, accountId, "createToken", entry);
    const issued = { accountId, permissions, secretHash, ...validity, ...origin };
    await actors.call(apiToken, id, "issue", issued);
    return { result: { ...wireToken(created, accountId), value: text } };
  }

  async function listTokens({ caller, query }: Asked<unknown, Listing>) {
    const { tokens } = await actors.call(account, caller.accountId, "listTokens", {});
    const { result, resultInfo } = pageOf(tokens, query);
    const isOver = await Promise.all(result.map(({ grantId }) => isGrantOver(grantId)));
    return {
      result: result.map((token, index) => wireToken(token, caller.accountId, isOver[index])),
      resultInfo,
    };
  }

  async function getToken({ caller, parameters }: Asked<z.output<typeof TokenPath>>) {
    const id = parameters.token_id;
    const token = await actors.call(account, caller.accountId, "getToken", { id });
    const isOver = await isGrantOver(token.grantId);
    return { result: wireToken(token, caller.accountId, isOver) };
  }

  async function deleteToken({ caller, parameters }: Asked<z.output<typeof TokenPath>>) {
    const id = parameters.token_id;
    // Another account's token must not be revoked, so ask first whether it is this one's.
    await actors.call(account, caller.accountId, "getToken", { id });
    await actors.call(apiToken, id, "revoke", {});
    await actors.call(account, caller.accountId, "removeToken", { id });
    return { result: { id } };
  }

  async function verifyToken({ caller }: Asked) {
    return { result: { id: caller.tokenId, status: "active" as const, ...wireValidity(caller) } };
  }

  async function isGrantOver(grantId: string | undefined): Promise<boolean> {
    if (grantId === undefined) return false;
    try {
      await actors.call(oauthGrant, grantId, "get", {});
      return false;
    } catch (error) {
      if (error instanceof ActorError && error.code === "not_found") return true;
      throw error;
    }
  }

  function wireToken(
    token: TokenEntry,
    accountId: string,
    isOver = false,
  ): z.input<typeof WireToken> {
    const expired = isOver || (token.expiresAt !== undefined && now() >= token.expiresAt);
    return {
      id: token.id,
      name: token.name,
      status: expired ? "expired" : "active",
      last_four: token.lastFour,
      issued_on: new Date(token.createdAt).toISOString(),
      ...wireValidity(token),
      policies: [
        {
          effect: "allow",
          permission_groups: token.permissions.map(permissionGroup),
          resources: { [`account.${accountId}`]: "*" },
        },
      ],
    };
  }
}

function permissionGroup(id: Permission) {
  return { id, name: PERMISSIONS[id] };
}

function wireValidity({ notBeforeAt, expiresAt }: Partial<TokenEntry> | Caller) {
  return {
    ...(notBeforeAt === undefined ? {} : { not_before: new Date(notBeforeAt).toISOString() }),
    ...(expiresAt === undefined ? {} : { expires_on: new Date(expiresAt).toISOString() }),
  };
}

function requestedPermissions({ policies }: CreateToken): Permission[] {
  return [...new Set(policies.flatMap((policy) => policy.permission_groups.map(({ id }) => id)))];
}

/** Clients name the account as `account.<id>`, some with a prefix of their own before it. */
function checkResources({ policies }: CreateToken, accountId: string): void {
  const faults = policies.flatMap(({ resources = {} }, index) =>
    Object.keys(resources)
      .filter((resource) => !`.${resource}`.endsWith(`.account.${accountId}`))
      .map((resource) => {
        const pointer = `/policies/${index}/resources`;
        return {
          pointer,
          message: `Cannot accept ${pointer}: "${resource}" is not this account, expected "account.${accountId}"`,
        };
      }),
  );
  if (faults.length > 0) {
    throw new ActorError("invalid_request", "Cannot create token: see the faults", { faults });
  }
}

function checkExpiry({ expires_on: text }: CreateToken, now: number): void {
  if (text === undefined || Date.parse(text) > now) return;
  const pointer = "/expires_on";
  const message = `Cannot accept ${pointer}: "${text}" is past, expected a time after ${new Date(now).toISOString()}`;
  const faults = [{ pointer, message }];
  throw new ActorError("invalid_request", "Cannot create token: see the faults", { faults });
}

/** Nobody gives away what they do not hold. */
function checkHeld(permissions: readonly Permission[], caller: Caller): void {
  const missing = permissions.filter((permission) => !permits(caller.permissions, permission));
  if (missing.length === 0) return;
  const names = missing.map((permission) => `"${PERMISSIONS[permission]}"`).join(", ");
  throw new ActorError("forbidden", `Cannot create token: the caller's own token lacks ${names}`);
}
