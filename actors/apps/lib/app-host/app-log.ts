/**
 * Writes the output of apps to the stream of logs. Clients that follow a log receive each line when it is published.
 * Each account has a share of the stream, so that its apps push out no lines of others.
 */

import type { AppLogLine } from "../../../../schemas/apps/app-log.ts";
import { readAppKey } from "../../../../schemas/apps/app-names.ts";
import {
  APP_LOG_LINE_CHARS_MAX,
  APP_LOG_LINES_A_SECOND_MAX,
  APP_LOG_LINES_OF_ACCOUNT_MAX,
} from "../../../../schemas/apps/limits.ts";
import { APP_LOGS_OF_ACCOUNT_BYTES_MAX } from "../../../../schemas/store-limits.ts";
import { appLogSubject, appLogsOf, STREAMS } from "../../../../schemas/subjects.ts";
import { tell } from "../../../runtime/bus/ask.ts";
import type { Bus } from "../../../runtime/bus/bus.ts";
import type { Clock } from "../../../runtime/lib/clock.ts";

/** The lines of an app in one second. `missing`: further lines that were not published. */
interface AppCount {
  second: number;
  lines: number;
  missing: number;
}

interface AccountCount {
  second: number;
  lines: number;
  /** Published since the account's oldest lines were dropped. */
  since: { lines: number; bytes: number };
}

export class AppLog {
  readonly #bus: Bus;
  readonly #clock: Pick<Clock, "now">;
  readonly #accountBytesMax: number;
  readonly #apps = new Map<string, AppCount>();
  readonly #accounts = new Map<string, AccountCount>();

  constructor(
    bus: Bus,
    clock: Pick<Clock, "now">,
    { accountBytesMax = APP_LOGS_OF_ACCOUNT_BYTES_MAX } = {},
  ) {
    this.#bus = bus;
    this.#clock = clock;
    this.#accountBytesMax = accountBytesMax;
  }

  /**
   * Publishes a line without waiting. Lines are lost while the bus is disconnected, and above the limits of lines per
   * second.
   */
  print(app: string, line: Omit<AppLogLine, "at">): void {
    const at = this.#clock.now();
    const second = Math.floor(at / 1_000);
    const { accountId } = readAppKey(app);
    const ofAccount = this.#accountIn(accountId, second);
    const ofApp = this.#appIn(app, second);
    const isFull =
      ofApp.lines >= APP_LOG_LINES_A_SECOND_MAX || ofAccount.lines >= APP_LOG_LINES_OF_ACCOUNT_MAX;
    if (isFull) ofApp.missing += 1;
    else {
      if (ofApp.missing > 0) {
        const text = `${ofApp.missing} lines are missing here`;
        ofApp.missing = 0;
        this.#publish(app, { ...line, at, level: "warn", text }, ofAccount);
      }
      ofApp.lines += 1;
      ofAccount.lines += 1;
      this.#publish(app, { ...line, at }, ofAccount);
    }
    const { lines, bytes } = ofAccount.since;
    if (bytes <= this.#accountBytesMax / 2) return;
    ofAccount.since = { lines: 0, bytes: 0 };
    void this.#keep(accountId, lines);
  }

  #appIn(app: string, second: number): AppCount {
    const before = this.#apps.get(app);
    if (before?.second === second) return before;
    const count = { second, lines: 0, missing: before?.missing ?? 0 };
    this.#apps.set(app, count);
    return count;
  }

  #accountIn(accountId: string, second: number): AccountCount {
    const before = this.#accounts.get(accountId);
    if (before?.second === second) return before;
    const count = { second, lines: 0, since: before?.since ?? { lines: 0, bytes: 0 } };
    this.#accounts.set(accountId, count);
    return count;
  }

  #publish(app: string, line: AppLogLine, { since }: AccountCount): void {
    const text = line.text.slice(0, APP_LOG_LINE_CHARS_MAX);
    const payload = JSON.stringify({ ...line, text });
    since.lines += 1;
    since.bytes += Buffer.byteLength(payload) + LINE_OVERHEAD_BYTES;
    tell(this.#bus, appLogSubject(app), payload);
  }

  /** Drops the account's lines before the last ones. If this fails, a later call drops them. */
  async #keep(accountId: string, lines: number): Promise<void> {
    const bus = this.#bus;
    const last = { filter: appLogsOf(accountId), keep: lines };
    await bus.writeHold.held;
    await bus
      .whileConnected(() => bus.jetstream.streams.purge(STREAMS.appLogs, last))
      .catch(() => {});
  }
}

/** Bytes of a stored message beside its payload: its subject and its place in the file. */
const LINE_OVERHEAD_BYTES = 100;
