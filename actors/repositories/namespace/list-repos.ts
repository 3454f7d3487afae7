/** Returns one page of a namespace's repositories, in the requested order. */

import { folded } from "../../../schemas/repositories/git-names.ts";
import type { RepoListing, RepoSort } from "../../../schemas/repositories/namespace.ts";
import type { NamespaceRow } from "./namespace-state.ts";

type Place = { value: string | number; id: string };

interface ListQuery {
  limit: number;
  search?: string | undefined;
  sort: RepoSort;
  direction: "asc" | "desc";
  after?: Place | undefined;
}

/** Reads each row once, and never sorts more rows than one page holds. */
export function listRepos(rows: Iterable<NamespaceRow>, query: ListQuery) {
  const { limit, sort, direction, after } = query;
  const search = folded(query.search ?? "");
  const sign = direction === "asc" ? 1 : -1;
  const page: { place: Place; row: NamespaceRow }[] = [];
  let [total, beyond] = [0, 0];
  for (const row of rows) {
    if (!folded(row.name).includes(search)) continue;
    total += 1;
    const place = placeOf(row, sort);
    if (after && sign * compare(place, after) <= 0) continue;
    beyond += 1;
    const last = page.at(-1);
    if (page.length === limit && last && sign * compare(place, last.place) > 0) continue;
    page.splice(indexFor(page, place, sign), 0, { place, row });
    if (page.length > limit) page.pop();
  }
  return { repos: page.map(({ row }): RepoListing => row), more: beyond > limit, total };
}

/**
 * Returns the position of a repository in the requested order. The next page begins after the position of the last
 * repository.
 */
export function placeOf(row: NamespaceRow, sort: RepoSort): Place {
  const { id } = row;
  switch (sort) {
    case "created_at":
      return { value: row.createdAt, id };
    case "updated_at":
      return { value: row.updatedAt, id };
    case "last_push_at":
      return { value: row.lastPushAt ?? 0, id };
    case "name":
      return { value: folded(row.name), id };
    default:
      return sort satisfies never;
  }
}

function indexFor(page: readonly { place: Place }[], place: Place, sign: number): number {
  let [low, high] = [0, page.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    const other = page[middle];
    if (other && sign * compare(other.place, place) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

function compare(one: Place, other: Place): number {
  if (one.value !== other.value) return one.value < other.value ? -1 : 1;
  if (one.id === other.id) return 0;
  return one.id < other.id ? -1 : 1;
}
