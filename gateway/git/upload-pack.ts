/** Serves a fetch by git itself, on the repository as it is. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Logger } from "pino";
import type { ActorClient } from "../../actors/runtime/actor-client.ts";
import { FETCH_REQUEST_BYTES_MAX } from "../../schemas/git-limits.ts";
import { ANSWER_STALL_MS } from "../../schemas/limits.ts";
import { repoEvents } from "../../schemas/repo-events.ts";
import { serviceLine } from "./advertisement.ts";
import { wholeBody } from "./git-body.ts";
import type { GitParts, OpenedRepo } from "./git-parts.ts";
import { drained, startGit } from "./git-process.ts";
import { FLUSH } from "./pkt-line.ts";

export interface FetchExchange {
  request: IncomingMessage;
  response: ServerResponse;
  /** The client's leaving. */
  signal: AbortSignal;
  logger: Logger;
}

/** On its side band. */
const PACK_BEGINS = Buffer.from("\u0001PACK", "latin1");
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
  { actors, slots, cache }: GitParts,
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
    let hasPack = false;
    let end: Buffer = Buffer.alloc(0);
    for await (const chunk of git.stdout as AsyncIterable<Buffer>) {
      // Git writes the number of a band and what is on it one after the other.
      if (!hasPack) hasPack = Buffer.concat([end, chunk]).includes(PACK_BEGINS);
      end = Buffer.concat([end, chunk.subarray(-PACK_BEGINS.length)]).subarray(-PACK_BEGINS.length);
      if (!response.write(chunk)) await takenBy(response, stalled);
      if (signal.aborted || stalled.signal.aborted) break;
    }
    const { code, stderr } = await git.exit;
    if (code !== 0) logger.info({ code, stderr }, "upload-pack failed");
    // Where git ended by itself it has said in its protocol why; else the answer is cut off.
    if (code === null) response.destroy();
    else response.end();
    // A client that has all of it may leave before git has ended.
    if (hasPack && FLUSH.equals(end.subarray(-FLUSH.length)))
      tellFetched(actors, repo, input, logger);
  } finally {
    leave();
  }
}

/** Nobody waits for it, and a fetch that nobody heard of is a fetch all the same. */
function tellFetched(
  actors: ActorClient,
  { id: repoId, accountId, address }: OpenedRepo,
  input: Buffer | undefined,
  logger: Logger,
): void {
  const { namespace, name: repoName } = address;
  // Who has nothing yet clones.
  const type = input?.includes("have ") ? ("fetched" as const) : ("cloned" as const);
  const event = { type, repoId, namespace, repoName, at: Date.now() };
  actors.send(repoEvents, accountId, "happened", { event }).catch((error: unknown) => {
    logger.warn({ err: error }, "fetch not told");
  });
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
