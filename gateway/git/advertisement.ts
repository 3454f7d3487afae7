/** What a repository has to offer, as the first answer to a client (gitprotocol-http(5), "Discovering References"). */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ZERO_ID } from "../../schemas/git-names.ts";
import type { CacheFiles } from "./cache-files.ts";
import { runGit } from "./git-process.ts";
import type { Manifest } from "./manifest-reader.ts";
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

/** Of `git receive-pack`. Whoever pushes has asked what is there, so no process is needed. */
export function receiveAdvertisement({ refs }: Manifest, version: 0 | 1): Buffer {
  const names = [...refs.keys()].sort();
  const [first = "capabilities^{}", ...others] = names;
  return Buffer.concat([
    ...(version === 1 ? [pktLine("version 1\n")] : []),
    pktLine(`${refs.get(first) ?? ZERO_ID} ${first}\0${RECEIVE_CAPABILITIES}\n`),
    ...others.map((name) => pktLine(`${refs.get(name)} ${name}\n`)),
    FLUSH,
  ]);
}

/** Of `git upload-pack` in version 2: the same for every repository, as this machine's git has it. */
export class FetchCapabilities {
  readonly #files: CacheFiles;
  #known: Promise<Buffer> | undefined;

  constructor(files: CacheFiles) {
    this.#files = files;
  }

  get(): Promise<Buffer> {
    this.#known ??= this.#ask().catch((error: unknown) => {
      this.#known = undefined;
      throw error;
    });
    return this.#known;
  }

  async #ask(): Promise<Buffer> {
    const cwd = join(this.#files.root, "empty");
    await mkdir(join(cwd, "refs"), { recursive: true });
    await mkdir(join(cwd, "objects"), { recursive: true });
    await writeFile(join(cwd, "HEAD"), "ref: refs/heads/main\n");
    const parameters = [
      "upload-pack",
      "--strict",
      "--stateless-rpc",
      "--http-backend-info-refs",
      ".",
    ];
    const { code, stdout, stderr } = await runGit(parameters, {
      cwd,
      environment: { GIT_PROTOCOL: "version=2" },
      signal: AbortSignal.timeout(ANSWER_MS),
    });
    if (code !== 0) throw new Error(`Cannot ask git what it can do: ${stderr}`);
    return stdout;
  }
}

const ANSWER_MS = 30_000;
