/** The stored state of a namespace: a small value, and a row for each name. */
import { z } from "zod";
import type { DeepReadonly } from "../../../schemas/contract.ts";
import { RepoId } from "../../../schemas/repositories/git-names.ts";
import { RepoListing } from "../../../schemas/repositories/namespace.ts";
import { EpochMs } from "../../../schemas/values.ts";

/**
 * Claims that a namespace keeps in its value, where one is stored in a tenth of the time a row takes; more are rows.
 */
export const NAME_CLAIMS_MAX = 16;

/** Rows are keyed by the name in lower case. */
export const NamespaceRow = RepoListing.extend({
  /** When the name was claimed, until the repository says that it is there. */
  claimedAt: EpochMs.optional(),
});
export type NamespaceRow = DeepReadonly<z.infer<typeof NamespaceRow>>;

export const NamespaceState = z.object({
  accountId: z.string(),
  name: z.string(),
  /** 0 means that the namespace does not exist. */
  createdAt: EpochMs,
  updatedAt: EpochMs,
  /** Repositories removed last, so that removing one again finds it. */
  removed: z.array(z.object({ name: z.string(), id: RepoId })),
  /** Rows of repositories that are being made. They become rows when the repositories exist. */
  claims: z.record(z.string(), NamespaceRow).optional(),
});
export type NamespaceState = DeepReadonly<z.infer<typeof NamespaceState>>;
type NamespaceRows = ReadonlyMap<string, NamespaceRow>;

/** All names that are taken. */
export class Names {
  readonly #claims: Readonly<Record<string, NamespaceRow>>;
  readonly #rows: NamespaceRows;

  constructor({ claims = {} }: NamespaceState, rows: NamespaceRows) {
    this.#claims = claims;
    this.#rows = rows;
  }

  get size(): number {
    return this.#rows.size + Object.keys(this.#claims).length;
  }

  get(name: string): NamespaceRow | undefined {
    return Object.hasOwn(this.#claims, name) ? this.#claims[name] : this.#rows.get(name);
  }

  *values(): Generator<NamespaceRow> {
    yield* Object.values(this.#claims);
    yield* this.#rows.values();
  }

  /** Returns the state and rows when a name gets this repository, or none. */
  put(state: NamespaceState, name: string, row: NamespaceRow | null) {
    if (!Object.hasOwn(this.#claims, name)) return { state, rows: { [name]: row } };
    const { [name]: _, ...claims } = this.#claims;
    return { state: { ...state, claims }, ...(row && { rows: { [name]: row } }) };
  }

  /** Claims move to rows where there are too many of them. */
  claim(state: NamespaceState, name: string, row: NamespaceRow) {
    if (this.#rows.has(name)) return { state, rows: { [name]: row } };
    const others = Object.keys(this.#claims).filter((other) => other !== name);
    if (others.length < NAME_CLAIMS_MAX) {
      return { state: { ...state, claims: { ...this.#claims, [name]: row } } };
    }
    return { state: { ...state, claims: { [name]: row } }, rows: this.#claims };
  }
}
