/** Converts repositories to the JSON of the REST API. */
import type { z } from "zod";
import { ActorError } from "../../../schemas/errors.ts";
import type { CursorInfo, ResultInfo } from "../../../schemas/http/envelope.ts";
import type { NamespacePath, RepoPath } from "../../../schemas/repositories/http/artifacts.ts";
import type {
  WireNamespace,
  WireRepo,
  WireRepoDetails,
  WireRepoToken,
} from "../../../schemas/repositories/http/artifacts-answers.ts";
import type { RepoListing } from "../../../schemas/repositories/namespace.ts";
import type { ListedNamespace } from "../../../schemas/repositories/namespace-list.ts";
import type { RepoAddress, RepoEntry, RepoToken } from "../../../schemas/repositories/repo.ts";

export const NAMESPACES = "/accounts/{account_id}/artifacts/namespaces";
export const STORED = "/accounts/{account_id}/artifacts/usage";
export const NAMESPACE = `${NAMESPACES}/{namespace}`;
export const REPOS = `${NAMESPACE}/repos`;
export const REPO = `${REPOS}/{name}`;

export const timeOf = (ms: number) => new Date(ms).toISOString();
const maybeTime = (ms: number | null) => (ms === null ? null : timeOf(ms));

export const addressOf = ({ account_id, namespace, name }: RepoPath): RepoAddress => ({
  accountId: account_id,
  namespace,
  name,
});

export function wireNamespace(entry: ListedNamespace): z.input<typeof WireNamespace> {
  return {
    namespace: entry.name,
    jurisdiction: "unrestricted",
    repo_count: entry.repoCount,
    created_at: timeOf(entry.createdAt),
    updated_at: timeOf(entry.updatedAt),
  };
}

export function wireRepo(entry: RepoListing, remote: string): z.input<typeof WireRepo> {
  return {
    id: entry.id,
    name: entry.name,
    description: entry.description,
    default_branch: entry.defaultBranch,
    created_at: timeOf(entry.createdAt),
    updated_at: timeOf(entry.updatedAt),
    last_push_at: maybeTime(entry.lastPushAt),
    source: entry.source,
    read_only: entry.readOnly,
    remote,
    status: entry.status,
    status_reason: entry.failure ?? null,
  };
}

export function wireDetails(entry: RepoEntry, remote: string): z.input<typeof WireRepoDetails> {
  return {
    ...wireRepo(entry, remote),
    status_progress: entry.progress ?? null,
    protected_refs: entry.protectedRefs,
  };
}

export function wireToken(
  token: RepoToken & Pick<z.input<typeof WireRepoToken>, "state">,
): z.input<typeof WireRepoToken> {
  return {
    id: token.id,
    scope: token.scope,
    state: token.state,
    created_at: timeOf(token.createdAt),
    expires_at: timeOf(token.expiresAt),
    last_used_at: maybeTime(token.lastUsedAt),
  };
}

// --- Pages ---

/** The position at which a list continues. It is valid only for the same path and query. */
export interface ListCursor<A> {
  question: string;
  /** The last entry that the client has received. */
  after: A;
  /** Number of the page that begins at this position. */
  page: number;
}

export const questionOf = (
  path: z.output<typeof NamespacePath> | { account_id: string },
  ...parts: string[]
) => JSON.stringify([...Object.values(path), ...parts]);

export const writeCursor = (cursor: ListCursor<unknown>) =>
  Buffer.from(JSON.stringify([cursor.question, cursor.after, cursor.page])).toString("base64url");

/**
 * Reads a cursor. Returns undefined if the request has no cursor. Throws `invalid_request` for a cursor of another
 * query.
 */
export function readCursor<S extends z.ZodType>(
  text: string | undefined,
  question: string,
  after: S,
): ListCursor<z.output<S>> | undefined {
  if (text === undefined) return undefined;
  try {
    const [asked, last, page] = JSON.parse(Buffer.from(text, "base64url").toString("utf8"));
    const parsed = after.safeParse(last);
    if (asked === question && parsed.success && Number.isSafeInteger(page) && page > 1) {
      return { question, after: parsed.data, page };
    }
  } catch {
    // Not a cursor of ours: refused below.
  }
  const pointer = "/query/cursor";
  const message = `Cannot accept ${pointer}: Unknown, expected the cursor of an answer to the same question`;
  const faults = [{ pointer, message }];
  throw new ActorError("invalid_request", "Cannot list: the cursor is not one of this list", {
    faults,
  });
}

/** Returns a cursor if more entries follow. On the last page, returns the total numbers of pages and entries. */
export function pageInfo(
  { limit, cursor }: { limit: number; cursor: ListCursor<unknown> | undefined },
  {
    count,
    total,
    next,
  }: { count: number; total: number; next: Omit<ListCursor<unknown>, "page"> | undefined },
): ResultInfo | CursorInfo {
  const page = cursor?.page ?? 1;
  if (next) return { cursor: writeCursor({ ...next, page: page + 1 }), per_page: limit, count };
  const total_pages = Math.ceil(total / limit);
  return { page, per_page: limit, total_pages, count, total_count: total };
}
