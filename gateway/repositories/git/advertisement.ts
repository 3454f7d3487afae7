/**
 * Lists the refs that a repository offers, in the first response to a client (gitprotocol-http(5), "Discovering
 * References").
 */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ZERO_ID } from "../../../schemas/repositories/git-names.ts";
import { type CacheFiles, statOf } from "../cache/cache-files.ts";
import type { Manifest } from "../cache/manifest-reader.ts";
import { readInView } from "../cache/read-in-view.ts";
import { runGit } from "../process/git-process.ts";
import { FLUSH, pktLine } from "./pkt-line.ts";

const RECEIVE_CAPABILITIES = [
  "report-status",
  "report-status-v2",
  "delete-refs",
  "side-band-64k",
  "quiet",
  "atomic",
  "ofs-delta",
  "push-options",
  "object-format=sha1",
  "agent=trunkline",
].join(" ");

export const serviceLine = (service: string) =>
  Buffer.concat([pktLine(`# service=${service}\n`), FLUSH]);

/** Builds the advertisement of `git receive-pack` from the manifest, without a process. */
export function receiveAdvertisement({ refs, shallow }: Manifest, version: 0 | 1): Buffer {
  const names = [...refs.keys()].sort();
  const [first = "capabilities^{}", ...others] = names;
  return Buffer.concat([
    ...(version === 1 ? [pktLine("version 1\n")] : []),
    pktLine(`${refs.get(first) ?? ZERO_ID} ${first}\0${RECEIVE_CAPABILITIES}\n`),
    ...others.map((name) => pktLine(`${refs.get(name)} ${name}\n`)),
    ...shallow.map((id) => pktLine(`shallow ${id}\n`)),
    FLUSH,
  ]);
}

/**
 * Builds the advertisement of `git upload-pack` in protocol versions 0 and 1. `offered` is git's own advertisement of
 * another repository with one ref, and supplies the capabilities. Returns undefined if a ref is no branch or its name
 * is not ASCII: only git can resolve the targets of tags and order such names.
 */
export function fetchAdvertisement(
  { refs, head, shallow }: Manifest,
  offered: Buffer,
  version: 0 | 1,
): Buffer | undefined {
  const names = [...refs.keys()].sort();
  if (!names.every((name) => /^refs\/heads\/[\x21-\x7e]+$/.test(name))) return undefined;
  const capabilities = /\0([^\n]*)/.exec(offered.toString("latin1"))?.[1];
  if (capabilities === undefined) return undefined;
  const tip = refs.get(head);
  const lines = names.map((name) => `${refs.get(name)} ${name}`);
  if (tip !== undefined) lines.unshift(`${tip} HEAD`);
  const symref = tip === undefined ? "" : ` symref=HEAD:${head}`;
  const capable = (line: string, at: number) =>
    at === 0 ? `${line}\0${capabilities}${symref}` : line;
  return Buffer.concat([
    ...(version === 1 ? [pktLine("version 1\n")] : []),
    ...lines.map((line, at) => pktLine(`${capable(line, at)}\n`)),
    ...shallow.map((id) => pktLine(`shallow ${id}\n`)),
    FLUSH,
  ]);
}

/** The capabilities of this machine's `git upload-pack`, which are the same for every repository. */
export class FetchCapabilities {
  readonly #files: CacheFiles;
  readonly #known = new Map<0 | 2, Promise<Buffer>>();

  constructor(files: CacheFiles) {
    this.#files = files;
  }

  /**
   * Returns the capabilities in a protocol version, as git lists them for a repository with one ref. Those of version
   * 1 are the same as those of version 0.
   */
  get(version: 0 | 2): Promise<Buffer> {
    const known = this.#known.get(version);
    if (known) return known;
    const answer = this.#ask(version).catch((error: unknown) => {
      this.#known.delete(version);
      throw error;
    });
    this.#known.set(version, answer);
    return answer;
  }

  #ask(version: 0 | 2): Promise<Buffer> {
    const cwd = join(this.#files.root, "empty");
    const signal = AbortSignal.timeout(ANSWER_MS);
    const isIntact = async () => (await statOf(join(cwd, "HEAD"))) !== undefined;
    return readInView(
      async () => ({ isIntact }),
      () => this.#askIn(cwd, version, signal),
      { signal },
    );
  }

  async #askIn(cwd: string, version: 0 | 2, signal: AbortSignal): Promise<Buffer> {
    await mkdir(join(cwd, "refs", "tags"), { recursive: true });
    await mkdir(join(cwd, "objects"), { recursive: true });
    await writeFile(join(cwd, "HEAD"), "ref: refs/heads/main\n");
    // In version 0 git lists its capabilities only beside a ref, so this repository gets one.
    await writeFile(join(cwd, "refs", "tags", "empty"), `${EMPTY_TREE}\n`);
    const parameters = [
      "upload-pack",
      "--strict",
      "--stateless-rpc",
      "--http-backend-info-refs",
      ".",
    ];
    const { code, stdout, stderr } = await runGit(parameters, {
      cwd,
      environment: { GIT_PROTOCOL: `version=${version}` },
      signal,
    });
    if (code !== 0) throw new Error(`Cannot ask git what it can do: ${stderr}`);
    return stdout;
  }
}

/** The empty tree, an object that git knows even if the repository does not store it. */
const EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
const ANSWER_MS = 30_000;
