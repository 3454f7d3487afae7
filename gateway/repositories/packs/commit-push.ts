/** Sends the changes of a push to the repository, which accepts or refuses them in one step. */
import { randomBytes } from "node:crypto";
import type { ActorClient } from "../../../actors/runtime/calls/actor-client.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { repoTooLarge } from "../../../schemas/repositories/git-sizes.ts";
import { COMMANDS_BYTES_MAX, PUSH_PARTS_MAX } from "../../../schemas/repositories/limits.ts";
import {
  type RefCommand,
  type RefResult,
  refResultText,
} from "../../../schemas/repositories/ref-command.ts";
import { commandsBytes, repo } from "../../../schemas/repositories/repo.ts";
import { heldNow, type KeptPack } from "./pack-store.ts";

/**
 * Deadline for the repository's decision about a push. It is longer than any leader election, because a client
 * prefers a wait to an unknown result.
 */
const SWAP_DEADLINE_MS = 60_000;

interface CommittedPush {
  commands: readonly RefCommand[];
  atomic: boolean;
  generation: number;
  forward: readonly number[];
  packs: readonly KeptPack[];
  /**
   * `bytes` are the bytes of the repository before the push, which a refusal names. `bytesMax` is the limit after the
   * push.
   */
  bytes: number;
  bytesMax: number;
  options?: readonly string[];
  /**
   * `treeDepth` is the depth of the directory tree with these packs. It was measured when the tree had the depth
   * `treeBelow` without them.
   */
  treeDepth?: number;
  treeBelow?: number;
}

/** Why the repository refused one command of a push: the result, and the text that a client shows beside the ref. */
export interface RefFault {
  result: Exclude<RefResult, "o">;
  text: string;
}

/** Sends a push to the repository. Returns for each command why it was refused, or undefined if it succeeded. */
export async function commitPush(
  actors: ActorClient,
  id: string,
  { commands, packs, options = [], bytes, ...input }: CommittedPush,
): Promise<(RefFault | undefined)[]> {
  const push = randomBytes(16).toString("hex");
  const parts = partsOf(commands.map(({ old, value, ref }) => `${old} ${value} ${ref}`));
  const [only, ...others] = parts;
  if (others.length > 0) {
    for (const [part, some] of parts.entries()) {
      await actors.call(repo, id, "stage", { push, part, commands: some });
    }
  }
  const staged = others.length > 0 ? parts.length : 0;
  const { results } = await actors.call(
    repo,
    id,
    "swap",
    {
      ...input,
      packs: packs.map(heldNow),
      options: [...options],
      push,
      parts: staged,
      commands: staged > 0 ? [] : (only ?? []),
    },
    { deadlineMs: SWAP_DEADLINE_MS },
  );
  return Array.from(results, (letter, number) => {
    // The contract has no other letters.
    const result = letter as RefResult;
    if (result === "o") return undefined;
    const isFull = result === "q";
    const text = isFull
      ? repoTooLarge(bytes, input.bytesMax)
      : refResultText(result, commands[number]?.ref ?? "");
    return { result, text };
  });
}

/**
 * Returns the fault that explains a refused push, or undefined if it succeeded. In an atomic push, one fault refuses
 * all other refs too, without a reason of their own.
 */
export function reasonOf(faults: readonly (RefFault | undefined)[]): RefFault | undefined {
  const found = faults.filter((fault) => fault !== undefined);
  return found.find(({ result }) => result !== "a") ?? found[0];
}

/**
 * Returns the error for a refused REST commit or import: `storage_full` past the limit for the repository, as
 * for large files, and `conflict` for any other fault.
 */
export function changeRefused(action: string, { result, text }: RefFault): ActorError {
  return new ActorError(result === "q" ? "storage_full" : "conflict", `${action}: ${text}`);
}

/** Divides commands into the smallest number of messages. */
function partsOf(commands: readonly string[]): string[][] {
  const parts: string[][] = [];
  let bytes = Number.POSITIVE_INFINITY;
  for (const command of commands) {
    const commandBytes = commandsBytes([command]);
    if (bytes + commandBytes > COMMANDS_BYTES_MAX) {
      parts.push([]);
      bytes = 0;
    }
    parts.at(-1)?.push(command);
    bytes += commandBytes;
  }
  if (parts.length > PUSH_PARTS_MAX) {
    const text = "Cannot push: too many long ref names for one push; push fewer refs at once";
    throw new ActorError("body_too_large", text);
  }
  return parts;
}
