/** Brings a public repository here: fetched by git from one checked address, then taken in as a push is. */
import { mkdir, writeFile } from "node:fs/promises";
import { isIPv6 } from "node:net";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import type { ActorClient } from "../../actors/runtime/actor-client.ts";
import { IMPORT_MS_MAX } from "../../schemas/artifacts-limits.ts";
import { ActorError } from "../../schemas/errors.ts";
import { REFS_MAX, REPO_BYTES_MAX } from "../../schemas/git-limits.ts";
import { refNameFault, ZERO_ID } from "../../schemas/git-names.ts";
import { type RepoAddress, type RepoOrigin, repo as repoContract } from "../../schemas/repo.ts";
import { removeAll } from "./cache-files.ts";
import { commitPush } from "./commit-push.ts";
import type { GitParts, OpenedRepo } from "./git-parts.ts";
import { runGit, startGit } from "./git-process.ts";
import { inspectPack } from "./inspect-pack.ts";
import { PktReader } from "./pkt-line.ts";
import { quarantinePack } from "./quarantine.ts";

export interface ImportParts extends GitParts {
  /** All addresses of a host, each of which may be dialled; rejects where one may not. */
  resolve(host: string, signal: AbortSignal): Promise<readonly string[]>;
  /** Whose certificates are believed besides those of the system's. */
  authorities?: string | undefined;
}

interface Remote {
  /** Where HEAD leads to. */
  head: string | undefined;
  refs: Map<string, string>;
}

const SETTINGS = {
  "http.followRedirects": "false",
  "http.lowSpeedLimit": "1000",
  "http.lowSpeedTime": "60",
  "fetch.unpackLimit": "1",
  "fetch.recurseSubmodules": "false",
  "transfer.unpackLimit": "1",
  "protocol.version": "2",
};

/** Resolves when it is there; once more changes nothing. Rejects with ActorError, which says why it cannot be. */
export async function importRepo(
  parts: ImportParts,
  { id, address, url, branch }: RepoOrigin & { id: string; address: RepoAddress },
  left: AbortSignal,
): Promise<void> {
  const signal = AbortSignal.any([left, AbortSignal.timeout(IMPORT_MS_MAX)]);
  const manifest = await parts.manifests.read(id, address, signal);
  // A task may be run again when it was all but done.
  if (manifest.refs.size > 0) return;
  const repo = { id, accountId: address.accountId, address, manifest };
  const folder = parts.cache.files.temporary("import");
  const leave = await parts.slots.enter(id, signal);
  try {
    const settings = await settingsFor(parts, url, signal);
    await emptyRepository(folder);
    const git = (parameters: readonly string[]) =>
      runGit(parameters, {
        cwd: folder,
        environment: { GIT_DIR: ".", GIT_ALLOW_PROTOCOL: "https" },
        config: settings,
        signal,
      });
    const remote = await lookAt(git, url);
    const wanted = wantedRefs(remote, branch);
    if (wanted.size === 0) return;
    const specs = [...wanted.keys()].map((ref) => `+${ref}:${ref}`).join("\n");
    const fetched = await runGit(
      ["fetch", "-q", "--no-tags", "--no-write-fetch-head", "--stdin", "--", url],
      {
        cwd: folder,
        environment: { GIT_DIR: ".", GIT_ALLOW_PROTOCOL: "https" },
        config: settings,
        input: `${specs}\n`,
        signal,
      },
    );
    if (fetched.code !== 0) throw failed(fetched.stderr, url);
    const refs = await listRefs(git);
    await takeIn(parts, repo, { folder, refs, signal });
    const head = branch === null ? remote.head : `refs/heads/${branch}`;
    if (head !== undefined && refs.has(head)) await setHead(parts.actors, id, head);
  } finally {
    leave();
    await removeAll(folder);
  }
}

/** The address is looked up and checked here, and git is told to dial that one. */
async function settingsFor(
  { resolve, authorities }: ImportParts,
  text: string,
  signal: AbortSignal,
) {
  const url = new URL(text);
  const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
  const [address] = await resolve(host, signal);
  if (address === undefined) throw new ActorError("name_not_resolved", `Cannot find "${host}"`);
  const shown = isIPv6(address) ? `[${address}]` : address;
  return {
    ...SETTINGS,
    "http.curloptResolve": `${url.hostname}:${url.port || 443}:${shown}`,
    ...(authorities !== undefined && { "http.sslCAInfo": authorities }),
  };
}

async function emptyRepository(folder: string): Promise<void> {
  await mkdir(join(folder, "objects", "pack"), { recursive: true });
  await mkdir(join(folder, "refs"), { recursive: true });
  await writeFile(join(folder, "HEAD"), "ref: refs/heads/none-of-those\n");
}

type Git = (parameters: readonly string[]) => ReturnType<typeof runGit>;

async function lookAt(git: Git, url: string): Promise<Remote> {
  const { code, stdout, stderr } = await git(["ls-remote", "--symref", "--", url]);
  if (code !== 0) throw failed(stderr, url);
  const refs = new Map<string, string>();
  let head: string | undefined;
  for (const line of stdout.toString("utf8").split("\n")) {
    const [value = "", name = ""] = line.split("\t");
    if (name === "HEAD" && value.startsWith("ref: ")) head = value.slice("ref: ".length);
    else if (/^[0-9a-f]{40}$/.test(value) && !name.endsWith("^{}")) refs.set(name, value);
  }
  return { head, refs };
}

/** What is no branch, tag or note is of use to its host alone. */
function wantedRefs({ refs }: Remote, branch: string | null): Map<string, string> {
  if (branch !== null) {
    const ref = `refs/heads/${branch}`;
    const value = refs.get(ref);
    if (value === undefined) {
      throw new ActorError("not_found", `Cannot import: there is no branch "${branch}"`);
    }
    return new Map([[ref, value]]);
  }
  const wanted = new Map([...refs].filter(([ref]) => refNameFault(ref) === undefined));
  if (wanted.size > REFS_MAX) {
    const text = `Cannot import: it has ${wanted.size} refs, past ${REFS_MAX}`;
    throw new ActorError("limit_reached", text);
  }
  return wanted;
}

async function listRefs(git: Git): Promise<Map<string, string>> {
  const { code, stdout, stderr } = await git(["for-each-ref", "--format=%(objectname) %(refname)"]);
  if (code !== 0) throw new Error(`Cannot list refs of an import: ${stderr}`);
  const lines = stdout.toString("utf8").split("\n").filter(Boolean);
  return new Map(lines.map((line) => [line.slice(41), line.slice(0, 40)]));
}

/** As a push of all there is: checked by git, measured, stored, and then decided. */
async function takeIn(
  parts: ImportParts,
  repo: OpenedRepo,
  { folder, refs, signal }: { folder: string; refs: Map<string, string>; signal: AbortSignal },
): Promise<void> {
  await using view = await parts.cache.open(repo, repo.manifest, signal);
  const packing = startGit(["pack-objects", "--all", "--stdout", "--delta-base-offset", "-q"], {
    cwd: folder,
    environment: { GIT_DIR: "." },
    signal,
  });
  packing.stdin.end();
  // At once: what a process has said when it ends, and nobody listens to yet, is lost.
  const reader = new PktReader(packing.stdout.pipe(new PassThrough()));
  await using taken = await quarantinePack(parts.cache.files, view, reader, {
    room: REPO_BYTES_MAX,
    signal,
  });
  if (taken.fault !== undefined || !taken.files) {
    throw new ActorError("conflict", `Cannot import: git refuses it: ${taken.fault}`);
  }
  const tips = new Set(refs.values());
  const { fault, types } = await inspectPack(taken.files, taken, tips, signal);
  if (fault !== undefined) throw new ActorError("conflict", `Cannot import: ${fault}`);
  const pack = await parts.packs.put(repo.accountId, taken.files, signal);
  const commands = [...refs]
    .filter(([ref, value]) => !ref.startsWith("refs/heads/") || types.get(value) === "commit")
    .map(([ref, value]) => ({ old: ZERO_ID, value, ref }));
  const faults = await commitPush(parts.actors, repo.id, {
    commands,
    atomic: true,
    generation: repo.manifest.generation,
    forward: [],
    packs: [pack],
  });
  const refused = faults.find((text) => text !== undefined);
  if (refused !== undefined) throw new ActorError("conflict", `Cannot import: ${refused}`);
  await parts.cache.adopt(repo.accountId, pack, taken.files).catch(() => {});
}

async function setHead(actors: ActorClient, id: string, head: string): Promise<void> {
  const defaultBranch = head.slice("refs/heads/".length);
  if (refNameFault(head) !== undefined || !head.startsWith("refs/heads/")) return;
  await actors.call(repoContract, id, "configure", { defaultBranch });
}

/** What git says last, without what only its own user could answer. */
function failed(stderr: string, url: string): ActorError {
  if (/could not read Username|Authentication failed|error: 40[13]/.test(stderr)) {
    const text = `Repository "${url}" requires authentication. Only public repositories can be imported.`;
    return new ActorError("remote_auth_required", text);
  }
  const said = stderr.split("\n").filter((line) => /^(fatal|error): /.test(line));
  const last = said.at(-1)?.replace(/^(fatal|error): /, "") ?? "git could not fetch it";
  return new ActorError("upstream_unavailable", `Cannot import: ${last.slice(0, 300)}`);
}
