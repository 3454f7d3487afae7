/**
 * Access of a gateway to the DevTools sessions of all accounts: to their stored rows, and to the workers that run
 * them.
 */
import { randomBytes } from "node:crypto";
import type { z } from "zod";
import type { ActorClient } from "../../../actors/runtime/calls/actor-client.ts";
import type { DeepReadonly } from "../../../schemas/contract.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { parseJson } from "../../../schemas/parse-json.ts";
import { browserTime } from "../../../schemas/rendering/browser-time.ts";
import {
  CLOSE_REASONS,
  type DevtoolsSession,
  devtoolsSessions,
} from "../../../schemas/rendering/devtools-sessions.ts";
import {
  DEVTOOLS_OPEN,
  DEVTOOLS_OPEN_SHARED,
  type OpenSession,
  SESSION_REPLIES,
  type SessionReplies,
  type SessionRequest,
  sessionSubject,
  type Target,
  WorkerAnswer,
} from "../../../schemas/rendering/devtools-worker.ts";
import type { WireSession, WireTarget } from "../../../schemas/rendering/http/devtools.ts";
import { sha256 } from "../../http/sha256.ts";
import type { DevtoolsBus } from "./devtools-bus.ts";

/** Timeout for starting a session. A browser usually starts in 0.2 s, on a loaded machine later. */
const OPEN_MS_MAX = 30_000;
/**
 * Tries to start a session on a worker with a last place, each on a random worker. A refusal takes milliseconds. With two
 * workers, all tries fail once in 65,000 cases although one has a place for the account.
 */
const SHARED_TRIES_MAX = 16;
const ASK_MS_MAX = 10_000;
/** Timeout for the state of a session, short so that a list is not delayed by one worker. */
const STATE_MS_MAX = 2_000;

export interface DevtoolsParts {
  actors: ActorClient;
  bus: DevtoolsBus;
  browserMsPerDay: number;
  publicUrl: string;
  now: () => number;
}

/** Identifies one session. */
export interface SessionOf {
  accountId: string;
  id: string;
}

type Row = DeepReadonly<DevtoolsSession>;

export class DevtoolsSessions {
  readonly #parts: DevtoolsParts;

  constructor(parts: DevtoolsParts) {
    this.#parts = parts;
  }

  /** Starts a session. Resolves to its id when clients can connect. */
  async begin(
    accountId: string,
    { keepAliveMs, allowedDomains }: Pick<OpenSession, "keepAliveMs" | "allowedDomains">,
  ): Promise<SessionOf> {
    const { actors, browserMsPerDay: limitMs } = this.#parts;
    await actors.call(browserTime, accountId, "admit", { limitMs });
    const id = randomBytes(16).toString("hex");
    await actors.call(devtoolsSessions, accountId, "open", { id, keepAliveMs });
    const of: OpenSession = {
      ...{ id, account: accountId, keepAliveMs },
      ...(allowedDomains && { allowedDomains }),
    };
    try {
      await this.#start(of);
    } catch (error) {
      // Ends the session, so that a worker which starts it too late closes it again.
      await actors.call(devtoolsSessions, accountId, "end", { id, reason: "NotStarted" });
      if (error === NOBODY) throw full();
      throw error;
    }
    return { accountId, id };
  }

  /** Starts a session, first on a worker that has room for any account. */
  async #start(of: OpenSession): Promise<void> {
    try {
      await this.#askOf(DEVTOOLS_OPEN, of, OPEN_MS_MAX);
    } catch (error) {
      // The room of a worker may have gone while the request was in flight.
      const hasNoRoom = error instanceof ActorError && error.code === "busy";
      if (error !== NOBODY && !hasNoRoom) throw error;
      await this.#startOnShared(of);
    }
  }

  /**
   * Starts a session on a worker whose last place is for some accounts only. The bus chooses the worker at random, so a
   * refusal may be repeated elsewhere.
   */
  async #startOnShared(of: OpenSession): Promise<void> {
    for (let tries = 1; ; tries += 1) {
      try {
        await this.#askOf(DEVTOOLS_OPEN_SHARED, of, OPEN_MS_MAX);
        return;
      } catch (error) {
        const isRefused = error instanceof ActorError && error.code === "busy";
        if (!isRefused || tries >= SHARED_TRIES_MAX) throw error;
      }
    }
  }

  /** Sends a request to the worker of a running session. Refuses with `not_found` if the session has ended. */
  async ask<R extends SessionRequest>(
    of: SessionOf,
    request: R,
    timeoutMs = ASK_MS_MAX,
  ): Promise<SessionReplies[R["ask"]]> {
    const row = await this.#row(of);
    if (row.ended) throw over(row.ended.reason);
    const reply = await this.#askWorker(of, row, request, timeoutMs);
    const schema: z.ZodType = SESSION_REPLIES[request.ask];
    return schema.parse(reply) as SessionReplies[R["ask"]];
  }

  /** Ends a session. Returns `closed` if it had already ended. */
  async end(of: SessionOf): Promise<"closing" | "closed"> {
    const row = await this.#row(of);
    if (row.ended) return "closed";
    await this.#askWorker(of, row, { ask: "end" }, ASK_MS_MAX).catch((error: unknown) => {
      if (!(error instanceof ActorError && error.code === "not_found")) throw error;
    });
    return "closing";
  }

  /** The running sessions. */
  async list(accountId: string): Promise<WireSession[]> {
    const { sessions } = await this.#parts.actors.call(devtoolsSessions, accountId, "list", {});
    const shown = sessions.map((row) => this.#shown({ accountId, id: row.id }, row));
    return (await Promise.all(shown)).filter(({ endTime }) => endTime === undefined);
  }

  async get(of: SessionOf): Promise<WireSession> {
    return await this.#shown(of, await this.#row(of));
  }

  /** Returns the session's targets. If `liveViewMs` is set, each page gets a live view. */
  async targets(of: SessionOf, liveViewMs: number | undefined): Promise<WireTarget[]> {
    const targets = await this.ask(of, { ask: "targets" });
    return await Promise.all(targets.map((target) => this.wireTarget(of, target, liveViewMs)));
  }

  async wireTarget(
    of: SessionOf,
    target: Target,
    liveViewMs: number | undefined,
  ): Promise<WireTarget> {
    const view =
      liveViewMs !== undefined && target.type === "page"
        ? await this.addLiveView(of, target.id, liveViewMs)
        : undefined;
    return {
      ...target,
      description: "",
      webSocketDebuggerUrl: `${this.socketUrl(of)}/page/${target.id}`,
      ...(view && { devtoolsFrontendUrl: view.page }),
    };
  }

  /** Creates an address that shows a page until the address expires. Only a hash of its token is stored. */
  async addLiveView(
    of: SessionOf,
    targetId: string,
    ms: number,
  ): Promise<{ page: string; socket: string }> {
    const token = randomBytes(32).toString("base64url");
    const { actors, now, publicUrl } = this.#parts;
    const view = { hash: sha256(token), targetId, expiresAt: now() + ms };
    await actors.call(devtoolsSessions, of.accountId, "addLiveView", { id: of.id, view });
    const path = `/live-view/${of.accountId}/${of.id}`;
    return {
      page: `${publicUrl}${path}?token=${token}`,
      socket: `${socketOrigin(publicUrl)}${path}/socket?token=${token}`,
    };
  }

  /** The address of the session's WebSocket. */
  socketUrl({ accountId, id }: SessionOf): string {
    const origin = socketOrigin(this.#parts.publicUrl);
    return `${origin}/v4/accounts/${accountId}/browser-rendering/devtools/browser/${id}`;
  }

  async #row({ accountId, id }: SessionOf): Promise<Row> {
    return await this.#parts.actors.call(devtoolsSessions, accountId, "get", { id });
  }

  async #askWorker(of: SessionOf, row: Row, request: SessionRequest, timeoutMs: number) {
    try {
      return await this.#askOf(sessionSubject(of.id), request, timeoutMs);
    } catch (error) {
      if (error !== NOBODY) throw error;
      // No process subscribes, but the worker has not reported the session yet. So the session may still be starting.
      if (!row.isRunning) throw new ActorError("unavailable", "Cannot use session: it is starting");
      const lost = { id: of.id, reason: "WorkerLost" } as const;
      await this.#parts.actors.call(devtoolsSessions, of.accountId, "end", lost);
      throw over("WorkerLost");
    }
  }

  async #askOf(subject: string, request: object, timeoutMs: number): Promise<unknown> {
    const asked = await this.#parts.bus.ask(subject, JSON.stringify(request), timeoutMs);
    if (asked === "nobody") throw NOBODY;
    if (asked === "silence") {
      const text = "Cannot use session: its browser worker does not answer";
      throw new ActorError("unavailable", text, { retryAfterS: 1 });
    }
    const answer = WorkerAnswer.parse(parseJson(asked.answer));
    if ("reply" in answer) return answer.reply;
    throw new ActorError(answer.refusal.code, answer.refusal.message);
  }

  /** Returns a session in its wire shape. If the worker of a session is gone, the session is shown as ended. */
  async #shown(of: SessionOf, row: Row): Promise<WireSession> {
    const common = { sessionId: of.id, startTime: row.startedAt };
    if (row.ended) {
      const { at, reason } = row.ended;
      return {
        ...{ ...common, lastUpdated: at, endTime: at },
        ...{ closeReason: CLOSE_REASONS[reason], closeReasonText: reason },
      };
    }
    try {
      const { connection } = SESSION_REPLIES.state.parse(
        await this.#askWorker(of, row, { ask: "state" }, STATE_MS_MAX),
      );
      return {
        ...common,
        ...this.#running(of, row),
        ...(connection && wireConnection(connection)),
      };
    } catch (error) {
      if (!(error instanceof ActorError)) throw error;
      // The session has ended meanwhile, or is just ending, so its row is read again.
      const now = await this.#row(of);
      if (now.ended) return await this.#shown(of, now);
      return { ...common, ...this.#running(of, row) };
    }
  }

  #running(of: SessionOf, { renewedAt }: Row) {
    return { lastUpdated: renewedAt, webSocketDebuggerUrl: this.socketUrl(of) };
  }
}

const NOBODY = new Error("nobody listens");

const full = () =>
  new ActorError("busy", "Cannot begin session: no browser worker has room for one more", {
    retryAfterS: 5,
  });

const over = (reason: string) =>
  new ActorError("not_found", `Cannot use session: it has ended (${reason})`);

const socketOrigin = (publicUrl: string) => publicUrl.replace(/^http/, "ws");

function wireConnection({
  id,
  startedAt,
  endedAt,
}: NonNullable<SessionReplies["state"]["connection"]>) {
  return {
    connectionId: id,
    connectionStartTime: startedAt,
    ...(endedAt !== undefined && { connectionEndTime: endedAt }),
  };
}
