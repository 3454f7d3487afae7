/**
 * Reads a response that an app is still writing. Requests one part after the other from the host of the app's
 * process.
 */

import { StreamAnswer, type StreamQuestion } from "../../../../schemas/apps/answer-stream.ts";
import { type AnswerStream, inlineBytes } from "../../../../schemas/apps/app-exchange.ts";
import { APP_STREAM_WAIT_MS } from "../../../../schemas/apps/limits.ts";
import { ActorError } from "../../../../schemas/errors.ts";
import { parseJson } from "../../../../schemas/parse-json.ts";
import { ask, tell } from "../../../runtime/bus/ask.ts";
import type { Bus } from "../../../runtime/bus/bus.ts";
import type { Clock } from "../../../runtime/lib/clock.ts";
import { abortable } from "../../../runtime/lib/time-limit.ts";

/**
 * Number of retries while a host does not answer, and the pause between them. After an outage of the bus, the host
 * may reconnect later.
 */
const APP_STREAM_ABSENCES_MAX = 20;
const APP_STREAM_RETRY_MS = 250;

interface StreamReaderParts {
  bus: Bus;
  clock: Clock;
}

const GONE: StreamAnswer = { failed: "its host is gone" };
/** Time for the transfer of a part, in addition to the time for which the host waits for the part. */
const WAY_MS = 5_000;

/**
 * Yields the parts of a response as the app writes them. Rejects with `app_failed` if the response breaks off, and
 * with the signal's reason if aborted. A reader that stops early ends the stream.
 */
export async function* readAnswerStream(
  parts: StreamReaderParts,
  rest: AnswerStream,
  signal: AbortSignal,
): AsyncGenerator<Buffer, void, void> {
  let isOver = false;
  let part = 1;
  try {
    for (; ; part++) {
      let answer = await readPart(parts, rest, part, signal);
      while ("wait" in answer) answer = await readPart(parts, rest, part, signal);
      isOver = !("part" in answer);
      if ("end" in answer) return;
      if ("failed" in answer) {
        throw new ActorError("app_failed", `The answer broke off: ${answer.failed}`);
      }
      yield inlineBytes(answer.part);
    }
  } finally {
    if (!isOver) leaveAnswerStream(parts.bus, rest);
  }
}

/** Reads one part, or returns that none is ready yet. Rejects with the signal's reason. */
export async function readPart(
  { bus, clock }: StreamReaderParts,
  { subject, stream }: AnswerStream,
  part: number,
  signal: AbortSignal,
): Promise<StreamAnswer> {
  const question: StreamQuestion = { stream, part };
  for (let absences = 0; ; ) {
    signal.throwIfAborted();
    const timeoutMs = APP_STREAM_WAIT_MS + WAY_MS;
    const asked = await abortable(
      ask(bus, subject, JSON.stringify(question), { timeoutMs }),
      signal,
    );
    if (typeof asked === "object") {
      return StreamAnswer.safeParse(parseJson(asked.answer.string())).data ?? GONE;
    }
    // After an outage of the bus, the host may reconnect a little later than this process.
    absences += 1;
    if (absences > APP_STREAM_ABSENCES_MAX) return GONE;
    await clock.wait(APP_STREAM_RETRY_MS, signal);
  }
}

/** Notifies the host that the reader has stopped. If the notice is lost, the host ends the stream after a timeout. */
export function leaveAnswerStream(bus: Bus, { subject, stream }: AnswerStream): void {
  const question: StreamQuestion = { stream, part: 1, isLeft: true };
  tell(bus, subject, JSON.stringify(question));
}
