/** Keeps the manifests of repositories up to date: requests the changes since the last request, and merges them. */
import { createHash } from "node:crypto";
import type { ActorClient } from "../../../actors/runtime/calls/actor-client.ts";
import { REF_ROWS } from "../../../schemas/repositories/limits.ts";
import {
  type Pack,
  type RepoAddress,
  type RepoStatus,
  repo,
} from "../../../schemas/repositories/repo.ts";

/** Limit for the refs of all manifests in memory; they take some 50 MB. */
const GIT_CACHE_REFS_MAX = 250_000;

type Refs = Readonly<Record<string, string>>;

interface ManifestParts {
  version: number;
  generation: number;
  head: string;
  readOnly: boolean;
  status: RepoStatus;
  protectedRefs: readonly string[];
  shallow: readonly string[];
  treeDepth: number;
  bytes: number;
  rows: ReadonlyMap<number, Refs>;
  packs: ReadonlyMap<string, Pack>;
}

/** The state of a repository in one version. */
export class Manifest {
  readonly version: number;
  readonly generation: number;
  readonly head: string;
  readonly readOnly: boolean;
  readonly status: RepoStatus;
  readonly protectedRefs: readonly string[];
  /** Commits whose parents are not in the repository. */
  readonly shallow: readonly string[];
  /** The greatest depth that the directory tree can have. */
  readonly treeDepth: number;
  readonly bytes: number;
  readonly rows: ReadonlyMap<number, Refs>;
  readonly packs: ReadonlyMap<string, Pack>;
  #refs: ReadonlyMap<string, string> | undefined;
  #digest: string | undefined;

  constructor(parts: ManifestParts) {
    this.version = parts.version;
    this.generation = parts.generation;
    this.head = parts.head;
    this.readOnly = parts.readOnly;
    this.status = parts.status;
    this.protectedRefs = parts.protectedRefs;
    this.shallow = parts.shallow;
    this.treeDepth = parts.treeDepth;
    this.bytes = parts.bytes;
    this.rows = parts.rows;
    this.packs = parts.packs;
  }

  /** Object ids by the names of refs. */
  get refs(): ReadonlyMap<string, string> {
    this.#refs ??= new Map([...this.rows.values()].flatMap((refs) => Object.entries(refs)));
    return this.#refs;
  }

  /**
   * Identifies the refs, the default branch and the shallow commits. A version number does not: after the bus was set
   * back to an earlier state, it gives the same numbers to other changes.
   */
  get digest(): string {
    this.#digest ??= digestOf(this);
    return this.#digest;
  }
}

const DIGEST_CHARS = 32;
/** Digests of rows. Most rows stay the same object in the next version of a manifest. */
const rowDigests = new WeakMap<Refs, string>();

function digestOf({ head, shallow, rows }: Manifest): string {
  const hash = createHash("sha256").update(`${head}\n${shallow.join(" ")}\n`);
  for (const row of [...rows.keys()].sort((one, other) => one - other)) {
    const refs = rows.get(row) ?? {};
    const digest = rowDigests.get(refs) ?? digestOfRow(refs);
    rowDigests.set(refs, digest);
    hash.update(digest);
  }
  return hash.digest("hex").slice(0, DIGEST_CHARS);
}

/** Returns nothing for a row without refs, because such a row may also be absent. */
function digestOfRow(refs: Refs): string {
  const lines = Object.keys(refs)
    .sort()
    .map((name) => `${refs[name]} ${name}\n`);
  return lines.length === 0 ? "" : createHash("sha256").update(lines.join("")).digest("hex");
}

const NOTHING: ManifestParts = {
  version: 0,
  generation: 0,
  head: "",
  readOnly: false,
  status: "ready",
  protectedRefs: [],
  shallow: [],
  treeDepth: 0,
  bytes: 0,
  rows: new Map(),
  packs: new Map(),
};

export class ManifestReader {
  readonly #actors: ActorClient;
  readonly #refsMax: number;
  /** Manifests by repository id, the least recently used first. */
  readonly #known = new Map<string, { manifest: Manifest; refs: number }>();
  #refs = 0;

  constructor(actors: ActorClient, { refsMax = GIT_CACHE_REFS_MAX } = {}) {
    this.#actors = actors;
    this.#refsMax = refsMax;
  }

  /** Returns the current manifest, with every change that was acknowledged before this call. */
  async read(id: string, address: RepoAddress, signal: AbortSignal): Promise<Manifest> {
    const known = this.#known.get(id)?.manifest;
    let parts: ManifestParts = known ?? NOTHING;
    let after = known ? { version: known.version, row: ROW_PAST_ALL } : { version: 0, row: -1 };
    for (;;) {
      const input = { address, after, packsAfter: parts.version };
      const answer = await this.#actors.call(repo, id, "manifest", input, { signal });
      if (answer.done && known && answer.version === known.version) return this.#keep(id, known);
      const rows = new Map(parts.rows);
      for (const { row, refs } of answer.rows) rows.set(row, refs);
      const packs = new Map(answer.packsWhole ? [] : parts.packs);
      for (const pack of answer.packs) packs.set(pack.sha256, pack);
      // Until all pages have arrived, `version` stays the version up to which all packs are known.
      parts = { ...answer, version: answer.done ? answer.version : parts.version, rows, packs };
      if (answer.done) return this.#keep(id, new Manifest(parts));
      after = answer.cursor;
    }
  }

  forget(id: string): void {
    this.#refs -= this.#known.get(id)?.refs ?? 0;
    this.#known.delete(id);
  }

  #keep(id: string, manifest: Manifest): Manifest {
    const earlier = this.#known.get(id);
    const isNewer = !earlier || earlier.manifest.version < manifest.version;
    const newest = isNewer ? { manifest, refs: countRefs(manifest) } : earlier;
    this.forget(id);
    this.#known.set(id, newest);
    this.#refs += newest.refs;
    for (const oldest of this.#known.keys()) {
      if (this.#refs <= this.#refsMax || oldest === id) break;
      this.forget(oldest);
    }
    return manifest;
  }
}

/** Counts the refs of a manifest plus one, so that many manifests of empty repositories reach the limit too. */
function countRefs({ rows }: Manifest): number {
  let refs = 1;
  for (const row of rows.values()) refs += Object.keys(row).length;
  return refs;
}

/** A row number for cursors: after every row of a version. */
const ROW_PAST_ALL = REF_ROWS;
