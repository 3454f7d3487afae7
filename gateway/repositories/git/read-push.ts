/** Reads the commands of a push: the lines before its pack (gitprotocol-pack(5), "Reference Update Request"). */
import { ActorError } from "../../../schemas/errors.ts";
import { ZERO_ID } from "../../../schemas/repositories/git-names.ts";
import {
  PUSH_HEAD_BYTES_MAX,
  PUSH_OPTION_CHARS_MAX,
  PUSH_OPTIONS_BYTES_MAX,
  PUSH_OPTIONS_MAX,
  REFS_MAX,
} from "../../../schemas/repositories/limits.ts";
import type { RefCommand } from "../../../schemas/repositories/ref-command.ts";
import { commandsBytes } from "../../../schemas/repositories/repo.ts";
import { PktLineError, type PktReader } from "./pkt-line.ts";

/** Shallow commits that a client may name. A clone of depth 1 has one for each ref. */
export const SHALLOW_LINES_MAX = 20_000;

/**
 * Commands of a refused push for which there is a report. With more of them, the report alone would take tens of
 * megabytes.
 */
export const REPORTED_COMMANDS_MAX = 2 * REFS_MAX;

export interface PushRequest {
  commands: RefCommand[];
  capabilities: ReadonlySet<string>;
  options: string[];
}

/** A push past a limit. `push` has the commands that were read, so that its report can refuse each of them. */
export class RefusedPush extends ActorError {
  readonly push: PushRequest;

  constructor(push: PushRequest, bound: string) {
    super("body_too_large", `Cannot push: more than ${bound}`);
    this.push = push;
  }
}

const COMMAND = /^([0-9a-f]{40}) ([0-9a-f]{40}) ([^\0\n]+)$/;
const SHALLOW = /^shallow [0-9a-f]{40}$/;

/**
 * Reads the commands of a push. Returns undefined for the empty request by which git checks whether it may push.
 * Throws RefusedPush past a limit for the commands or options, and another ActorError if the push cannot be read.
 */
export async function readPush(reader: PktReader): Promise<PushRequest | undefined> {
  try {
    return await readLines(reader);
  } catch (error) {
    if (error instanceof PktLineError) throw malformed(error.message);
    throw error;
  }
}

export const isDeletion = ({ value }: RefCommand) => value === ZERO_ID;

async function readLines(reader: PktReader): Promise<PushRequest | undefined> {
  const commands: RefCommand[] = [];
  let capabilities: ReadonlySet<string> | undefined;
  let [bytes, shallows] = [0, 0];
  for (;;) {
    const line = await reader.line();
    if (line === "end") throw malformed("it ends before its commands do");
    if (line === "flush") break;
    bytes += line.length;
    if (bytes > PUSH_HEAD_BYTES_MAX) throw tooMuch(`${PUSH_HEAD_BYTES_MAX} bytes of commands`);
    const [text = "", listed] = withoutNewline(line).split("\0", 2);
    if (SHALLOW.test(text)) {
      // The client may lack the parents of a shallow commit. The check of the pack finds out whether the repository
      // has them.
      shallows += 1;
      if (shallows > SHALLOW_LINES_MAX) throw tooMuch(`${SHALLOW_LINES_MAX} shallow commits`);
      continue;
    }
    if (text.startsWith("push-cert")) throw malformed("signed pushes are not supported");
    const [, old, value, ref] = COMMAND.exec(text) ?? [];
    if (old === undefined || value === undefined || ref === undefined) {
      throw malformed("a line is no command");
    }
    if (commands.length === REPORTED_COMMANDS_MAX) {
      throw tooMuch(`${REPORTED_COMMANDS_MAX} refs in one push`);
    }
    commands.push({ old, value, ref });
    capabilities ??= new Set((listed ?? "").split(" ").filter((word) => word !== ""));
  }
  if (commands.length === 0) return undefined;
  const known = capabilities ?? new Set<string>();
  for (const capability of known) {
    if (capability.startsWith("object-format=") && capability !== "object-format=sha1") {
      throw malformed("objects are named by SHA-1 here");
    }
  }
  const push = { commands, capabilities: known, options: [] };
  if (commands.length > REFS_MAX) {
    throw new RefusedPush(push, `${REFS_MAX} refs in one push; push fewer at once`);
  }
  return known.has("push-options") ? { ...push, options: await readOptions(reader, push) } : push;
}

async function readOptions(reader: PktReader, push: PushRequest): Promise<string[]> {
  const options: string[] = [];
  for (;;) {
    const line = await reader.line();
    if (line === "end") throw malformed("it ends before its options do");
    if (line === "flush") return options;
    const option = withoutNewline(line);
    if (options.length === PUSH_OPTIONS_MAX) {
      throw new RefusedPush(push, `${PUSH_OPTIONS_MAX} push options`);
    }
    if (option.length > PUSH_OPTION_CHARS_MAX) {
      throw new RefusedPush(push, `${PUSH_OPTION_CHARS_MAX} characters in one push option`);
    }
    options.push(option);
    if (commandsBytes(options) > PUSH_OPTIONS_BYTES_MAX) {
      throw new RefusedPush(push, `${PUSH_OPTIONS_BYTES_MAX} bytes of push options`);
    }
  }
}

const withoutNewline = (line: Buffer) => line.toString("utf8").replace(/\n$/, "");

const malformed = (why: string) => new ActorError("invalid_request", `Cannot read push: ${why}`);
const tooMuch = (bound: string) =>
  new ActorError("body_too_large", `Cannot read push: more than ${bound}`);
