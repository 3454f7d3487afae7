/** REST routes that mint, list and revoke the tokens of repositories. Such a token opens a repository for git only. */
import type { z } from "zod";
import { nothing } from "../../../schemas/http/nothing.ts";
import { JSON_BODY_BYTES_MAX } from "../../../schemas/limits.ts";
import {
  MintRepoToken,
  NamespacePath,
  RepoPath,
  RepoTokenPath,
  RepoTokensQuery,
} from "../../../schemas/repositories/http/artifacts.ts";
import {
  MintedRepoToken,
  RevokedRepoToken,
  WireRepoToken,
} from "../../../schemas/repositories/http/artifacts-answers.ts";
import { defineRoute, type Route, type RouteRequest, type Tag } from "../../http/route.ts";
import type { Repositories } from "../repositories.ts";
import { addressOf, NAMESPACE, REPO, timeOf, wireToken } from "./artifacts-shapes.ts";
import { artifactsWording } from "./artifacts-wording.ts";
import { tokenBounds } from "./token-bounds.ts";

const REPOSITORY_TOKENS_TAG: Tag = {
  name: "Repository tokens",
  description: "Tokens that open one repository to git clients",
};

const LIST_REPO_TOKENS = {
  tag: REPOSITORY_TOKENS_TAG,
  wording: artifactsWording,
  method: "get",
  path: `${REPO}/tokens`,
  id: "listRepoTokens",
  summary: "List a repository's tokens without their secrets, newest first",
  permissions: ["artifacts.read"],
  parameters: RepoPath,
  query: RepoTokensQuery,
  answer: { result: WireRepoToken.array(), paged: "numbers" },
} as const;

const MINT_REPO_TOKEN = {
  tag: REPOSITORY_TOKENS_TAG,
  wording: artifactsWording,
  method: "post",
  path: `${NAMESPACE}/tokens`,
  id: "mintRepoToken",
  summary: "Create a token with which git can read, or read and write, one repository",
  permissions: ["artifacts.write"],
  parameters: NamespacePath,
  query: nothing,
  body: { schema: MintRepoToken, bytesMax: JSON_BODY_BYTES_MAX },
  refusals: ["limit_reached"],
  answer: { result: MintedRepoToken, status: 201 },
} as const;

const REVOKE_REPO_TOKEN = {
  tag: REPOSITORY_TOKENS_TAG,
  wording: artifactsWording,
  method: "delete",
  path: `${NAMESPACE}/tokens/{token_id}`,
  id: "revokeRepoToken",
  isRevocation: true,
  summary: "Revoke a token at once; this cannot be undone",
  permissions: ["artifacts.write"],
  parameters: RepoTokenPath,
  query: nothing,
  answer: { result: RevokedRepoToken },
} as const;

/** The REST routes of repository tokens. */
export function artifactTokenRoutes(repositories: Repositories): Route[] {
  return [
    defineRoute({ ...LIST_REPO_TOKENS, handle: list(repositories) }),
    defineRoute({ ...MINT_REPO_TOKEN, handle: mint(repositories) }),
    defineRoute({ ...REVOKE_REPO_TOKEN, handle: revoke(repositories) }),
  ];
}

function list(repositories: Repositories) {
  return async ({ parameters, query, signal }: RouteRequest<RepoPath, RepoTokensQuery>) => {
    const { state, page, per_page } = query;
    const { tokens, total } = await repositories.tokens.list(
      addressOf(parameters),
      { state, offset: (page - 1) * per_page, limit: per_page },
      signal,
    );
    return {
      result: tokens.map(wireToken),
      resultInfo: {
        page,
        per_page,
        total_pages: Math.ceil(total / per_page),
        count: tokens.length,
        total_count: total,
      },
    };
  };
}

function mint(repositories: Repositories) {
  return async ({
    parameters,
    body,
    caller,
    signal,
  }: RouteRequest<z.output<typeof NamespacePath>, unknown, MintRepoToken>) => {
    const address = addressOf({ ...parameters, name: body.repo });
    const bounds = tokenBounds(caller, repositories.parts.now(), body.ttl);
    const token = { scope: body.scope, ...bounds };
    const { id, plaintext, scope, expiresAt } = await repositories.tokens.mint(
      address,
      token,
      signal,
    );
    return { result: { id, plaintext, scope, expires_at: timeOf(expiresAt) } };
  };
}

function revoke(repositories: Repositories) {
  return async ({ parameters, signal }: RouteRequest<z.output<typeof RepoTokenPath>>) => {
    const { account_id, namespace, token_id } = parameters;
    await repositories.tokens.revoke(account_id, namespace, token_id, signal);
    return { result: { id: token_id } };
  };
}
