/**
 * Responses that processes of this host are still writing. A reader that knows a response's name requests one part
 * after the other, and the process writes the next part on request. A response without a reader is abandoned.
 */
import { randomBytes } from "node:crypto";
import {
  type StreamAnswer,
  StreamQuestion,
  streamsSubject,
} from "../../../../schemas/apps/answer-stream.ts";
import { type AnswerStream, inlineBody } from "../../../../schemas/apps/app-exchange.ts";
import type {
  FromProcess,
  ProcessAnswer,
  StreamPart,
  ToProcess,
  TurnResult,
} from "../../../../schemas/apps/app-process.ts";
import {
  APP_STREAM_UNREAD_MS,
  APP_STREAM_WAIT_MS,
  APP_STREAMS_MAX,
} from "../../../../schemas/apps/limits.ts";
import { ActorError } from "../../../../schemas/errors.ts";
import { parseJson } from "../../../../schemas/parse-json.ts";
import type { AnswerOn } from "../../../runtime/bus/answer.ts";
import { type Clock, OVER } from "../../../runtime/lib/clock.ts";
import type { HeldBytes } from "./held-bytes.ts";

/** The process of an app, as far as its streams need it. */
interface Process {
  send(message: ToProcess, arrived?: () => void): void;
  readonly isEnded: boolean;
  /** Resolves with the reason when the process has ended. */
  readonly ended: Promise<Error>;
  readonly held: HeldBytes;
}

interface Made {
  readonly process: Process;
  readonly agent: number | undefined;
  /** The stream's number in its process. */
  readonly number: number;
  readonly name: string;
  /** Number of the part that was requested last. `answer` resolves with its content when the process has sent it. */
  part: number;
  answer: PromiseWithResolvers<StreamAnswer>;
  isAwaited: boolean;
  heldBytes: number;
  /** The end of the answer, after its last part. */
  over: StreamAnswer | undefined;
  readAt: number;
  readonly forgotten: AbortController;
}

interface OfProcess {
  made: Map<number, Made>;
  lent: Map<number, { stream: AnswerStream; isRead: boolean }>;
  lastLent: number;
}

const PROCESS_ENDED = "its process has ended";
const NONE_SUCH: StreamAnswer = { failed: "nobody has it any more" };

export class HostStreams {
  readonly #clock: Clock;
  readonly #subject = streamsSubject(randomBytes(8).toString("hex"));
  readonly #made = new Map<string, Made>();
  readonly #processes = new WeakMap<Process, OfProcess>();
  readonly #leave: () => void;

  constructor({ answerOn, clock }: { answerOn: AnswerOn; clock: Clock }) {
    this.#clock = clock;
    this.#leave = answerOn(this.#subject, (payload) => this.#answer(payload));
  }

  /**
   * Opens a stream of an agent or of the entry, and returns its name. Every call for the same stream returns the same
   * name.
   */
  open(process: Process, number: number, agent?: number): AnswerStream {
    const { made } = this.#of(process);
    let stream = made.get(number);
    if (stream === undefined) {
      if (made.size >= APP_STREAMS_MAX) {
        process.send({ type: "pull", stream: number, isLeft: true });
        const text = `Cannot answer: ${APP_STREAMS_MAX} answers of the app are still being made`;
        throw new ActorError("busy", text, { retryAfterS: 1 });
      }
      const name = randomBytes(16).toString("hex");
      stream = {
        ...{ process, agent, number, name, part: 0, heldBytes: 0 },
        ...{ isAwaited: false, over: undefined },
        ...{ readAt: this.#clock.monotonic(), forgotten: new AbortController() },
        answer: Promise.withResolvers(),
      };
      made.set(number, stream);
      this.#made.set(name, stream);
      void this.#watch(stream);
    }
    return { subject: this.#subject, stream: stream.name };
  }

  /**
   * Lends a stream to a process. Returns a number by which the process reads the stream or passes it on. Past the
   * limit, the oldest lent stream is dropped.
   */
  lend(process: Process, stream: AnswerStream): number {
    const known = this.#of(process);
    known.lastLent += 1;
    known.lent.set(known.lastLent, { stream, isRead: false });
    if (known.lent.size > APP_STREAMS_MAX) known.lent.delete(known.lent.keys().next().value ?? 0);
    return known.lastLent;
  }

  /**
   * Adds the address of the rest of a response to a turn's result. Call it as soon as the result arrives, before the
   * stream can end.
   */
  withRest(process: Process, result: TurnResult, agent?: number): TurnResult {
    if (result.type !== "answer") return result;
    const rest = this.restOf(process, result.answer, agent);
    return rest ? { ...result, answer: { ...result.answer, rest } } : result;
  }

  /** Returns the address of the rest of a response; undefined if the response is complete. */
  restOf(
    process: Process,
    { stream, lent }: Pick<ProcessAnswer, "stream" | "lent">,
    agent?: number,
  ): AnswerStream | undefined {
    if (stream !== undefined) return this.open(process, stream, agent);
    if (lent === undefined) return undefined;
    const passedOn = this.lent(process, lent);
    if (!passedOn) throw new ActorError("app_failed", "Cannot read what the app answered");
    this.forgetLent(process, lent);
    return passedOn;
  }

  /** Returns the stream that was lent to this process under this number, if any. */
  lent(process: Process, number: number): AnswerStream | undefined {
    return this.#processes.get(process)?.lent.get(number)?.stream;
  }

  /**
   * Reads a lent stream. Only one read of each stream may run at a time, so a process has at most as many reads as
   * lent streams. Rejects with `busy`.
   */
  async readLent<T>(process: Process, number: number, read: () => Promise<T>): Promise<T> {
    const lent = this.#processes.get(process)?.lent.get(number);
    if (lent === undefined || lent.isRead) {
      throw new ActorError("busy", "Cannot read: the part before is under way");
    }
    lent.isRead = true;
    try {
      return await read();
    } finally {
      lent.isRead = false;
    }
  }

  /** Forgets a lent stream that was read to its end or passed on. */
  forgetLent(process: Process, number: number): void {
    this.#processes.get(process)?.lent.delete(number);
  }

  /** Handles a part of a response from its process. Call it when the part may be sent to clients. */
  heard(process: Process, { stream, part }: Extract<FromProcess, { type: "part" }>): void {
    const made = this.#processes.get(process)?.made.get(stream);
    // The process sent a part that was not requested, so it is ignored.
    if (made === undefined || !made.isAwaited) return;
    const answer = toAnswer(part);
    if (!("bytes" in part)) {
      this.#end(made, answer);
      return;
    }
    made.isAwaited = false;
    made.heldBytes = part.bytes.length;
    process.held.hold(made.heldBytes);
    made.answer.resolve(answer);
  }

  /** Returns the number of open streams of the app's entry. The process stays alive while there are any. */
  ofEntry(process: Process): number {
    const made = this.#processes.get(process)?.made.values() ?? [];
    return [...made].filter(({ agent }) => agent === undefined).length;
  }

  /** Ends the streams of an agent that leaves this process or has left it. */
  agentLeft(process: Process, agent: number): void {
    const failed = process.isEnded ? PROCESS_ENDED : "its agent has moved";
    for (const made of this.#processes.get(process)?.made.values() ?? []) {
      if (made.agent !== agent) continue;
      process.send({ type: "pull", stream: made.number, isLeft: true });
      this.#end(made, { failed });
    }
  }

  close(): void {
    this.#leave();
    for (const made of this.#made.values()) made.forgotten.abort(OVER);
  }

  async #answer(payload: string): Promise<string> {
    const { data: question } = StreamQuestion.safeParse(parseJson(payload));
    const made = question && this.#made.get(question.stream);
    if (!question || !made) return JSON.stringify(NONE_SUCH);
    if (question.isLeft) {
      this.#leaveOff(made);
      return "";
    }
    const answer = await this.#part(made, question.part);
    made.readAt = this.#clock.monotonic();
    return JSON.stringify(answer);
  }

  async #part(made: Made, part: number): Promise<StreamAnswer> {
    if (part === made.part + 1 && !made.isAwaited) {
      if (made.over) return made.over;
      made.part = part;
      made.answer = Promise.withResolvers();
      made.isAwaited = true;
      this.#release(made);
      made.process.send({ type: "pull", stream: made.number });
    } else if (part !== made.part) return NONE_SUCH;
    const waited = new AbortController();
    const late = this.#clock
      .wait(APP_STREAM_WAIT_MS, waited.signal)
      .then((): StreamAnswer => ({ wait: true }));
    made.readAt = Number.POSITIVE_INFINITY;
    try {
      return await Promise.race([made.answer.promise, late]);
    } finally {
      waited.abort(OVER);
    }
  }

  #of(process: Process): OfProcess {
    const known = this.#processes.get(process);
    if (known) return known;
    const of: OfProcess = { made: new Map(), lent: new Map(), lastLent: 0 };
    this.#processes.set(process, of);
    void process.ended.then(() => {
      for (const made of of.made.values()) this.#end(made, { failed: PROCESS_ENDED });
    });
    return of;
  }

  /** Ends a response that nobody reads. */
  #leaveOff(made: Made): void {
    if (!made.over) made.process.send({ type: "pull", stream: made.number, isLeft: true });
    this.#end(made, { failed: "nobody read it" });
    this.#forget(made);
  }

  /** Ends a response whose process sends no more parts. The last part may be requested one more time. */
  #end(made: Made, over: StreamAnswer): void {
    made.over ??= over;
    if (made.isAwaited) made.answer.resolve(made.over);
    made.isAwaited = false;
    this.#processes.get(made.process)?.made.delete(made.number);
  }

  #forget(made: Made): void {
    this.#release(made);
    this.#made.delete(made.name);
    made.forgotten.abort(OVER);
  }

  #release(made: Made): void {
    made.process.held.release(made.heldBytes);
    made.heldBytes = 0;
  }

  async #watch(made: Made): Promise<void> {
    const { signal } = made.forgotten;
    while (!signal.aborted) {
      const restMs = made.readAt + APP_STREAM_UNREAD_MS - this.#clock.monotonic();
      if (restMs <= 0) return this.#leaveOff(made);
      await this.#clock.wait(Math.min(restMs, APP_STREAM_UNREAD_MS), signal);
    }
  }
}

function toAnswer(part: StreamPart): StreamAnswer {
  if ("bytes" in part) return { part: inlineBody(part.bytes) };
  return "isEnd" in part ? { end: true } : part;
}
