/** Serves a fetch by git itself, on the repository as it is. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Logger } from "pino";
import { FETCH_REQUEST_BYTES_MAX } from "../../schemas/git-limits.ts";
import { ANSWER_STALL_MS } from "../../schemas/limits.ts";
import { serviceLine } from "./advertisement.ts";
import { wholeBody } from "./git-body.ts";
import type { GitParts, OpenedRepo } from "./git-parts.ts";
import { drained, startGit } from "./git-process.ts";

export interface FetchExchange {
  request: IncomingMessage;
  response: ServerResponse;
  /** The client's leaving. */
  signal: AbortSignal;
  logger: Logger;
}

const SERVE = ["upload-pack", "--strict", "--stateless-rpc"];

/** Which refs there are, in versions 0 and 1: with what annotated tags point at, which only git knows. */
export async function advertiseFetch(
  parts: GitParts,
  repo: OpenedRepo,
  exchange: FetchExchange,
): Promise<void> {
  exchange.response.write(serviceLine("git-upload-pack"));
  await serve(parts, repo, exchange, { parameters: [...SERVE, "--http-backend-info-refs"] });
}

export async function uploadPack(
  parts: GitParts,
  repo: OpenedRepo,
  exchange: FetchExchange,
): Promise<void> {
  const input = await wholeBody(exchange.request, FETCH_REQUEST_BYTES_MAX);
  // A shallow clone searches for deltas anew: a third of the time without, in as many bytes.
  const config = input.includes("deepen") ? { "pack.window": "0" } : {};
  await serve(parts, repo, exchange, { parameters: SERVE, input, config });
}

async function serve(
  { slots, cache }: GitParts,
  repo: OpenedRepo,
  { request, response, signal, logger }: FetchExchange,
  asked: { parameters: readonly string[]; input?: Buffer; config?: Record<string, string> },
): Promise<void> {
  const { parameters, input, config = {} } = asked;
  const leave = await slots.enter(repo.id, signal);
  try {
    await using view = await cache.open(repo, repo.manifest, signal);
    const stalled = new AbortController();
    const git = startGit([...parameters, "."], {
      cwd: view.cwd,
      environment: { ...view.environment, ...protocolOf(request) },
      config,
      signal: AbortSignal.any([signal, stalled.signal]),
    });
    git.stdin.end(input);
    for await (const chunk of git.stdout) {
      if (!response.write(chunk)) await takenBy(response, stalled);
      if (signal.aborted || stalled.signal.aborted) break;
    }
    const { code, stderr } = await git.exit;
    if (code !== 0) logger.info({ code, stderr }, "upload-pack failed");
    // Where git ended by itself it has said in its protocol why; else the answer is cut off.
    if (code === null) response.destroy();
    else response.end();
  } finally {
    leave();
  }
}

/** A client that takes nothing any more ends the process, and its answer is cut off. */
async function takenBy(response: ServerResponse, stalled: AbortController): Promise<void> {
  const timer = setTimeout(() => stalled.abort(), ANSWER_STALL_MS);
  await drained(response, stalled.signal).catch(() => {});
  clearTimeout(timer);
}

/** What the client says of the protocol, where it is what one says of it. */
export function protocolOf({ headers }: IncomingMessage): Record<string, string> {
  const protocol = headers["git-protocol"];
  if (typeof protocol !== "string" || !/^[a-z0-9=:]{1,64}$/.test(protocol)) return {};
  return { GIT_PROTOCOL: protocol };
}

export function versionOf(request: IncomingMessage): 0 | 1 | 2 {
  const { GIT_PROTOCOL: protocol = "" } = protocolOf(request);
  const versions = Array.from(protocol.matchAll(/(?:^|:)version=([012])(?=:|$)/g), ([, v]) => v);
  const highest = versions.sort().at(-1);
  return highest === "2" ? 2 : highest === "1" ? 1 : 0;
}
