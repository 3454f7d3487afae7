/** A long-running `git cat-file` that returns the types and contents of objects, in the order of requests. */

import { ActorError } from "../../../schemas/errors.ts";
import type { RepoView } from "../cache/repo-cache.ts";
import { type RunningGit, startGit } from "../process/git-process.ts";

/** Requests that may wait for one process. Each takes a tenth of a millisecond. */
export const READS_WAITING_MAX = 10_000;
/** Time limit of one read. Even from a slow disk, a read takes less. */
const READ_MS_MAX = 20_000;

export interface ObjectHead {
  id: string;
  type: string;
  bytes: number;
}

/** An object with its content. */
export interface ReadObject extends ObjectHead {
  content: Buffer;
}

interface Question {
  name: Buffer;
  command: "info" | "contents";
  resolve(found: ObjectHead | ReadObject | undefined): void;
  reject(error: Error): void;
}

const NEWLINE = 0x0a;
/** Characters of an unknown response that an error shows. */
const SHOWN_CHARS_MAX = 200;
/**
 * The words that git prints after a name that does not exist. `dangling` and similar words need an option that is not
 * given.
 */
const NOTHING = [" missing\n", " ambiguous\n"].map((text) => Buffer.from(text));

export class ReadProcess {
  readonly #git: RunningGit;
  readonly #stop = new AbortController();
  #waiting: Question[] = [];
  #chunks: Buffer[] = [];
  #bytes = 0;
  /** Bytes needed before the next object can be parsed. */
  #needed = 1;
  #late: NodeJS.Timeout | undefined;
  /** True after a response that cannot be parsed. Nothing shows where the next response begins. */
  #isBroken = false;
  #ended = false;

  constructor(view: Pick<RepoView, "cwd" | "environment">) {
    this.#git = startGit(["cat-file", "--batch-command", "-z"], {
      ...view,
      signal: this.#stop.signal,
    });
    this.#git.stdout.on("data", (chunk: Buffer) => this.#take(chunk));
    void this.#git.exit.then(({ stderr }) => this.#end(stderr));
  }

  get ended(): boolean {
    return this.#ended || this.#isBroken;
  }

  get idle(): boolean {
    return this.#waiting.length === 0;
  }

  /** Returns the type and size of an object, or undefined if the name leads to no object. */
  head(name: string): Promise<ObjectHead | undefined> {
    return this.#ask("info", name);
  }

  read(name: string): Promise<ReadObject | undefined> {
    return this.#ask("contents", name) as Promise<ReadObject | undefined>;
  }

  close(): void {
    this.#git.stdin.end();
    this.#stop.abort();
  }

  get exit(): Promise<unknown> {
    return this.#git.exit;
  }

  #ask(command: Question["command"], name: string): Promise<ObjectHead | undefined> {
    if (this.ended) return Promise.reject(processGone());
    if (this.#waiting.length >= READS_WAITING_MAX) {
      const text = "Cannot read object: too many reads of this repository wait";
      return Promise.reject(new ActorError("busy", text, { retryAfterS: 1 }));
    }
    return new Promise((resolve, reject) => {
      this.#waiting.push({ command, name: Buffer.from(name), resolve, reject });
      if (this.#waiting.length === 1) this.#expect();
      this.#git.stdin.write(`${command} ${name}\0`);
    });
  }

  /**
   * Sets a time limit for the next response. A process that does not respond is closed, because it cannot serve the
   * next caller either.
   */
  #expect(): void {
    clearTimeout(this.#late);
    if (this.#waiting.length > 0) this.#late = setTimeout(() => this.close(), READ_MS_MAX);
  }

  #take(chunk: Buffer): void {
    if (this.#isBroken) return;
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    if (this.#bytes < this.#needed) return;
    let buffer = this.#chunks.length === 1 ? chunk : Buffer.concat(this.#chunks);
    this.#needed = 1;
    for (;;) {
      const [question] = this.#waiting;
      const answer = question && answerIn(buffer, question);
      if (!answer) break;
      if ("unknown" in answer) {
        this.#break(answer.unknown);
        return;
      }
      if ("needed" in answer) {
        this.#needed = answer.needed;
        break;
      }
      this.#waiting.shift();
      this.#expect();
      question.resolve(answer.found);
      buffer = buffer.subarray(answer.length);
    }
    this.#chunks = buffer.length === 0 ? [] : [buffer];
    this.#bytes = buffer.length;
  }

  /**
   * Ends the process after a response that cannot be parsed. Only the request of this response fails, because another
   * process would answer it in the same way. The others are repeated.
   */
  #break(line: string): void {
    this.#isBroken = true;
    clearTimeout(this.#late);
    const shown = JSON.stringify(line.slice(0, SHOWN_CHARS_MAX));
    this.#waiting
      .shift()
      ?.reject(new Error(`Cannot read object: git gave the unknown response ${shown}`));
    this.close();
  }

  #end(stderr: string): void {
    this.#ended = true;
    clearTimeout(this.#late);
    const questions = this.#waiting;
    this.#waiting = [];
    for (const { reject } of questions) {
      reject(
        this.#stop.signal.aborted ? processGone() : new Error(`Cannot read object: ${stderr}`),
      );
    }
  }
}

/** The process died. Another process can serve the same request. */
export class ReadProcessGone extends Error {}
const processGone = () => new ReadProcessGone("Cannot read object: git stopped unexpectedly");

type Answer =
  | { found: ObjectHead | ReadObject | undefined; length: number }
  /** The number of bytes of the whole response. */
  | { needed: number }
  /** A complete line that is no response of a version that this code knows. */
  | { unknown: string };

/** Parses the first response in the buffer. Returns undefined if a line is not complete yet. */
export function answerIn(
  buffer: Buffer,
  { name, command }: Pick<Question, "name" | "command">,
): Answer | undefined {
  if (buffer.length === 0) return undefined;
  // A name may contain any character but NUL, also newlines. Git repeats the name of a missing object unchanged.
  const nothing = NOTHING.map((text) => Buffer.concat([name, text])).find((line) => {
    const length = Math.min(line.length, buffer.length);
    return buffer.subarray(0, length).equals(line.subarray(0, length));
  });
  if (nothing) {
    if (buffer.length < nothing.length) return undefined;
    return { found: undefined, length: nothing.length };
  }
  const end = buffer.indexOf(NEWLINE);
  if (end < 0) return undefined;
  const line = buffer.toString("latin1", 0, end);
  if (SUBMODULE.test(line)) return { found: undefined, length: end + 1 };
  const [, id, type, size] = /^([0-9a-f]{40}) (commit|tree|blob|tag) (\d+)$/.exec(line) ?? [];
  if (id === undefined || type === undefined) return { unknown: line };
  const bytes = Number(size);
  if (command === "info") return { found: { id, type, bytes }, length: end + 1 };
  const length = end + 1 + bytes + 1;
  if (buffer.length < length) return { needed: length };
  // Copies the content. A part of the buffer would keep the whole buffer in memory, which may be far larger.
  const content = Buffer.from(buffer.subarray(end + 1, end + 1 + bytes));
  return { found: { id, type, bytes, content }, length };
}

/**
 * The response for the path of a submodule, since git 2.51. Older versions print that the path is missing. The id is
 * that of the submodule's commit.
 */
const SUBMODULE = /^[0-9a-f]{40,64} submodule$/;
