/** Routes requests to apps: to the endpoints that their configuration declares, and otherwise to their own code. */
import type { Request, RequestHandler, Response } from "express";
import type { ActorClient } from "../../actors/runtime/calls/actor-client.ts";
import { callsOf } from "../../actors/runtime/calls/call-places.ts";
import { abortable } from "../../actors/runtime/lib/time-limit.ts";
import type { BlobStore } from "../../actors/runtime/store/blob-store.ts";
import { appEntry } from "../../schemas/apps/agent.ts";
import type { ServingApp } from "../../schemas/apps/app.ts";
import type { AnswerStream, AppAnswer, AppRequest } from "../../schemas/apps/app-exchange.ts";
import { appKey } from "../../schemas/apps/app-names.ts";
import type { AgentLimits } from "../../schemas/apps/app-usage.ts";
import { APP_REQUEST_MS_MAX } from "../../schemas/apps/limits.ts";
import { ActorError } from "../../schemas/errors.ts";
import { SMALL_BODY_BYTES_MAX } from "../../schemas/memory-limits.ts";
import { AnswerPace } from "../http/answer-pace.ts";
import { endUnread } from "../http/end-unread.ts";
import { type AppTarget, localsOf } from "../http/locals.ts";
import { requestLog } from "../http/middleware/request-log.ts";
import { writeAnswer } from "../http/write-answer.ts";
import { AccountRoom } from "./account-room.ts";
import { type AppAddresses, calledBaseOf, seenOriginOf } from "./app-addresses.ts";
import { AppBodies, type TakenBody } from "./app-bodies.ts";
import { answerHeaders, requestHeaders } from "./app-headers.ts";
import { pathOf, withoutInside } from "./app-requests.ts";
import { type AnswerBelow, BegunRequests } from "./begun-requests.ts";
import type { ServingApps } from "./serving-apps.ts";
import {
  type DeclaredEndpoint,
  endpointOf,
  webhookEndpoints,
} from "./webhooks/declared-endpoint.ts";

interface AppRouterParts {
  actors: ActorClient;
  blobs: Pick<BlobStore, "put" | "get" | "remove">;
  serving: ServingApps;
  addresses: AppAddresses;
  now: () => number;
  /** Limits of the agents of one account. */
  limits: AgentLimits;
  answerBelow: AnswerBelow;
  streams: StreamReader;
  /** Aborts when this process begins to stop. */
  stopping: AbortSignal;
}

/** Reads responses that apps are still writing: see read-answer-stream.ts. */
export interface StreamReader {
  read(rest: AnswerStream, signal: AbortSignal): AsyncIterable<Uint8Array>;
  leave(rest: AnswerStream): void;
}

/** Serves the requests that address an app according to `appTarget`, and passes on all others. */
export function appRouter(parts: AppRouterParts): RequestHandler {
  const answerByCode = byCode(parts);
  const answerByDeclaration = byDeclaration(parts);
  return async (request, response, next) => {
    const { appTarget: asked } = localsOf(response);
    if (!asked) return next();
    const owner = { accountId: asked.accountId, isVisitor: true };
    await callsOf(owner, () => answer({ request, response, asked }));
  };

  async function answer({ request, response, asked }: Exchange): Promise<void> {
    requestLog(request, response, () => {});
    // The platform's headers are meant for its own pages, so they are removed. An app's response sets its own
    // headers.
    if (asked.isOwnOrigin)
      for (const name of response.getHeaderNames()) response.removeHeader(name);
    const app = await parts.serving.get(asked);
    const declared = endpointOf(app.config, pathOf(asked.path));
    if (declared) await answerByDeclaration({ request, response, asked }, { app, declared });
    else await answerByCode({ request, response, asked });
  }
}

interface Exchange {
  request: Request;
  response: Response;
  asked: AppTarget;
}

/** Answers a request to an endpoint that the app's configuration declares. */
function byDeclaration({ serving, addresses, ...parts }: AppRouterParts) {
  const webhooks = webhookEndpoints({ ...parts, room: new AccountRoom(parts) });
  return async (
    { request, response, asked }: Exchange,
    { app, declared }: { app: ServingApp; declared: DeclaredEndpoint },
  ): Promise<void> => {
    const { path, ...of } = asked;
    const answer = await webhooks.answer({
      ...{ accountId: of.accountId, app: of.app, config: app.config, declared },
      secretOf: (name) => serving.secretOf(asked, app, name),
      request: {
        method: request.method,
        calledUrl: calledBaseOf(addresses, of) + path,
        url: seenOriginOf(addresses, of) + path,
        headers: headersOf(request, asked),
        body: request,
      },
      logger: localsOf(response).logger,
    });
    response.status(answer.status).set(answer.headers);
    // A refusal may come before the request was read to its end.
    if (request.complete) response.end(answer.body);
    else await endUnread(request, response, answer.body);
  };
}

/** Answers a request by the app's own code. */
function byCode(parts: AppRouterParts) {
  const { actors, blobs, streams, addresses } = parts;
  const bodies = new AppBodies(blobs);
  const begun = new BegunRequests(parts.answerBelow);
  return async (exchange: Exchange): Promise<void> => {
    const { request, response, asked } = exchange;
    const key = appKey(asked.accountId, asked.app);
    const declaredBytes = Number(request.get("content-length") ?? 0);
    const left = hangUpSignal(response);
    const { body, answered, release } = await bodies.take(request, { key, declaredBytes });
    let answering: Promise<AppAnswer> | undefined;
    try {
      const input = { ...appRequest(addresses, exchange), ...(body && { body }) };
      const options = { deadlineMs: APP_REQUEST_MS_MAX };
      answering = begun.run(input, (wanted) =>
        actors.call(appEntry, key, "request", wanted, options),
      );
      const answer = await abortable(answering, left).catch((error: unknown) => {
        throw withoutInside(error);
      });
      answering = undefined;
      const room = { answered, release };
      await writeAppAnswer(parts, { ...exchange, answer, left, bodies, room });
    } finally {
      // If the client has left, its request stays in memory until the call ends. Then the unread response is deleted.
      await answering?.then((answer) => drop(answer, { blobs, streams })).catch(() => {});
      if (left.aborted) await release();
      else left.addEventListener("abort", () => void release(), { once: true });
    }
  };
}

interface WrittenAnswer extends Exchange {
  answer: AppAnswer;
  left: AbortSignal;
  bodies: AppBodies;
  room: Pick<TakenBody, "answered" | "release">;
}

async function writeAppAnswer(
  { streams, stopping }: AppRouterParts,
  { request, response, asked, answer, left, bodies, room }: WrittenAnswer,
): Promise<void> {
  const rest = answer.rest && new Rest(streams, answer.rest);
  try {
    const bytes = await bodies.read(answer.body);
    room.answered(bytes.length);
    const prefix = asked.isOwnOrigin ? undefined : `/apps/${asked.accountId}/${asked.app}`;
    response.status(answer.status);
    // The headers are set with `setHeader`, because Express would add a charset to the app's Content-Type.
    const { cookiePrefix } = asked;
    const headers = answerHeaders(answer.headers, { prefix, cookiePrefix });
    for (const [name, value = ""] of Object.entries(headers)) response.setHeader(name, value);
    if (!rest && request.method !== "HEAD" && bytes.length > SMALL_BODY_BYTES_MAX) {
      // The bytes count for the app until the client has read them, so a client that reads nothing is cut off.
      response.setHeader("Content-Length", bytes.length);
      return await new AnswerPace(response).end(left, bytes);
    }
    if (request.method === "HEAD" || !rest) return void response.end(bytes);
    response.flushHeaders();
    // The request's bytes, which may be many, are released now, so that other requests can use the room while this
    // response is still being sent.
    await room.release();
    const signal = AbortSignal.any([left, stopping]);
    await writeAnswer(rest.after(bytes, signal), response, { bytes: null, signal });
  } finally {
    rest?.leaveUnread();
  }
}

/** Returns a signal that aborts when the response closes, whether it was written or its client has left. */
function hangUpSignal(response: Response): AbortSignal {
  const left = new AbortController();
  const leave = () =>
    left.abort(
      // Most sockets close after the response was written. Then nobody reads the reason, so no error is created.
      response.writableFinished
        ? "answered"
        : new ActorError("cancelled", "Cannot answer: the client has left"),
    );
  if (response.closed) leave();
  else response.once("close", leave);
  return left.signal;
}

async function drop(
  { body, rest }: AppAnswer,
  { blobs, streams }: Pick<AppRouterParts, "blobs" | "streams">,
): Promise<void> {
  if (rest) streams.leave(rest);
  if (body && "blob" in body) await blobs.remove(body.blob);
}

function appRequest(addresses: AppAddresses, { request, asked }: Exchange): AppRequest {
  return {
    method: request.method,
    url: seenOriginOf(addresses, asked) + asked.path,
    headers: headersOf(request, asked),
  };
}

/** The rest of a response's body. The app writes it only while it is read. */
class Rest {
  readonly #streams: StreamReader;
  readonly #rest: AnswerStream;
  #isRead = false;

  constructor(streams: StreamReader, rest: AnswerStream) {
    this.#streams = streams;
    this.#rest = rest;
  }

  async *after(first: Uint8Array, signal: AbortSignal): AsyncGenerator<Uint8Array> {
    if (first.length > 0) yield first;
    this.#isRead = true;
    yield* this.#streams.read(this.#rest, signal);
  }

  leaveUnread(): void {
    if (!this.#isRead) this.#streams.leave(this.#rest);
  }
}

export function headersOf(
  request: Request,
  { isOwnOrigin, cookiePrefix }: Pick<AppTarget, "isOwnOrigin" | "cookiePrefix">,
) {
  return requestHeaders(request, { isOwnOrigin, cookiePrefix, client: request.ip });
}
