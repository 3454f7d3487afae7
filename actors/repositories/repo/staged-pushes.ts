/**
 * Reads and deletes the stored parts of a push that is too large for one message. The parts are kept until the push
 * is decided.
 */
import { ActorError } from "../../../schemas/errors.ts";
import { PUSH_PARTS_MAX } from "../../../schemas/repositories/limits.ts";
import { type LiveRepo, partRow, type RepoRow, type RepoRows } from "./repo-state.ts";

export type WrittenRows = Record<string, RepoRow | null>;

export function stagedCommands(rows: RepoRows, push: string, parts: number): string[] {
  return Array.from({ length: Math.min(parts, PUSH_PARTS_MAX) }, (_, part) => {
    const row = rows.get(partRow(push, part));
    if (row?.row === "part") return row.commands;
    throw new ActorError("conflict", "Cannot push: a part of the push has expired; push again");
  }).flat();
}

export function droppedParts(
  { staged }: LiveRepo,
  which: (staged: { push: string; at: number }) => boolean,
): WrittenRows {
  const rows = staged
    .filter(which)
    .flatMap(({ push, parts }) => parts.map((part) => [partRow(push, part), null] as const));
  return Object.fromEntries(rows);
}
