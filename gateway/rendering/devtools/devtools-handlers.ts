/** The handlers of the routes of DevTools sessions. */
import type { Response } from "express";
import type { z } from "zod";
import { ActorError } from "../../../schemas/errors.ts";
import { parseJson } from "../../../schemas/parse-json.ts";
import type { SessionRequest, Target } from "../../../schemas/rendering/devtools-worker.ts";
import {
  type BeginBody,
  type BeginQuery,
  ConnectionGuardrails,
  GUARDRAILS_HEADER,
  type LaunchQuery,
  type LiveViewBody,
  type NewTargetQuery,
  SessionGuardrails,
  type SessionPath,
  type SessionsQuery,
  type TargetPath,
  type TargetsQuery,
} from "../../../schemas/rendering/http/devtools.ts";
import { parseRequest } from "../../http/parse-request.ts";
import type { RouteRequest } from "../../http/route.ts";
import { upgradeOf } from "../../http/upgrade-requests.ts";
import { type DevtoolsParts, DevtoolsSessions, type SessionOf } from "./devtools-sessions.ts";
import { openSocket } from "./devtools-socket.ts";
import { offeredProtocol } from "./offered-protocol.ts";

export type DevtoolsRoutesParts = DevtoolsParts;

type OfSession<Q = unknown, B = unknown> = RouteRequest<z.output<typeof SessionPath>, Q, B>;
type OfTarget = RouteRequest<z.output<typeof TargetPath>>;

/** Returns the handlers of all routes, by the name of their operation. */
export function devtoolsHandlers(parts: DevtoolsRoutesParts) {
  const sessions = new DevtoolsSessions(parts);
  return {
    ...beginnings(parts, sessions),
    ...sessionReads(sessions),
    ...targetHandlers(sessions),
    connect: (asked: OfSession, response: Response) =>
      open(asked, response, { parts, sessions, of: sessionOf(asked) }),
    connectToTarget: (asked: OfTarget, response: Response) => {
      const targetId = asked.parameters.target_id;
      return open(asked, response, { parts, sessions, of: sessionOf(asked), targetId });
    },
  };
}

function beginnings(parts: DevtoolsRoutesParts, sessions: DevtoolsSessions) {
  return {
    async begin({ caller, query, body }: RouteRequest<unknown, BeginQuery, BeginBody>) {
      const of = await sessions.begin(caller.accountId, {
        keepAliveMs: query.keep_alive,
        allowedDomains: body.guardrails?.allowedDomains,
      });
      const targets = query.targets && {
        targets: await sessions.targets(of, query.liveViewUrlExpiresInMs),
      };
      const result = { sessionId: of.id, webSocketDebuggerUrl: sessions.socketUrl(of), ...targets };
      return { result };
    },
    async launch(asked: RouteRequest<unknown, LaunchQuery>, response: Response) {
      const { accountId } = asked.caller;
      // Refuses a request that can get no WebSocket, before a session is started for it.
      upgradeOf(response, accountId);
      const { allowedDomains } = guardrailsOf(response, SessionGuardrails);
      const keepAliveMs = asked.query.keep_alive;
      const of = await sessions.begin(accountId, { keepAliveMs, allowedDomains });
      await openSocket(response, {
        ...{ sessions, of, bus: parts.bus, isReadOnly: false },
        isStillGood: asked.isStillAllowed,
      });
    },
  };
}

function sessionReads(sessions: DevtoolsSessions) {
  return {
    async list({ caller, query }: RouteRequest<unknown, SessionsQuery>) {
      const all = await sessions.list(caller.accountId);
      return { result: all.slice(query.offset, query.offset + query.limit) };
    },
    get: async (asked: OfSession) => ({ result: await sessions.get(sessionOf(asked)) }),
    end: async (asked: OfSession) => ({ result: { status: await sessions.end(sessionOf(asked)) } }),
    async version(asked: OfSession) {
      const of = sessionOf(asked);
      const found = await sessions.ask(of, { ask: "version" });
      const [webkit = ""] = /(?<=AppleWebKit\/)[\d.]+/.exec(found.userAgent) ?? [];
      return {
        result: {
          Browser: found.product,
          "Protocol-Version": found.protocolVersion,
          "User-Agent": found.userAgent,
          "V8-Version": found.jsVersion,
          "WebKit-Version": `${webkit} (${found.revision})`,
          webSocketDebuggerUrl: sessions.socketUrl(of),
        },
      };
    },
    async protocol(asked: OfSession) {
      await sessions.ask(sessionOf(asked), { ask: "state" });
      return { result: offeredProtocol() };
    },
    async makeLiveView(asked: OfSession<unknown, LiveViewBody>) {
      const of = sessionOf(asked);
      const { targetId, expiresInMs, mode } = asked.body;
      const target = await pageOf(sessions, of, targetId);
      const { page, socket } = await sessions.addLiveView(of, target.id, expiresInMs);
      const options = { mode, guardrails: { mode: "readonly" as const } };
      return {
        result: { id: target.id, devtoolsFrontendUrl: page, webSocketDebuggerUrl: socket, options },
      };
    },
  };
}

function targetHandlers(sessions: DevtoolsSessions) {
  const act = async (asked: OfTarget, ask: "activateTarget" | "closeTarget") => {
    const request: SessionRequest = { ask, targetId: asked.parameters.target_id };
    await sessions.ask(sessionOf(asked), request);
  };
  return {
    async listTargets(asked: OfSession<TargetsQuery>) {
      const { liveViewUrlExpiresInMs } = asked.query;
      return { result: await sessions.targets(sessionOf(asked), liveViewUrlExpiresInMs) };
    },
    async getTarget(asked: OfTarget) {
      const of = sessionOf(asked);
      const targets = await sessions.ask(of, { ask: "targets" });
      const target = targets.find(({ id }) => id === asked.parameters.target_id);
      if (!target) throw unknownTarget();
      return { result: await sessions.wireTarget(of, target, undefined) };
    },
    async newTarget(asked: OfSession<NewTargetQuery>) {
      const of = sessionOf(asked);
      const { url, liveViewUrlExpiresInMs } = asked.query;
      const target = await sessions.ask(of, { ask: "newTarget", url });
      return { result: await sessions.wireTarget(of, target, liveViewUrlExpiresInMs) };
    },
    async activateTarget(asked: OfTarget) {
      await act(asked, "activateTarget");
      return { result: { message: "Target activated" } };
    },
    async closeTarget(asked: OfTarget) {
      await act(asked, "closeTarget");
      return { result: { message: "Target is closing" } };
    },
  };
}

interface Opening {
  parts: DevtoolsRoutesParts;
  sessions: DevtoolsSessions;
  of: SessionOf;
  targetId?: string;
}

async function open(asked: RouteRequest, response: Response, { parts, ...opening }: Opening) {
  upgradeOf(response, asked.caller.accountId);
  const { mode } = guardrailsOf(response, ConnectionGuardrails);
  await openSocket(response, {
    ...{ ...opening, bus: parts.bus, isReadOnly: mode === "readonly" },
    isStillGood: asked.isStillAllowed,
  });
}

/** Reads the guardrails from a header of the request, which contains base64url of JSON. */
function guardrailsOf<S extends z.ZodType>({ req }: Response, schema: S): z.output<S> {
  const text = req.get(GUARDRAILS_HEADER);
  const value = text === undefined ? {} : parseJson(Buffer.from(text, "base64url").toString());
  return parseRequest(schema, value, `/header/${GUARDRAILS_HEADER}`) as z.output<S>;
}

const sessionOf = ({ caller, parameters }: OfSession): SessionOf => ({
  accountId: caller.accountId,
  id: parameters.session_id,
});

async function pageOf(sessions: DevtoolsSessions, of: SessionOf, id?: string): Promise<Target> {
  const targets = await sessions.ask(of, { ask: "targets" });
  const page = targets.find((one) => one.type === "page" && (id === undefined || one.id === id));
  if (!page) throw unknownTarget();
  return page;
}

const unknownTarget = () =>
  new ActorError("not_found", "Cannot find target: the session has none with this id");
