/** Serves a fetch: runs git on the current version of the repository, or sends a stored response. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Logger } from "pino";
import type { ErrorCode } from "../../../schemas/errors.ts";
import { AnswerPace } from "../../http/answer-pace.ts";
import type { AnswerKey, FoundAnswer, Recording } from "../cache/answer-cache.ts";
import { gone } from "../cache/cache-files.ts";
import { checkIntact, readInView } from "../cache/read-in-view.ts";
import type { RepoView } from "../cache/repo-cache.ts";
import type { GitParts } from "../git-parts.ts";
import type { OpenedRepo } from "../opened-repo.ts";
import { startGit } from "../process/git-process.ts";
import { serviceLine } from "./advertisement.ts";
import { wholeBody } from "./git-body.ts";
import { listRefs } from "./list-refs.ts";
import { FLUSH, pktLine } from "./pkt-line.ts";

/** Decompressed bytes of a fetch request: git's own limit (http.maxRequestBuffer). */
const FETCH_REQUEST_BYTES_MAX = 10 * 1024 * 1024;
/**
 * Limit for the bytes of a clone's request whose response is stored. A normal request has a few lines. The response
 * to a request that names every ref is not worth storing.
 */
const KNOWN_QUESTION_BYTES_MAX = 64 * 1024;

interface FetchExchange {
  request: IncomingMessage;
  response: ServerResponse;
  /** Aborts when the client leaves. */
  signal: AbortSignal;
  logger: Logger;
  /** Called with the code of an error that the client reads in a response with status 200. */
  onRefusal?(code: ErrorCode): void;
}

/** The start of a pack in git's output, after the number of its side band. */
const PACK_BEGINS = Buffer.from("\u0001PACK", "latin1");
/** Matches the line of a request for depth 1, with its length, in all versions of the protocol. */
const OF_DEPTH_1 = /000cdeepen 1|000ddeepen 1\n/;
const SERVE = ["upload-pack", "--strict", "--stateless-rpc"];

/** Lists the refs in versions 0 and 1 by git, because only git knows the targets of annotated tags. */
export async function advertiseFetch(
  parts: GitParts,
  repo: OpenedRepo,
  exchange: FetchExchange,
): Promise<void> {
  const head = serviceLine("git-upload-pack");
  await serve(parts, repo, exchange, { head, parameters: [...SERVE, "--http-backend-info-refs"] });
}

export async function uploadPack(
  parts: GitParts,
  repo: OpenedRepo,
  exchange: FetchExchange,
): Promise<void> {
  // The request stays in memory until its response was sent.
  using held = parts.bodies.open([repo.accountId]);
  const input = await wholeBody(exchange.request, FETCH_REQUEST_BYTES_MAX, held);
  const listed = versionOf(exchange.request) === 2 && listRefs(repo.manifest, input);
  if (listed) {
    await new AnswerPace(exchange.response, parts.pace).end(exchange.signal, listed);
    return;
  }
  // For a shallow fetch, git searches for new deltas if it does not send the base of a stored delta. At depth 1 this
  // search makes the pack 0.1 % smaller and takes 2.5 times the processor time. Deeper fetches need the search:
  // without it, a pack of depth 50 of a real history is 2.9 times as large.
  const config = OF_DEPTH_1.test(input.toString("latin1")) ? { "pack.window": "0" } : {};
  await serve(parts, repo, exchange, { parameters: SERVE, input, config });
}

interface GitRun {
  /** The start of the response, which is written before git's output. */
  head?: Buffer;
  parameters: readonly string[];
  input?: Buffer;
  config?: Record<string, string>;
}

async function serve(
  parts: GitParts,
  repo: OpenedRepo,
  exchange: FetchExchange,
  asked: GitRun,
): Promise<void> {
  const key = keyOf(repo, exchange.request, asked);
  const known = key && (await parts.answers.find(key));
  const recording = known || !key ? undefined : parts.answers.record(key);
  try {
    const hasPack = known
      ? await sendKnown(parts, known, exchange, asked)
      : await serveByGit(parts, repo, exchange, { ...asked, recording });
    // An error of the bitmap index must not fail the fetch.
    if (key && hasPack && !known) void parts.cloneIndexes.want(repo).catch(() => {});
    if (hasPack) parts.fetchEvents.report(repo, asked.input, exchange.logger);
  } finally {
    recording?.drop();
  }
}

/**
 * Returns the key of a stored response; undefined for a fetch or a long request. Responses to fetches are not stored,
 * because they differ too much.
 */
function keyOf(
  { id, manifest }: OpenedRepo,
  request: IncomingMessage,
  { parameters, input = NO_INPUT }: GitRun,
): AnswerKey | undefined {
  if (input.length > KNOWN_QUESTION_BYTES_MAX || input.includes("have ")) return undefined;
  const { GIT_PROTOCOL: protocol = "" } = protocolOf(request);
  return { id, version: manifest.version, question: [protocol, ...parameters, input] };
}

const NO_INPUT = Buffer.alloc(0);

/** Resolves to whether the response contained a pack and was sent completely. */
async function sendKnown(
  { pace }: Pick<GitParts, "pace">,
  { bytes, hasPack, content }: FoundAnswer,
  { response, signal }: FetchExchange,
  { head }: GitRun,
): Promise<boolean> {
  const paced = new AnswerPace(response, pace);
  response.setHeader("Content-Length", bytes + (head?.length ?? 0));
  if (head) response.write(head);
  let sent = 0;
  for await (const chunk of content) {
    sent += chunk.length;
    await paced.writeOut(chunk, signal);
  }
  if (sent === bytes) await paced.end(signal);
  else response.destroy();
  return hasPack && sent === bytes;
}

/** Resolves to whether the response contained a pack and was sent completely. */
async function serveByGit(
  parts: GitParts,
  repo: OpenedRepo,
  exchange: FetchExchange,
  asked: Served,
): Promise<boolean> {
  const { signal } = exchange;
  const leave = await parts.slots.enter(repo, signal);
  try {
    return await readInView(
      () => parts.cache.open(repo, repo.manifest, signal),
      (view, isLast) => serveFrom(view, parts, repo, exchange, { ...asked, isLast }),
      { signal, isRepeatable: () => !exchange.response.headersSent },
    );
  } finally {
    leave();
  }
}

interface Served extends GitRun {
  recording: Recording | undefined;
}

/**
 * Sends git's output. If git fails before any output was sent, and this is not the last attempt, rejects and sends
 * nothing.
 */
async function serveFrom(
  view: RepoView,
  { cloneIndexes, pace }: GitParts,
  repo: OpenedRepo,
  exchange: FetchExchange,
  { head, parameters, input, config = {}, recording, isLast }: Served & { isLast: boolean },
): Promise<boolean> {
  const { request, response, signal, logger } = exchange;
  const stalled = new AbortController();
  const git = startGit([...parameters, "."], {
    cwd: view.cwd,
    environment: { ...view.environment, ...protocolOf(request) },
    config,
    signal: AbortSignal.any([signal, stalled.signal]),
  });
  git.stdin.end(input);
  const paced = new AnswerPace(response, pace);
  const hasLeft = () => signal.aborted || stalled.signal.aborted;
  const send = async (chunk: Buffer) => {
    if (head && !response.headersSent) response.write(head);
    recording?.add(chunk);
    // If the client reads too slowly, git is killed and the response is cut off.
    await paced.write(chunk, signal).catch(() => stalled.abort());
  };
  const output = new HeldOutput();
  // Leaving the loop early is no fault. Without this option the iterator would destroy the stream with an error.
  const chunks: AsyncIterable<Buffer> = git.stdout.iterator({ destroyOnReturn: false });
  for await (const chunk of chunks) {
    const ready = output.take(chunk);
    if (ready) await send(ready);
    if (hasLeft()) break;
  }
  git.stdout.destroy();
  const { code, stderr } = await git.exit;
  if (code !== 0) {
    const isOfRequest = REQUEST_FAULT.test(stderr);
    const isOurs = code !== null && !isOfRequest && !output.hasError && !hasLeft();
    // Git may have failed because it cannot use the index. Its words do not always name the index.
    if (isOurs) await cloneIndexes.drop(repo).catch(() => {});
    if (!output.isReleased && !hasLeft()) {
      if (!isLast && !isOfRequest) {
        logger.info({ code, stderr }, "upload-pack failed and runs again");
        throw new Error(`Cannot serve a fetch: ${stderr}`);
      }
      // A process without output and exit code could not start, for example because its folder was removed.
      if (output.isEmpty && code === null) throw gone(view.cwd);
      await checkIntact(view);
    }
    countFailure(exchange, { code, stderr, isOurs });
  } else if (!output.isReleased && !hasLeft()) {
    // If the file of refs was just removed, git lists no refs but exits with 0.
    await checkIntact(view);
  }
  if (!output.isReleased) await send(withFault(output, code, stderr));
  // If git exited, its output states the reason. If git was killed, the response is cut off.
  if (code === null) response.destroy();
  else await paced.end(signal);
  if (code === 0 && output.isWhole && (output.hasPack || (await view.isIntact()))) {
    // The client has the complete response, so an error of the recording must not fail the fetch.
    await recording?.keep({ hasPack: output.hasPack }).catch(() => {});
  }
  // A client may leave before git has exited, but after it has received the whole response.
  return output.hasPack && output.isWhole;
}

/**
 * Matches the faults of a request that git does not report to the client. Git has no codes for them. All other faults
 * are faults of this machine.
 */
const REQUEST_FAULT =
  /^fatal: (?:no commits selected for shallow requests|(?:git upload-pack: )?(?:protocol error|expected |unexpected |unknown |invalid |deepen|ambiguous |banned |filtering |no command|mismatched |the remote end hung up))/im;

function countFailure(
  { logger, onRefusal }: FetchExchange,
  { code, stderr, isOurs }: { code: number | null; stderr: string; isOurs: boolean },
): void {
  if (isOurs) {
    onRefusal?.("internal_error");
    logger.error({ code, stderr }, "upload-pack failed");
  } else logger.info({ code, stderr }, "upload-pack failed");
}

const hasError = (output: Buffer) => output.includes("ERR ");

/** Releases git's output. Appends the fault of git to it, if git failed and sent the client no error. */
function withFault(held: HeldOutput, code: number | null, stderr: string): Buffer {
  const output = held.release();
  if (code === null || code === 0 || held.hasError) return output;
  const fault = /^fatal: (.{1,300})/m.exec(stderr)?.[1] ?? "";
  // The client must not learn the paths of this machine.
  const isShown = fault !== "" && !/(?:^|[^\w.])\//.test(fault);
  return Buffer.concat([output, pktLine(`ERR ${isShown ? fault : "upload-pack failed"}\n`)]);
}

/**
 * Bytes of output that are held back until the pack begins. While the client has received nothing, git can be run
 * again.
 */
const HELD_BYTES_MAX = 64 * 1024;
/**
 * How long output is held back after its first bytes. People wait for the progress that git reports before the pack.
 * The time does not begin with the process: a busy machine starts git late, and git's first output may be an error.
 */
const HELD_MS_MAX = 1_000;

/** Holds back the output of git until the pack begins. */
class HeldOutput {
  #begunAt: number | undefined;
  #held: Buffer[] = [];
  #heldBytes = 0;
  #end: Buffer = Buffer.alloc(0);
  isReleased = false;
  hasPack = false;
  #hasError = false;

  /** True if the output so far ends with a flush line, as every complete response does. */
  get isWhole(): boolean {
    return FLUSH.equals(this.#end.subarray(-FLUSH.length));
  }

  /** True if git's output held an error for the client before it was released. */
  get hasError(): boolean {
    return this.#hasError || hasError(Buffer.concat(this.#held));
  }

  get isEmpty(): boolean {
    return this.#heldBytes === 0;
  }

  /** Returns the bytes to send now, if any. */
  take(chunk: Buffer): Buffer | undefined {
    // Searches the end of the earlier output too, because git writes the number of a band and its content separately.
    this.hasPack ||= Buffer.concat([this.#end, chunk]).includes(PACK_BEGINS);
    const last = chunk.subarray(-PACK_BEGINS.length);
    this.#end = Buffer.concat([this.#end, last]).subarray(-PACK_BEGINS.length);
    if (this.isReleased) return chunk;
    this.#held.push(chunk);
    this.#heldBytes += chunk.length;
    this.#begunAt ??= performance.now();
    const isLate = performance.now() - this.#begunAt > HELD_MS_MAX;
    return this.hasPack || isLate || this.#heldBytes > HELD_BYTES_MAX ? this.release() : undefined;
  }

  release(): Buffer {
    this.isReleased = true;
    const held = Buffer.concat(this.#held);
    this.#hasError ||= hasError(held);
    this.#held = [];
    return held;
  }
}

/** Returns the protocol version that the client names, if it is well formed. */
function protocolOf({ headers }: IncomingMessage): Record<string, string> {
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
