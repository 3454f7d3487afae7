/** Prints an app's log live, and reconnects after interruptions of any length. */
import { setTimeout as pause } from "node:timers/promises";
import { stripVTControlCharacters } from "node:util";
import type { z } from "zod";
import { WireAppLogLine } from "../../schemas/apps/http/apps.ts";
import { APP_LOG_LINES_SHOWN_MAX, APP_LOG_WAIT_S_MAX } from "../../schemas/apps/limits.ts";
import { type Platform, Refused } from "./platform.ts";
import { Unreachable } from "./reach.ts";

const PAUSE_MS = 250;
const PAUSE_MS_MAX = 5_000;
/** Timeout of a request, in addition to the time for which the platform waits for new lines. */
const ANSWER_MS_MAX = 15_000;

export type LogLine = z.output<typeof WireAppLogLine>;

interface Following {
  app: string;
  /** Maximum number of existing lines to print first. */
  earlier: number;
  signal: AbortSignal;
  print(line: LogLine): void;
}

/**
 * Prints lines until the signal aborts. Rejects with errors that a retry cannot fix, such as an unknown app or a
 * missing permission.
 */
export async function followLogs(platform: Platform, wanted: Following): Promise<void> {
  const { signal, print } = wanted;
  let after: number | undefined;
  let pauseMs = PAUSE_MS;
  let isTold = false;
  while (!signal.aborted) {
    try {
      const lines = await nextLines(platform, wanted, after);
      if (isTold) console.error("Connected again");
      isTold = false;
      pauseMs = PAUSE_MS;
      const shown = after === undefined ? lines.slice(lines.length - wanted.earlier) : lines;
      if (after !== undefined || wanted.earlier > 0) shown.forEach(print);
      after = lines.at(-1)?.id ?? after ?? 0;
    } catch (error) {
      if (signal.aborted) return;
      if (!mayPass(error)) throw error;
      if (!isTold) console.error(`${error.message}; trying again`);
      isTold = true;
      const waitMs = error instanceof Refused ? (error.retryAfterS ?? 0) * 1_000 : 0;
      await pause(Math.max(pauseMs, waitMs), undefined, { signal }).catch(() => {});
      pauseMs = Math.min(pauseMs * 2, PAUSE_MS_MAX);
    }
  }
}

/**
 * Returns the latest existing lines if `after` is undefined. Otherwise waits for lines after `after`, and returns
 * them as soon as they arrive.
 */
function nextLines(
  platform: Platform,
  { app, earlier, signal }: Following,
  after: number | undefined,
): Promise<LogLine[]> {
  const query =
    after === undefined
      ? { limit: Math.max(1, earlier) }
      : { limit: APP_LOG_LINES_SHOWN_MAX, after, wait_seconds: APP_LOG_WAIT_S_MAX };
  const text = new URLSearchParams(
    Object.entries(query).map(([name, value]) => [name, String(value)]),
  );
  const late = AbortSignal.timeout(APP_LOG_WAIT_S_MAX * 1_000 + ANSWER_MS_MAX);
  return platform.ask(`/apps/${app}/logs?${text}`, WireAppLogLine.array(), {
    signal: AbortSignal.any([signal, late]),
  });
}

const mayPass = (error: unknown): error is Error =>
  error instanceof Unreachable ||
  (error instanceof Refused && (error.status === 429 || error.status >= 500));

/** Formats a line of the log. Anybody may have written its text, so control characters are removed. */
export function lineText({ time, level, text, agent }: LogLine): string {
  const from = agent === null ? "" : ` [${plain(`${agent.class_name} ${agent.name}`)}]`;
  return `${time.slice(11, 23)} ${level.toUpperCase().padEnd(5)}${from} ${plain(text)}`;
}

function plain(text: string): string {
  return stripVTControlCharacters(text).replaceAll(
    // biome-ignore lint/suspicious/noControlCharactersInRegex: the code removes control characters.
    /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g,
    (character) => `\\x${character.charCodeAt(0).toString(16).padStart(2, "0")}`,
  );
}
