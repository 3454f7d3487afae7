/** Finds tokens of a repository whose OAuth grant has ended. Git refuses these tokens, although they are not revoked. */
import type { z } from "zod";
import type { ActorClient } from "../../actors/runtime/calls/actor-client.ts";
import type { Input } from "../../schemas/contract.ts";
import { ActorError } from "../../schemas/errors.ts";
import { REPO_TOKENS_MAX } from "../../schemas/repositories/limits.ts";
import { type RepoToken, repo } from "../../schemas/repositories/repo.ts";
import { hasGrantEnded } from "../account/has-grant-ended.ts";
import { callFew } from "../http/call-few.ts";

/** The actor lists this many tokens at a time. */
const PAGE_TOKENS = 100;
/** Time limit for the calls of all grants in one request. */
const GRANTS_MS_MAX = 10_000;

type Messages = (typeof repo)["messages"];
type Listed = z.output<Messages["listTokens"]["reply"]>;

/** A repository: its id and its account. */
interface Owned {
  id: string;
  accountId: string;
}

/**
 * Mints a token. At the limit, it revokes tokens whose grants have ended, and tries once more. Revoked tokens do not
 * count against the repository's limit.
 */
export async function mintWithRoom(
  actors: ActorClient,
  owned: Owned,
  token: Input<Messages["mintToken"]>,
): Promise<RepoToken> {
  const mint = () => actors.call(repo, owned.id, "mintToken", token);
  try {
    return await mint();
  } catch (error) {
    const isFull = error instanceof ActorError && error.code === "limit_reached";
    if (!isFull || !(await revokeSomeEnded(actors, owned))) throw error;
    return await mint();
  }
}

/**
 * Lists tokens. Those whose grants have ended have the state `revoked`, also in a list of active tokens: the repository
 * counts them there until it revokes them.
 */
export async function listWithEnded(
  actors: ActorClient,
  { id, accountId }: Owned,
  query: Input<Messages["listTokens"]>,
  signal: AbortSignal,
): Promise<Listed> {
  const { tokens, total } = await actors.call(repo, id, "listTokens", query, { signal });
  const ended = new Set(
    await endedOf(actors, accountId, tokens, AbortSignal.timeout(GRANTS_MS_MAX)),
  );
  const shown = tokens.map((token) =>
    ended.has(token) ? { ...token, state: "revoked" as const } : token,
  );
  return { tokens: shown, total };
}

/** Revokes the ended tokens of the first page that has any. Resolves to whether there is such a page. */
async function revokeSomeEnded(actors: ActorClient, { id, accountId }: Owned): Promise<boolean> {
  const signal = AbortSignal.timeout(GRANTS_MS_MAX);
  for (let offset = 0; offset < REPO_TOKENS_MAX; offset += PAGE_TOKENS) {
    const page = { state: "active", offset, limit: PAGE_TOKENS } as const;
    const { tokens } = await actors.call(repo, id, "listTokens", page);
    const ended = await endedOf(actors, accountId, tokens, signal);
    await callFew(ended, (token) => actors.call(repo, id, "revokeToken", { id: token.id }));
    if (ended.length > 0) return true;
    if (tokens.length < PAGE_TOKENS) break;
  }
  return false;
}

/** Resolves to the active tokens among these whose grants have ended. */
async function endedOf(
  actors: ActorClient,
  accountId: string,
  tokens: Listed["tokens"],
  signal: AbortSignal,
): Promise<Listed["tokens"]> {
  const active = tokens.filter(({ state }) => state === "active");
  const grantIds = [...new Set(active.flatMap(({ grantId }) => grantId ?? []))];
  const find = (grantId: string) => endedGrant(actors, { grantId, accountId }, signal);
  const ended = new Set((await callFew(grantIds, find)).flat());
  return active.filter(({ grantId }) => grantId !== undefined && ended.has(grantId));
}

/**
 * Resolves to the id of the grant if it has ended, else to nothing. A grant that has ended never comes back. A grant
 * counts as active if it cannot be reached in time.
 */
async function endedGrant(
  actors: ActorClient,
  grant: { grantId: string; accountId: string },
  signal: AbortSignal,
): Promise<string[]> {
  try {
    return (await hasGrantEnded(actors, grant, { signal })) ? [grant.grantId] : [];
  } catch (error) {
    if (!(error instanceof ActorError)) throw error;
    return [];
  }
}
