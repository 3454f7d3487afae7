/** Tokens of repositories: minted, listed, revoked. They open a repository for git, and nothing here. */
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
import { type Asked, defineRoute, type Route } from "../../http/route.ts";
import type { Repositories } from "../repositories.ts";
import { addressOf, NAMESPACE, REPO, timeOf, wireToken } from "./artifacts-shapes.ts";
import { artifactsWording } from "./artifacts-wording.ts";

export function artifactTokenRoutes(repositories: Repositories): Route[] {
  const shared = { tag: "Repository tokens", wording: artifactsWording };
  return [
    defineRoute({
      ...shared,
      method: "get",
      path: `${REPO}/tokens`,
      id: "listRepoTokens",
      summary: "A repository's tokens without what opens it, newest first",
      permissions: ["artifacts.read"],
      parameters: RepoPath,
      query: RepoTokensQuery,
      answer: { result: WireRepoToken.array(), paged: "numbers" },
      handle: list,
    }),
    defineRoute({
      ...shared,
      method: "post",
      path: `${NAMESPACE}/tokens`,
      id: "mintRepoToken",
      summary: "Make a token with which git reads, or reads and writes, one repository",
      permissions: ["artifacts.write"],
      parameters: NamespacePath,
      query: nothing,
      body: { schema: MintRepoToken, bytesMax: JSON_BODY_BYTES_MAX },
      refusals: ["limit_reached"],
      answer: { result: MintedRepoToken, status: 201 },
      handle: mint,
    }),
    defineRoute({
      ...shared,
      method: "delete",
      path: `${NAMESPACE}/tokens/{token_id}`,
      id: "revokeRepoToken",
      summary: "Revoke a token, at once and for good",
      permissions: ["artifacts.write"],
      parameters: RepoTokenPath,
      query: nothing,
      answer: { result: RevokedRepoToken },
      handle: revoke,
    }),
  ];

  async function list({ parameters, query, signal }: Asked<RepoPath, RepoTokensQuery>) {
    const { state, page, per_page } = query;
    const { tokens, total } = await repositories.listTokens(
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
  }

  async function mint({
    parameters,
    body,
    signal,
  }: Asked<z.output<typeof NamespacePath>, unknown, MintRepoToken>) {
    const address = addressOf({ ...parameters, name: body.repo });
    const asked = { scope: body.scope, ttlS: body.ttl };
    const { id, plaintext, scope, expiresAt } = await repositories.mintToken(
      address,
      asked,
      signal,
    );
    return { result: { id, plaintext, scope, expires_at: timeOf(expiresAt) } };
  }

  async function revoke({ parameters, signal }: Asked<z.output<typeof RepoTokenPath>>) {
    const { account_id, namespace, token_id } = parameters;
    await repositories.revokeToken(account_id, namespace, token_id, signal);
    return { result: { id: token_id } };
  }
}
