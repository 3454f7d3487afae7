/** The stored state of a namespace: a small value, and a row for the name of each repository. */
import { z } from "zod";
import type { DeepReadonly } from "../../../schemas/contract.ts";
import { RepoId } from "../../../schemas/repositories/git-names.ts";
import { RepoListing } from "../../../schemas/repositories/namespace.ts";
import { EpochMs } from "../../../schemas/values.ts";

/**
 * Limit for the name claims in a namespace's value. Storing a claim there takes a tenth of the time of storing a row.
 * At the limit, the next new claim moves the stored claims to rows.
 */
export const NAME_CLAIMS_MAX = 16;

/** Rows are keyed by the repository's name in lower case. */
export const NamespaceRow = RepoListing.extend({
  /** When the name was claimed. Absent after the repository has reported that it exists. */
  claimedAt: EpochMs.optional(),
});
export type NamespaceRow = DeepReadonly<z.infer<typeof NamespaceRow>>;

export const NamespaceState = z.object({
  accountId: z.string(),
  name: z.string(),
  /** 0 means that the namespace does not exist. */
  createdAt: EpochMs,
  updatedAt: EpochMs,
  /** The repositories that were removed last, so that a repeated removal still finds its repository. */
  removed: z.array(z.object({ name: z.string(), id: RepoId })),
  /** Claims of repositories that are being created. They become rows when the repository exists, or at the limit. */
  claims: z.record(z.string(), NamespaceRow).optional(),
});
export type NamespaceState = DeepReadonly<z.infer<typeof NamespaceState>>;
type NamespaceRows = ReadonlyMap<string, NamespaceRow>;

/** All names of the namespace's repositories and claims, from its value and its rows. Expired claims are included. */
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

  /**
   * Gives the name to the repository in `row`, or frees the name if `row` is null. Returns the changed state and
   * rows.
   */
  put(state: NamespaceState, name: string, row: NamespaceRow | null) {
    if (!Object.hasOwn(this.#claims, name)) return { state, rows: { [name]: row } };
    const { [name]: _, ...claims } = this.#claims;
    return { state: { ...state, claims }, ...(row && { rows: { [name]: row } }) };
  }

  /**
   * Stores the claim of a free name in the state. If the state already holds NAME_CLAIMS_MAX claims, moves those to
   * rows first.
   */
  claim(state: NamespaceState, name: string, row: NamespaceRow) {
    if (Object.keys(this.#claims).length < NAME_CLAIMS_MAX) {
      return { state: { ...state, claims: { ...this.#claims, [name]: row } } };
    }
    return { state: { ...state, claims: { [name]: row } }, rows: this.#claims };
  }
}
