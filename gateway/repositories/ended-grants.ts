/**
 * Revokes tokens of a repository whose OAuth grant has ended. Git refuses them anyway; revoked, they take no place in the
 * limit of the repository's tokens.
 */
import type { z } from "zod";
import type { ActorClient } from "../../actors/runtime/calls/actor-client.ts";
import type { Input } from "../../schemas/contract.ts";
import { ActorError } from "../../schemas/errors.ts";
import { oauthGrant } from "../../schemas/oauth/oauth-grant.ts";
import { REPO_TOKENS_MAX } from "../../schemas/repositories/limits.ts";
import { type RepoToken, repo } from "../../schemas/repositories/repo.ts";
import { callFew } from "../http/call-few.ts";

/** The actor lists this many tokens at a time. */
const PAGE_TOKENS = 100;

type Messages = (typeof repo)["messages"];
type Listed = z.output<Messages["listTokens"]["reply"]>["tokens"][number];

/** Mints a token. At the limit, it revokes tokens whose grants have ended, and tries once more. */
export async function mintWithRoom(
  actors: ActorClient,
  id: string,
  token: Input<Messages["mintToken"]>,
): Promise<RepoToken> {
  const mint = () => actors.call(repo, id, "mintToken", token);
  try {
    return await mint();
  } catch (error) {
    const isFull = error instanceof ActorError && error.code === "limit_reached";
    if (!isFull || !(await revokeAllEnded(actors, id))) throw error;
    return await mint();
  }
}

/** Lists tokens, after revoking those on the page whose grants have ended. */
export async function listWithEnded(
  actors: ActorClient,
  id: string,
  query: Input<Messages["listTokens"]>,
  signal: AbortSignal,
) {
  const list = () => actors.call(repo, id, "listTokens", query, { signal });
  const listed = await list();
  return (await revokeEnded(actors, id, listed.tokens)) ? list() : listed;
}

async function revokeAllEnded(actors: ActorClient, id: string): Promise<boolean> {
  const found: Listed[] = [];
  for (let offset = 0; offset < REPO_TOKENS_MAX; offset += PAGE_TOKENS) {
    const page = { state: "active", offset, limit: PAGE_TOKENS } as const;
    const { tokens } = await actors.call(repo, id, "listTokens", page);
    found.push(...tokens);
    if (tokens.length < PAGE_TOKENS) break;
  }
  return revokeEnded(actors, id, found);
}

/** Resolves to whether a token was revoked. */
async function revokeEnded(
  actors: ActorClient,
  id: string,
  tokens: readonly Listed[],
): Promise<boolean> {
  const active = tokens.filter(({ state }) => state === "active");
  const grantIds = [...new Set(active.flatMap(({ grantId }) => grantId ?? []))];
  const ended = new Set((await callFew(grantIds, (one) => endedGrant(actors, one))).flat());
  const over = active.filter(({ grantId }) => grantId !== undefined && ended.has(grantId));
  await callFew(over, (token) => actors.call(repo, id, "revokeToken", { id: token.id }));
  return over.length > 0;
}

/** Resolves to the id of the grant if it has ended, else to nothing. A grant that has ended never comes back. */
async function endedGrant(actors: ActorClient, grantId: string): Promise<string[]> {
  try {
    await actors.call(oauthGrant, grantId, "get", {});
    return [];
  } catch (error) {
    if (error instanceof ActorError && error.code === "not_found") return [grantId];
    throw error;
  }
}
