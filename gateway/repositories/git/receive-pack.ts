/**
 * Receives a push. Its pack is checked and stored before the repository decides about the push. The client receives
 * exactly this decision.
 */
import { createReadStream } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { Readable } from "node:stream";
import type { Logger } from "pino";
import { ActorError, type ErrorCode, isRefusal } from "../../../schemas/errors.ts";
import { accountFull } from "../../../schemas/repositories/git-storage.ts";
import { REF_RESULTS } from "../../../schemas/repositories/ref-command.ts";
import { repo as repoContract } from "../../../schemas/repositories/repo.ts";
import { checkIntact, readInView } from "../cache/read-in-view.ts";
import type { RepoView } from "../cache/repo-cache.ts";
import type { GitParts } from "../git-parts.ts";
import type { OpenedRepo } from "../opened-repo.ts";
import { commitPush } from "../packs/commit-push.ts";
import { inspectPack } from "../packs/inspect-pack.ts";
import type { PackFiles } from "../packs/pack-store.ts";
import { foreseenFaults, forwardCommands, tipFaults } from "../packs/push-tips.ts";
import { type Quarantine, quarantinePack } from "../packs/quarantine.ts";
import { PktReader } from "./pkt-line.ts";
import { PushBody } from "./push-body.ts";
import {
  hasReport,
  hasSideBand,
  KEEP_ALIVE,
  type PushOutcome,
  pushMessage,
  pushReport,
} from "./push-report.ts";
import { isDeletion, type PushRequest, RefusedPush, readPush } from "./read-push.ts";

/** Bytes of a pack that are read before the push occupies a process. Most pushes have arrived completely by then. */
export const PUSH_AHEAD_BYTES = 1024 * 1024;
/** Interval of the lines that keep the connection of a push alive, as with git's own `receive.keepAlive`. */
const PUSH_KEEP_ALIVE_MS = 5_000;

/** "PACK", version 2, no objects. */
const EMPTY_PACK = Buffer.from("5041434b0000000200000000", "hex");

interface PushExchange {
  request: IncomingMessage;
  response: ServerResponse;
  signal: AbortSignal;
  logger: Logger;
  /** Called with the code of a refusal that the report of the push contains. */
  onRefusal?(code: ErrorCode): void;
}

export async function receivePack(
  parts: GitParts,
  repo: OpenedRepo,
  http: PushExchange,
): Promise<void> {
  using body = new PushBody(parts, repo.accountId, http);
  const found = await readPush(body.reader).catch((error: unknown) => {
    if (error instanceof RefusedPush) return error;
    throw error;
  });
  if (found instanceof RefusedPush) {
    await answerPush(parts, repo, { push: found.push, refusal: found, body, http });
  } else if (found) await answerPush(parts, repo, { push: found, body, http });
  else http.response.end();
}

interface RefusablePush {
  push: PushRequest;
  body: PushBody;
  http: PushExchange;
  /** Why no command of the push is accepted. */
  refusal?: RefusedPush;
}

async function answerPush(
  parts: GitParts,
  repo: OpenedRepo,
  { push, refusal, body, http }: RefusablePush,
): Promise<void> {
  const { request, response, signal } = http;
  // Temporary files are removed only after the response was sent.
  await using ends = new AsyncDisposableStack();
  const alive = setInterval(() => {
    if (hasSideBand(push)) response.write(KEEP_ALIVE);
  }, PUSH_KEEP_ALIVE_MS);
  let isBusy = false;
  const failure = (refused: PushRequest, error: unknown) => {
    isBusy = error instanceof ActorError && error.code === "busy";
    if (!response.headersSent && !isReported(push, error)) throw error;
    return failed(refused, error, http);
  };
  try {
    const deciding = { push, body, signal, ends, failure };
    const decided = refusal ? Promise.reject(refusal) : decide(parts, repo, deciding);
    const outcome = await decided.catch((error) => failure(push, error));
    if (outcome.unpack !== "ok" && !request.complete) {
      // Git shows a message at once, but the report only after it has sent the whole pack.
      if (hasSideBand(push)) response.write(pushMessage(outcome.unpack));
      // The process slot and the files are free for other pushes while the rest of the pack is discarded.
      await ends.disposeAsync();
      // Some proxies, such as Caddy, close the connection if the response ends before the request. An overloaded
      // gateway reads no large pack that it does not use.
      await body.discard(!isBusy);
    }
    response.end(pushReport(push, outcome));
  } finally {
    clearInterval(alive);
  }
}

interface Deciding {
  push: PushRequest;
  reader: PktReader;
  signal: AbortSignal;
  /** Cleanup that runs after the response was sent. */
  ends: AsyncDisposableStack;
}

interface Decision extends Omit<Deciding, "reader"> {
  body: PushBody;
  /** Returns the outcome of commands that an error refused. Rethrows an error that no report can contain. */
  failure(refused: PushRequest, error: unknown): PushOutcome;
}

async function decide(
  parts: GitParts,
  repo: OpenedRepo,
  { push, body, signal, ends, failure }: Decision,
): Promise<PushOutcome> {
  if (push.commands.every(isDeletion)) {
    return { unpack: "ok", faults: await commit(parts, repo, push, { packs: [], forward: [] }) };
  }
  const ahead = await body.reader.peek(PUSH_AHEAD_BYTES);
  ends.defer(await parts.slots.enter(repo, signal));
  body.entered();
  // A pack that has arrived completely can be read a second time.
  const isRepeatable = ahead.length < PUSH_AHEAD_BYTES;
  const { outcome, taken } = await readInView(
    () => parts.cache.openObjects(repo, repo.manifest, signal),
    (view) => {
      const source = isRepeatable ? new PktReader(Readable.from([ahead])) : body.reader;
      return decideIn(view, parts, repo, { push, reader: source, signal, ends });
    },
    { signal, isRepeatable: () => isRepeatable, isDoubtful: (decided) => !decided.taken },
  );
  if (!taken || !outcome.faults.includes(REF_RESULTS.g)) return outcome;
  // Only commands that were refused with `g` are sent again, or all commands of an atomic push.
  const isOpen = (number: number) =>
    push.capabilities.has("atomic") || outcome.faults[number] === REF_RESULTS.g;
  const rest = { ...push, commands: push.commands.filter((_, number) => isOpen(number)) };
  // The other commands may have changed their refs, so a failure from here on concerns only the open ones.
  const anew = verifyAnew(parts, repo, { push: rest, taken, signal, ends });
  const { unpack, faults } = await anew.catch((error) => failure(rest, error));
  const later = faults.values();
  return {
    unpack,
    faults: outcome.faults.map((fault, number) => (isOpen(number) ? later.next().value : fault)),
  };
}

/**
 * Checks a push and sends it to the repository. `taken` is absent if the pack was refused, so that none of its
 * objects can be used.
 */
async function decideIn(
  view: RepoView,
  parts: GitParts,
  repo: OpenedRepo,
  { push, reader, signal, ends }: Deciding,
): Promise<{ outcome: PushOutcome; taken?: Quarantine }> {
  const { repoBytes } = parts.sizes;
  const room = repoBytes - repo.manifest.bytes;
  const ofAccount = await parts.storage.freeBytes(repo.accountId, signal);
  const source = { room: Math.min(room, ofAccount), repoBytes, signal };
  const taken = ends.use(await quarantinePack(parts.cache.files, view, reader, source));
  if (taken.lacksRoom && ofAccount < room) {
    const stored = await parts.storage.get(repo.accountId, signal);
    return { outcome: unpackFailed(push, accountFull(stored, parts.storage.bytesMax).message) };
  }
  if (taken.lacksRoom) {
    // The send is not awaited, because only a later push can use the space that a prune frees.
    parts.actors.send(repoContract, repo.id, "roomLacked", {}).catch(() => {});
  }
  if (taken.fault !== undefined) return { outcome: unpackFailed(push, taken.fault) };
  const outcome = await accept(view, parts, repo, { push, taken, signal, ends }).catch(
    (error: unknown) => tooMuch(push, error),
  );
  return { outcome, taken };
}

/**
 * Checks commands again that the repository refused with `g`: a prune may have deleted objects that the first check
 * relied on, or other pushes may have made the directories deeper.
 */
async function verifyAnew(
  parts: GitParts,
  opened: OpenedRepo,
  { push, taken, signal, ends }: Omit<Deciding, "reader"> & { taken: Quarantine },
): Promise<PushOutcome> {
  const manifest = await parts.manifests.read(opened.id, opened.address, signal);
  const repo = { ...opened, manifest };
  const { repoBytes } = parts.sizes;
  const source = { room: repoBytes - manifest.bytes, repoBytes, signal };
  return await readInView(
    () => parts.cache.openObjects(repo, manifest, signal),
    async (view) => {
      const pack = packAgain(taken.files);
      // Git may exit before it has read the whole file, so the file is closed at the end of the push.
      ends.defer(async () => {
        await pack.return();
      });
      const reader = new PktReader(pack);
      const again = ends.use(await quarantinePack(parts.cache.files, view, reader, source));
      if (again.fault !== undefined) return unpackFailed(push, again.fault);
      return await accept(view, parts, repo, { push, taken: again, signal, ends });
    },
    { signal },
  );
}

/**
 * Yields the pack a second time. A small pack is read from memory, because its file may have moved into the cache.
 * The file of a larger pack is opened at the first read.
 */
async function* packAgain(files: PackFiles | undefined): AsyncGenerator<Buffer, void, undefined> {
  if (!files) yield EMPTY_PACK;
  else if (files.whole) yield files.whole.pack;
  else yield* createReadStream(files.pack);
}

async function accept(
  view: RepoView,
  parts: GitParts,
  repo: OpenedRepo,
  { push, taken, signal, ends }: Omit<Deciding, "reader"> & { taken: Quarantine },
): Promise<PushOutcome> {
  const { commands } = push;
  const { files } = taken;
  const tips = new Set(commands.map(({ value }) => value));
  const inspected = files
    ? await inspectPack(files, taken, tips, signal, {
        below: repo.manifest.treeDepth,
        known: repo.manifest.refs.values(),
        sizes: parts.sizes,
      })
    : { types: new Map<string, string>(), treeDepth: repo.manifest.treeDepth };
  if (inspected.fault !== undefined) {
    await checkIntact(view);
    return unpackFailed(push, inspected.fault);
  }
  const tipsFaults = await tipFaults(commands, repo.manifest, inspected.types, taken, signal);
  const forward = await forwardCommands(commands, repo.manifest, taken, signal);
  const foreseen = foreseenFaults(commands, repo.manifest, forward);
  const known = tipsFaults.map((fault, number) => fault ?? foreseen[number]);
  const isFault = (fault: string | undefined) => fault !== undefined;
  if (known.some(isFault)) await checkIntact(view);
  const isOver = push.capabilities.has("atomic") ? known.some(isFault) : known.every(isFault);
  if (isOver) {
    return { unpack: "ok", faults: known.map((fault) => fault ?? REF_RESULTS.a) };
  }
  const pack = files && (await parts.packs.put(repo.accountId, files, signal));
  const packs = pack ? [pack] : [];
  // An error of the cache must not fail the push.
  const adopt = async () => {
    if (files && pack) await parts.cache.adopt(repo.accountId, pack.sha256, files).catch(() => {});
  };
  // A small pack can move into the cache now, because its bytes stay in memory. It may stay there even if the push is
  // refused.
  const adopted = files?.whole && adopt();
  ends.defer(() => adopted);
  const { treeDepth } = inspected;
  const faults = await commit(parts, repo, push, { packs, forward, known, treeDepth });
  const isNamed = commands.some(
    (command, number) => !isDeletion(command) && faults[number] === undefined,
  );
  if (isNamed && !adopted) ends.defer(adopt);
  return { unpack: "ok", faults };
}

/** Sends the push to the repository. This is not aborted when the client leaves. */
async function commit(
  { actors, sizes }: GitParts,
  { id, manifest }: OpenedRepo,
  { commands, capabilities, options }: PushRequest,
  found: {
    packs: Parameters<typeof commitPush>[2]["packs"];
    forward: readonly number[];
    known?: readonly (string | undefined)[];
    treeDepth?: number;
  },
): Promise<(string | undefined)[]> {
  const faults = commands.map((_, number) => found.known?.[number]);
  const atomic = capabilities.has("atomic");
  const numbers = commands.flatMap((_, number) => (faults[number] === undefined ? [number] : []));
  const results = await commitPush(actors, id, {
    commands: numbers.flatMap((number) => commands[number] ?? []),
    atomic,
    generation: manifest.generation,
    forward: found.forward.map((number) => numbers.indexOf(number)).filter((number) => number >= 0),
    packs: found.packs,
    bytes: manifest.bytes,
    bytesMax: sizes.repoBytes,
    options,
    ...(found.treeDepth !== undefined && {
      treeDepth: found.treeDepth,
      treeBelow: manifest.treeDepth,
    }),
  });
  for (const [at, number] of numbers.entries()) faults[number] = results[at]?.text;
  return faults;
}

/** Returns the outcome of a push past a storage limit. Rethrows any other error. */
function tooMuch(push: PushRequest, error: unknown): PushOutcome {
  if (!(error instanceof ActorError) || error.code !== "storage_full") throw error;
  return unpackFailed(push, error.message);
}

const unpackFailed = (push: PushRequest, fault: string): PushOutcome => ({
  unpack: fault,
  faults: push.commands.map(() => "unpacker error"),
});

/**
 * Returns whether the report of the push contains an error: a refusal of commands that certainly changed nothing. Git
 * shows no text of a response to a push with another status than 200.
 */
function isReported(push: PushRequest, error: unknown): boolean {
  return hasSideBand(push) && hasReport(push) && isRefusal(error);
}

/** Returns the outcome of commands that an error refused, for the report of the push. */
function failed(
  push: PushRequest,
  error: unknown,
  { logger, onRefusal }: Pick<PushExchange, "logger" | "onRefusal">,
): PushOutcome {
  const known = error instanceof ActorError && error.code !== "internal_error" ? error : undefined;
  if (known) onRefusal?.(known.code);
  else logger.error({ err: error }, "push failed");
  const fault = known ? known.message : "a fault on our side; fetch before you push again";
  return { unpack: fault, faults: push.commands.map(() => fault) };
}
