/** Takes a push: its pack is checked and durable before the repository decides, and the client hears just what it decided. */
import { createReadStream } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { Readable } from "node:stream";
import type { Logger } from "pino";
import { ActorError } from "../../schemas/errors.ts";
import { PUSH_HEAD_BYTES_MAX, REPO_BYTES_MAX } from "../../schemas/git-limits.ts";
import { REF_RESULTS } from "../../schemas/repo.ts";
import { commitPush } from "./commit-push.ts";
import { gitBody } from "./git-body.ts";
import type { GitParts, OpenedRepo } from "./git-parts.ts";
import { inspectPack } from "./inspect-pack.ts";
import { PktReader } from "./pkt-line.ts";
import { hasSideBand, KEEP_ALIVE, type PushOutcome, pushReport } from "./push-report.ts";
import { forwardCommands, tipFaults } from "./push-tips.ts";
import { type Quarantine, quarantinePack } from "./quarantine.ts";
import { isDeletion, type PushRequest, readPush } from "./read-push.ts";

/** "PACK", version 2, no objects. */
const EMPTY_PACK = Buffer.from("5041434b0000000200000000", "hex");
/** The pause after which a client hears that we still work on it, as git's own `receive.keepAlive`. */
const KEEP_ALIVE_MS = 5_000;

interface PushExchange {
  request: IncomingMessage;
  response: ServerResponse;
  signal: AbortSignal;
  logger: Logger;
}

export async function receivePack(
  parts: GitParts,
  repo: OpenedRepo,
  http: PushExchange,
): Promise<void> {
  const { request, response } = http;
  const body = gitBody(request, { bytesMax: PUSH_HEAD_BYTES_MAX + REPO_BYTES_MAX });
  const reader = new PktReader(body);
  try {
    const push = await readPush(reader);
    if (push) await answerPush(parts, repo, { push, reader, http });
    else response.end();
  } finally {
    // Whatever was refused before its end is not read on.
    body.destroy();
  }
}

async function answerPush(
  parts: GitParts,
  repo: OpenedRepo,
  { push, reader, http }: { push: PushRequest; reader: PktReader; http: PushExchange },
): Promise<void> {
  const { response, signal, logger } = http;
  const alive = setInterval(() => {
    if (hasSideBand(push)) response.write(KEEP_ALIVE);
  }, KEEP_ALIVE_MS);
  try {
    const outcome = await decide(parts, repo, push, reader, signal).catch((error: unknown) => {
      if (!response.headersSent) throw error;
      return failed(push, error, logger);
    });
    response.end(pushReport(push, outcome));
  } finally {
    clearInterval(alive);
  }
}

async function decide(
  parts: GitParts,
  repo: OpenedRepo,
  push: PushRequest,
  reader: PktReader,
  signal: AbortSignal,
): Promise<PushOutcome> {
  if (push.commands.every(isDeletion)) {
    return { unpack: "ok", faults: await commit(parts, repo, push, { packs: [], forward: [] }) };
  }
  const leave = await parts.slots.enter(repo.id, signal);
  try {
    await using view = await parts.cache.open(repo, repo.manifest, signal);
    const room = REPO_BYTES_MAX - repo.manifest.bytes;
    await using taken = await quarantinePack(parts.cache.files, view, reader, { room, signal });
    if (taken.fault !== undefined) return unpackFailed(push, taken.fault);
    const outcome = await accept(parts, repo, push, taken, signal);
    if (!outcome.faults.includes(REF_RESULTS.g)) return outcome;
    return await verifyAnew(parts, repo, push, { outcome, taken, signal });
  } finally {
    leave();
  }
}

/** What it was checked against may have gone meanwhile: it is checked once more, against what is there now. */
async function verifyAnew(
  parts: GitParts,
  opened: OpenedRepo,
  push: PushRequest,
  first: { outcome: PushOutcome; taken: Quarantine; signal: AbortSignal },
): Promise<PushOutcome> {
  const { outcome, taken, signal } = first;
  const manifest = await parts.manifests.read(opened.id, opened.address, signal);
  const repo = { ...opened, manifest };
  await using view = await parts.cache.open(repo, manifest, signal);
  const room = REPO_BYTES_MAX - manifest.bytes;
  const pack = taken.files ? createReadStream(taken.files.pack) : Readable.from([EMPTY_PACK]);
  await using again = await quarantinePack(parts.cache.files, view, new PktReader(pack), {
    room,
    signal,
  });
  if (again.fault !== undefined) return unpackFailed(push, again.fault);
  // What was done already is not asked for a second time.
  const isOpen = (number: number) =>
    push.capabilities.has("atomic") || outcome.faults[number] === REF_RESULTS.g;
  const open = push.commands.filter((_, number) => isOpen(number));
  const { unpack, faults } = await accept(parts, repo, { ...push, commands: open }, again, signal);
  const later = faults.values();
  return {
    unpack,
    faults: outcome.faults.map((fault, number) => (isOpen(number) ? later.next().value : fault)),
  };
}

async function accept(
  parts: GitParts,
  repo: OpenedRepo,
  push: PushRequest,
  taken: Quarantine,
  signal: AbortSignal,
): Promise<PushOutcome> {
  const { commands } = push;
  const { files } = taken;
  const tips = new Set(commands.map(({ value }) => value));
  const inspected = files
    ? await inspectPack(files, taken, tips, signal)
    : { types: new Map<string, string>() };
  if (inspected.fault !== undefined) return unpackFailed(push, inspected.fault);
  const tipsFaults = await tipFaults(commands, repo.manifest, inspected.types, taken, signal);
  if (tipsFaults.every((fault) => fault !== undefined)) {
    return { unpack: "ok", faults: tipsFaults };
  }
  const forward = await forwardCommands(commands, repo.manifest, taken, signal);
  const pack = files && (await parts.packs.put(repo.accountId, files, signal));
  const packs = pack ? [pack] : [];
  const faults = await commit(parts, repo, push, { packs, forward, tipsFaults });
  const isNamed = commands.some(
    (command, number) => !isDeletion(command) && faults[number] === undefined,
  );
  // It is durable: what goes wrong with the cache is no concern of the client's.
  if (pack && files && isNamed)
    await parts.cache.adopt(repo.accountId, pack, files).catch(() => {});
  return { unpack: "ok", faults };
}

/** From here on the client's leaving changes nothing. */
async function commit(
  { actors }: GitParts,
  { id, manifest }: OpenedRepo,
  { commands, capabilities }: PushRequest,
  found: {
    packs: Parameters<typeof commitPush>[2]["packs"];
    forward: readonly number[];
    tipsFaults?: readonly (string | undefined)[];
  },
): Promise<(string | undefined)[]> {
  const faults = commands.map((_, number) => found.tipsFaults?.[number]);
  const atomic = capabilities.has("atomic");
  if (atomic && faults.some((fault) => fault !== undefined)) {
    return faults.map((fault) => fault ?? "atomic transaction failed");
  }
  const numbers = commands.flatMap((_, number) => (faults[number] === undefined ? [number] : []));
  const results = await commitPush(actors, id, {
    commands: numbers.flatMap((number) => commands[number] ?? []),
    atomic,
    generation: manifest.generation,
    forward: found.forward.map((number) => numbers.indexOf(number)).filter((number) => number >= 0),
    packs: found.packs,
  });
  for (const [at, number] of numbers.entries()) faults[number] = results[at];
  return faults;
}

const unpackFailed = (push: PushRequest, fault: string): PushOutcome => ({
  unpack: fault,
  faults: push.commands.map(() => "unpacker error"),
});

/** The answer has begun, so it is in the answer that the fault is told. */
function failed(push: PushRequest, error: unknown, logger: Logger): PushOutcome {
  const isRefusal = error instanceof ActorError && error.code !== "internal_error";
  if (!isRefusal) logger.error({ err: error }, "push failed");
  const fault = isRefusal ? error.message : "a fault on our side; fetch before you push again";
  return { unpack: fault, faults: push.commands.map(() => fault) };
}
