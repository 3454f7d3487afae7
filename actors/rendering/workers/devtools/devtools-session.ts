/**
 * One DevTools session in its worker: its browser, the clients that control the browser, and the limits that end the
 * session.
 */
import type { Logger } from "pino";
import type { z } from "zod";
import { ActorError } from "../../../../schemas/errors.ts";
import { browserTime } from "../../../../schemas/rendering/browser-time.ts";
import {
  DEVTOOLS_BYTES_MAX,
  DEVTOOLS_CLIENTS_MAX,
  DEVTOOLS_LAPSE_MS,
  DEVTOOLS_MESSAGE_BYTES_MAX,
  DEVTOOLS_VIEWERS_MAX,
} from "../../../../schemas/rendering/devtools-limits.ts";
import {
  type CloseReason,
  devtoolsSessions,
} from "../../../../schemas/rendering/devtools-sessions.ts";
import {
  linkSubjects,
  type OpenSession,
  type SessionReplies,
  SessionRequest,
  sessionSubject,
  type Target,
} from "../../../../schemas/rendering/devtools-worker.ts";
import { type EgressGuard, guardFor } from "../../../egress/egress-guard.ts";
import { answerOn } from "../../../runtime/bus/answer.ts";
import type { Bus } from "../../../runtime/bus/bus.ts";
import type { ActorClient } from "../../../runtime/calls/actor-client.ts";
import { type Clock, OVER } from "../../../runtime/lib/clock.ts";
import { FrameLink } from "../../lib/frame-link/frame-link.ts";
import { onlyDomains } from "./allowed-domains.ts";
import { answered } from "./answered.ts";
import { CdpClient } from "./cdp-client.ts";
import { openableAddress } from "./cdp-filter.ts";
import { CdpError } from "./cdp-router.ts";
import { SessionBrowser } from "./session-browser.ts";
import type { SessionLimits } from "./session-limits.ts";

/**
 * Maximum bytes that one client has not read yet. Above this limit a viewer is disconnected. For any other client,
 * reading from the browser pauses, which delays all clients of the session.
 */
const UNTAKEN_BYTES_MAX = 8 * 1024 * 1024;

export interface SessionParts {
  bus: Bus;
  clock: Clock;
  logger: Logger;
  actors: Pick<ActorClient, "call" | "send">;
  guard: EgressGuard;
  executablePath: string;
  /** Limit of each account's browser time per day in milliseconds; 0 means no limit. */
  browserMsPerDay: number;
  limits: SessionLimits;
}

interface Connected {
  link: FrameLink;
  client: CdpClient;
  /** True for a viewer of a live view. */
  isReadOnly: boolean;
}

export class DevtoolsSession {
  /** Resolves when the session and all its processes have ended. */
  readonly ended: Promise<void>;
  readonly #parts: SessionParts;
  readonly #of: OpenSession;
  readonly #over = new AbortController();
  readonly #finished = Promise.withResolvers<void>();
  readonly #connected = new Map<string, Connected>();
  readonly #startedAt: number;
  #browser: SessionBrowser | undefined;
  #leave: () => void = () => {};
  /** When the last client left; at first, when the session started. */
  #idleSince: number;
  #latest: SessionReplies["state"]["connection"];
  /** Time up to which the browser time is already reported. */
  #reportedAt: number;
  #reports = 0;
  #renewedAt: number;
  #connecting = 0;

  /** Starts a session. Resolves when clients can connect. Rejects if the browser does not start. */
  static async start(parts: SessionParts, of: OpenSession): Promise<DevtoolsSession> {
    const session = new DevtoolsSession(parts, of);
    try {
      await session.#start();
    } catch (error) {
      await session.end("NotStarted");
      throw error;
    }
    return session;
  }

  /** Use `start`. */
  constructor(parts: SessionParts, of: OpenSession) {
    this.#parts = parts;
    this.#of = of;
    this.ended = this.#finished.promise;
    const now = parts.clock.monotonic();
    this.#startedAt = now;
    this.#idleSince = now;
    this.#reportedAt = now;
    this.#renewedAt = now;
  }

  /** Process group id of the browser, for operators and tests. */
  get pid(): number | undefined {
    return this.#browser?.chromium.pid;
  }

  /** Ends the session. Only the first reason counts. Resolves when the browser has ended and the end is recorded. */
  async end(reason: CloseReason): Promise<void> {
    if (this.#over.signal.aborted) return await this.ended;
    this.#over.abort(OVER);
    const { id, account: accountId } = this.#of;
    const { actors, logger } = this.#parts;
    // The end is recorded before the session unsubscribes from its subject, because a gateway treats a subject
    // without subscriber as a dead worker. If the actor does not respond, the session counts as ended after
    // DEVTOOLS_LAPSE_MS without renewal.
    const noted = actors
      .call(devtoolsSessions, accountId, "end", { id, reason })
      .catch((err: unknown) => logger.error({ err, id }, "end of session not noted"));
    for (const { link, client } of this.#connected.values()) {
      client.leave();
      link.end(reason);
    }
    await this.#browser
      ?.close()
      .catch((err: unknown) => logger.error({ err, id }, "browser process not closed"));
    await this.#report().catch((err: unknown) => logger.error({ err, id }, "time not reported"));
    await noted;
    this.#leave();
    logger.info({ id, account: accountId, reason }, "devtools session ended");
    this.#finished.resolve();
  }

  async #start(): Promise<void> {
    const { bus, logger, executablePath, clock, actors } = this.#parts;
    const { id, account: accountId, allowedDomains } = this.#of;
    const guard = guardFor(accountId, this.#parts.guard);
    const browser = await SessionBrowser.start({
      executablePath,
      clock,
      guard: allowedDomains ? onlyDomains(guard, allowedDomains) : guard,
      bytesMax: DEVTOOLS_BYTES_MAX,
      onForbiddenPage: (url) => {
        logger.error({ id, url }, "session ended for a page that it may not show");
        void this.end("ForbiddenPage");
      },
    });
    this.#browser = browser;
    const { ended } = browser.chromium;
    if (ended.aborted) throw new Error("Cannot start session: its browser ended");
    ended.addEventListener("abort", () => void this.end("BrowserCrashed"), { once: true });
    this.#leave = answerOn({ bus, logger }, sessionSubject(id), (payload) =>
      answered(SessionRequest, payload, (request) => this.#answer(browser, request)),
    );
    const renewed = await actors.call(devtoolsSessions, this.#of.account, "renew", { id });
    // The gateway has given up meanwhile.
    if (renewed.hasEnded) void this.end("NotStarted");
    void this.#watch(browser);
    void this.#renew();
  }

  async #answer(browser: SessionBrowser, request: z.output<typeof SessionRequest>) {
    const { router } = browser;
    if (this.#over.signal.aborted) {
      throw new ActorError("not_found", "Cannot use session: it has ended");
    }
    switch (request.ask) {
      case "connect":
        return await this.#connect(browser, request);
      case "state":
        return { ...(this.#latest && { connection: this.#latest }) };
      case "version":
        return await router.call("Browser.getVersion");
      case "targets":
        return (await browser.targets()).map(wireTarget);
      case "newTarget":
        return await this.#newTarget(browser, request.url);
      case "activateTarget":
      case "closeTarget": {
        const { targetId } = request;
        await found(router.call(`Target.${request.ask}`, { targetId }));
        return {};
      }
      case "end":
        // The end is not awaited: the caller need not wait until all browser processes have ended.
        void this.end("NormalClosure");
        return {};
      default:
        return request satisfies never;
    }
  }

  async #newTarget(browser: SessionBrowser, url: string): Promise<Target> {
    const address = openableAddress(url);
    if (address === undefined) {
      throw new ActorError(
        "invalid_request",
        "Cannot accept /query/url: expected an http or https URL",
      );
    }
    const { targetId } = await browser.router.call("Target.createTarget", { url: address });
    const target = (await browser.targets()).find((one) => one.targetId === targetId);
    if (!target) throw new ActorError("not_found", "Cannot open target: it closed itself");
    return { ...wireTarget(target), url: target.url || address };
  }

  async #connect(
    browser: SessionBrowser,
    {
      link: id,
      targetId,
      isReadOnly,
    }: { link: string; targetId?: string | undefined; isReadOnly: boolean },
  ) {
    const those = [...this.#connected.values()].filter((one) => one.isReadOnly === isReadOnly);
    const max = isReadOnly ? DEVTOOLS_VIEWERS_MAX : DEVTOOLS_CLIENTS_MAX;
    if (those.length + this.#connecting >= max) {
      const what = isReadOnly ? "viewers" : "clients";
      throw new ActorError("limit_reached", `Cannot connect: the session has ${max} ${what}`);
    }
    const { bus, clock } = this.#parts;
    const { toGateway, toWorker } = linkSubjects(id);
    let isCutOff = false;
    const parts = {
      browser,
      isReadOnly,
      write: (text: string) => this.#write(id, text),
      endSession: () => void this.end("NormalClosure"),
      cutOff: (reason: string) => {
        isCutOff = true;
        this.#connected.get(id)?.link.end(reason);
      },
    };
    this.#connecting += 1;
    const client = await found(CdpClient.connect(parts, targetId)).finally(() => {
      this.#connecting -= 1;
    });
    if (this.#over.signal.aborted || isCutOff) {
      client.leave();
      const what = isCutOff ? "target has closed" : "session has ended";
      throw new ActorError("not_found", `Cannot connect: the ${what}`);
    }
    const link = new FrameLink({
      ...{ bus, clock, receiveOn: toWorker, sendTo: toGateway },
      frameBytesMax: DEVTOOLS_MESSAGE_BYTES_MAX,
      take: async (frame) => {
        client.take(frame.toString());
        await browser.chromium.transport.drained();
      },
      ended: () => this.#disconnect(id),
    });
    this.#connected.set(id, { link, client, isReadOnly });
    if (!isReadOnly) this.#latest = { id, startedAt: clock.now() };
    return {};
  }

  #write(id: string, text: string): void {
    const { link, isReadOnly } = this.#connected.get(id) ?? {};
    const transport = this.#browser?.chromium.transport;
    if (!link || !transport) return;
    link.send(Buffer.from(text));
    if (link.unsentBytes <= UNTAKEN_BYTES_MAX) return;
    // A slow viewer is disconnected, so that it never delays the clients that control the browser.
    if (isReadOnly) {
      link.end("it reads too slowly");
      return;
    }
    transport.pause();
    void link.drained(UNTAKEN_BYTES_MAX / 2).then(() => this.#resume());
  }

  #resume(): void {
    const isFull = ({ link }: Connected) => link.unsentBytes > UNTAKEN_BYTES_MAX;
    if (![...this.#connected.values()].some(isFull)) this.#browser?.chromium.transport.resume();
  }

  #disconnect(id: string): void {
    const { clock } = this.#parts;
    const left = this.#connected.get(id);
    left?.client.leave();
    this.#connected.delete(id);
    if (this.#latest?.id === id) this.#latest = { ...this.#latest, endedAt: clock.now() };
    if (left?.isReadOnly === false && !this.#isDriven) this.#idleSince = clock.monotonic();
    this.#resume();
  }

  /** Whether a client that is no viewer is connected. Viewers alone do not keep a session alive. */
  get #isDriven(): boolean {
    return [...this.#connected.values()].some(({ isReadOnly }) => !isReadOnly);
  }

  /** Ends the session as soon as it reaches one of its limits. */
  async #watch(browser: SessionBrowser): Promise<void> {
    const { clock, limits } = this.#parts;
    for (;;) {
      await clock.wait(limits.checkMs, this.#over.signal);
      if (this.#over.signal.aborted) return;
      const reason = await this.#exceeded(browser);
      if (reason) return await this.end(reason);
    }
  }

  async #exceeded(browser: SessionBrowser): Promise<CloseReason | undefined> {
    const { clock, limits } = this.#parts;
    const now = clock.monotonic();
    const isIdle = !this.#isDriven && now - this.#idleSince >= this.#of.keepAliveMs;
    if (isIdle) return "BrowserIdle";
    if (now - this.#startedAt >= limits.sessionMsMax) return "TimeLimit";
    if (now - this.#renewedAt >= DEVTOOLS_LAPSE_MS) return "WorkerLost";
    const bytes = (await browser.chromium.memoryBytes()) ?? 0;
    return bytes >= limits.memoryBytesMax ? "MemoryLimit" : undefined;
  }

  /** Reports periodically that the session runs, and how much browser time it used. */
  async #renew(): Promise<void> {
    const { clock, limits, actors, logger, browserMsPerDay: limitMs } = this.#parts;
    const { id, account: accountId } = this.#of;
    for (;;) {
      await clock.wait(limits.renewMs, this.#over.signal);
      if (this.#over.signal.aborted) return;
      try {
        await this.#report();
        const { hasEnded } = await actors.call(devtoolsSessions, accountId, "renew", { id });
        if (hasEnded) return await this.end("WorkerLost");
        this.#renewedAt = clock.monotonic();
        if (limitMs > 0) await actors.call(browserTime, accountId, "admit", { limitMs });
      } catch (error) {
        const isUsedUp = error instanceof ActorError && error.code === "browser_time_exceeded";
        if (isUsedUp) return await this.end("BrowserTimeExceeded");
        // Other errors are ignored here: the renewal is retried until the session expires.
        if (!(error instanceof ActorError)) logger.error({ err: error, id }, "session not renewed");
      }
    }
  }

  async #report(): Promise<void> {
    const { actors, clock } = this.#parts;
    const now = clock.monotonic();
    const ms = Math.round(now - this.#reportedAt);
    if (ms <= 0) return;
    const isPart = this.#over.signal.aborted ? {} : ({ isPart: true } as const);
    const taskId = `${this.#of.id}-${this.#reports}`;
    await actors.send(browserTime, this.#of.account, "used", { ms, taskId, ...isPart });
    this.#reportedAt = now;
    this.#reports += 1;
  }
}

function wireTarget(target: {
  targetId: string;
  type: string;
  title: string;
  url: string;
}): Target {
  return { id: target.targetId, type: target.type, title: target.title, url: target.url };
}

/**
 * Converts a refusal of the browser to `not_found`. The browser refuses these commands only if their target is
 * unknown.
 */
async function found<T>(asked: Promise<T>): Promise<T> {
  try {
    return await asked;
  } catch (error) {
    if (!(error instanceof CdpError)) throw error;
    throw new ActorError("not_found", "Cannot find target: the session has none with this id");
  }
}
