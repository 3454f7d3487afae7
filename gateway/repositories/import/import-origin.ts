/**
 * Runs git against the origin of an import: checks addresses, follows redirects, and repeats commands after a 5xx
 * response.
 */
import { writeFile } from "node:fs/promises";
import { isIPv6 } from "node:net";
import { resolve as absolute, join } from "node:path";
import { ActorError } from "../../../schemas/errors.ts";
import { IMPORT_URL_RULE, importUrlOf } from "../../../schemas/repositories/import-url.ts";
import {
  IMPORT_REDIRECTS_MAX,
  IMPORT_RETRY_PAUSES_MS,
  IMPORT_URL_CHARS_MAX,
} from "../../../schemas/repositories/limits.ts";
import { type GitExit, runGit } from "../process/git-process.ts";
import type { ImportFetch } from "./import-lfs.ts";
import { retried } from "./retried.ts";

/**
 * Limit for the bytes of an origin's list of refs. Half a million refs fit; most of them may be internal refs of the
 * origin's host, which are not imported.
 */
const IMPORT_REFS_BYTES_MAX = 32 * 1024 * 1024;

export interface OriginParts {
  /**
   * Resolves to all IP addresses of a host. Rejects if one of them or the port is not allowed. The lookup counts for
   * this account.
   */
  resolve(
    target: { host: string; port: number },
    signal: AbortSignal,
    account?: string,
  ): Promise<readonly string[]>;
  /** All certificate authorities to trust, in PEM; defaults to the system's. */
  authorities?: string | undefined;
  /** The HTTP client that follows redirects in place of git, and that fetches large files. */
  fetch: ImportFetch;
  /** Pauses before a request is repeated after a 5xx. */
  retryPausesMs?: readonly number[] | undefined;
}

export interface Origin {
  /** The address after redirects. */
  url: string;
  /** The ref that HEAD points to. */
  head: string | undefined;
  refs: Map<string, string>;
  git: OriginGit;
}

type OriginGit = (
  parameters: readonly string[],
  options?: Partial<Parameters<typeof runGit>[1]>,
) => Promise<GitExit & { stdout: Buffer }>;

const SETTINGS = {
  "http.followRedirects": "false",
  "http.lowSpeedLimit": "1000",
  "http.lowSpeedTime": "60",
  "fetch.unpackLimit": "1",
  "fetch.recurseSubmodules": "false",
  "transfer.unpackLimit": "1",
  "protocol.version": "2",
};

/** Opens the origin and lists its refs. The returned `git` runs in `folder` and connects to no other host. */
export async function openOrigin(
  parts: OriginParts,
  { folder, url }: { folder: string; url: string },
  signal: AbortSignal,
): Promise<Origin> {
  const ask = async (at: URL) => {
    const git = await gitFor(parts, { folder, url: at }, signal);
    // Git gets the address as the guard has read it, never the text of a client or of another server.
    const { href } = at;
    return { git, url: href, ...(await git(["ls-remote", "--symref", "--", href])) };
  };
  const start = checkedStart(url);
  const first = await ask(start);
  const isRedirected = first.code !== 0 && REDIRECTED.test(first.stderr);
  const response = isRedirected ? await ask(await followRedirects(parts, start, signal)) : first;
  if (response.code !== 0) throw originFault(response.stderr, response.url);
  return { url: response.url, git: response.git, ...readRefs(response.stdout) };
}

const REDIRECTED = /returned error: 30[12378]\b/;

/** Returns a function that runs git commands against the origin. It repeats a command after a 5xx response. */
async function gitFor(
  parts: OriginParts,
  { folder, url }: { folder: string; url: URL },
  signal: AbortSignal,
): Promise<OriginGit> {
  const config = await settingsFor(parts, { folder, url }, signal);
  const { retryPausesMs = IMPORT_RETRY_PAUSES_MS } = parts;
  return (parameters, options) => {
    const run = () =>
      runGit(parameters, {
        bytesMax: IMPORT_REFS_BYTES_MAX,
        cwd: folder,
        environment: { GIT_DIR: ".", GIT_ALLOW_PROTOCOL: "https" },
        config,
        signal,
        ...options,
      });
    const isToRepeat = ({ code, stderr }: GitExit) => code !== 0 && SERVER_ERROR.test(stderr);
    return retried(run, isToRepeat, { pausesMs: retryPausesMs, signal });
  };
}

const SERVER_ERROR = /returned error: 5\d\d\b|\bHTTP 5\d\d\b/;

/** Resolves the host, checks its address, and returns settings that make git connect to exactly this address. */
async function settingsFor(
  { resolve, authorities }: OriginParts,
  { folder, url }: { folder: string; url: URL },
  signal: AbortSignal,
) {
  const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
  const port = Number(url.port || 443);
  const [address] = await resolve({ host, port }, signal);
  if (address === undefined) throw new ActorError("name_not_resolved", `Cannot find "${host}"`);
  const trusted = absolute(join(folder, "authorities.pem"));
  if (authorities !== undefined) await writeFile(trusted, authorities);
  return {
    ...SETTINGS,
    ...pinTo(address, { host: url.hostname, port }),
    ...(authorities !== undefined && { "http.sslCAInfo": trusted }),
  };
}

/**
 * Returns settings that make git connect to this address, because a second look-up may give another one. `host` is in
 * the form of `URL.hostname`. The second pin holds for every host at this port, so it does not depend on how git reads
 * the host. curl has it since 7.64; older versions have the first pin.
 */
export function pinTo(address: string, { host, port }: { host: string; port: number }) {
  const to = `${port}:${isIPv6(address) ? `[${address}]` : address}`;
  // curl refuses a pin of an IPv6 address, which needs none.
  const ofHost = host.startsWith("[") ? [] : [`${host}:${to}`];
  return { "http.curloptResolve": [...ofHost, `*:${to}`] };
}

const FIRST_REQUEST = "/info/refs?service=git-upload-pack";

/** Follows the redirects of git's first request, as git does by default. The egress guard checks each address. */
async function followRedirects(
  { fetch }: OriginParts,
  { href: url }: URL,
  signal: AbortSignal,
): Promise<URL> {
  let at = `${url.replace(/\/+$/, "")}${FIRST_REQUEST}`;
  for (let redirects = 0; redirects <= IMPORT_REDIRECTS_MAX; redirects++) {
    const { status, headers, body } = await fetch(at, {
      headers: { Accept: "*/*", "Git-Protocol": "version=2", "User-Agent": "git/2" },
      bytesMax: IMPORT_REFS_BYTES_MAX,
      redirectsMax: 0,
      signal,
    });
    body.destroy();
    const location = status >= 300 && status < 400 ? headers.get("location") : null;
    if (location === null) return baseOf(at);
    at = checkedTarget(location, at);
  }
  throw new ActorError(
    "too_many_redirects",
    `Cannot import: "${url}" redirects more than ${IMPORT_REDIRECTS_MAX} times`,
  );
}

/** Parses the address of an import. The request was checked too, but an older version may have accepted more. */
function checkedStart(text: string): URL {
  const url = importUrlOf(text);
  if (url !== undefined) return url;
  throw new ActorError(
    "address_refused",
    `Cannot import from "${shown(text)}": url ${IMPORT_URL_RULE}`,
  );
}

function checkedTarget(location: string, from: string): string {
  const target = URL.parse(location, from);
  if (target !== null) target.hash = "";
  const url = target === null ? undefined : importUrlOf(target.href);
  if (url !== undefined && url.href.length <= IMPORT_URL_CHARS_MAX) return url.href;
  throw new ActorError(
    "address_refused",
    `Cannot import: a redirect leads to "${shown(location)}", and ${FOLLOWED}`,
  );
}

const FOLLOWED =
  "redirects are followed only to https addresses with an ordinary host name, without user and password";

/** Returns an address for an error, without its user and password. */
const shown = (address: string) => address.replace(/\/\/[^/]*@/, "//…@").slice(0, 300);

/**
 * Returns the repository's address: removes the path that git's first request appends. If a redirect dropped this
 * path, its target is not a repository.
 */
function baseOf(at: string): URL {
  if (at.endsWith(FIRST_REQUEST)) return new URL(at.slice(0, -FIRST_REQUEST.length));
  throw new ActorError(
    "upstream_unavailable",
    `Cannot import: a redirect leads to "${at.slice(0, 300)}", which is no address of a repository`,
  );
}

function readRefs(listed: Buffer): Pick<Origin, "head" | "refs"> {
  const refs = new Map<string, string>();
  let head: string | undefined;
  for (const line of listed.toString("utf8").split("\n")) {
    const [value = "", name = ""] = line.split("\t");
    if (name === "HEAD" && value.startsWith("ref: ")) head = value.slice("ref: ".length);
    else if (/^[0-9a-f]{40}$/.test(value) && !name.endsWith("^{}")) refs.set(name, value);
  }
  return { head, refs };
}

/**
 * Returns why git failed, from the last line of its errors. Lines that only a user of git at a terminal could use are
 * replaced.
 */
export function originFault(stderr: string, url: string): ActorError {
  // If a host requires credentials, git reports that it could not ask a user for them.
  const needsPassword = /could not read (?:Username|Password)|Authentication failed/.test(stderr);
  const status = /returned error: (40[13])|HTTP (40[13])/.exec(stderr);
  if (needsPassword || status) {
    const shown = status?.[1] ?? status?.[2] ?? 401;
    const text = `Repository "${url}" requires authentication (HTTP ${shown}): credentials are needed. Only public repositories can be imported.`;
    return new ActorError("remote_auth_required", text);
  }
  const errors = stderr.split("\n").filter((line) => /^(fatal|error): /.test(line));
  const last = errors.at(-1)?.replace(/^(fatal|error): /, "") ?? "git could not fetch it";
  return new ActorError("upstream_unavailable", `Cannot import: ${last.slice(0, 300)}`);
}
