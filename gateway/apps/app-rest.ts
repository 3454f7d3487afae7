/**
 * Serves calls of the REST API that app code makes through its bindings. A call arrives over the bus and is answered
 * by the same routes that clients use. No token is involved: the identity of the caller never leaves this process.
 */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { request as ask, createServer, type IncomingMessage } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import express, { type RequestHandler } from "express";
import type { Logger } from "pino";
import type { AnswerOn } from "../../actors/runtime/bus/answer.ts";
import type { BlobStore } from "../../actors/runtime/store/blob-store.ts";
import type { HeaderList } from "../../schemas/apps/app-exchange.ts";
import { appKey } from "../../schemas/apps/app-names.ts";
import {
  APP_REST_QUEUE,
  APP_REST_SUBJECT,
  type AppRestAnswer,
  AppRestRequest,
} from "../../schemas/apps/app-rest.ts";
import { APP_ANSWER_BYTES_MAX } from "../../schemas/apps/limits.ts";
import { ActorError, ERRORS } from "../../schemas/errors.ts";
import { failure } from "../http/envelope.ts";
import { type Caller, localsOf } from "../http/locals.ts";
import { handleError } from "../http/middleware/handle-error.ts";
import { notFound } from "../http/middleware/not-found.ts";
import { requestId } from "../http/middleware/request-id.ts";
import { AppBodies } from "./app-bodies.ts";
import { BINDING_PERMISSIONS } from "./binding-permissions.ts";

const CALLER = "x-trunkline-caller";

interface AppRestParts {
  /** Creates the routes, with the given handler to authenticate the caller. */
  routes(authenticated: RequestHandler): RequestHandler;
  /** Git over HTTP, which accepts tokens of single repositories. */
  git?: RequestHandler;
  answerOn: AnswerOn;
  blobs: Pick<BlobStore, "put" | "get" | "remove">;
  logger: Logger;
  now: () => number;
}

interface AppRest {
  close(): Promise<void>;
}

/** The callers of the running calls, by the random name that each call carries in a header. */
type Callers = Map<string, Caller>;

/** Resolves when this gateway accepts calls of apps. */
export async function serveAppRest(parts: AppRestParts): Promise<AppRest> {
  const { blobs, logger, answerOn } = parts;
  const callers: Callers = new Map();
  const folder = await mkdtemp(join(tmpdir(), "trunkline-rest-"));
  const socketPath = join(folder, "rest");
  const server = createServer(innerApp(parts, callers));
  server.listen(socketPath);
  await once(server, "listening");
  const call = callRoutes(parts, { bodies: new AppBodies(blobs), callers, socketPath });
  const answer = (payload: string) => answerCall(payload, call, logger);
  const leave = answerOn(APP_REST_SUBJECT, answer, { queue: APP_REST_QUEUE });
  return {
    async close() {
      leave();
      server.close();
      server.closeAllConnections();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

function innerApp({ logger, routes, git }: AppRestParts, callers: Callers) {
  const app = express();
  app.disable("x-powered-by");
  app.disable("etag");
  app.enable("case sensitive routing");
  app.set("query parser", "simple");
  app.use(requestId(logger));
  app.use("/v4", routes(authenticate(callers)));
  if (git) app.use("/git", holdToNamespace(callers), git);
  app.use(notFound);
  app.use(handleError);
  return app;
}

function authenticate(callers: Callers): RequestHandler {
  return (request, response, next) => {
    const caller = callers.get(request.get(CALLER) ?? "");
    if (!caller) throw new ActorError("unauthenticated", "Cannot authenticate: unknown caller");
    localsOf(response).caller = caller;
    next();
  };
}

/** Refuses repositories of other namespaces. The path begins with the account and the namespace. */
function holdToNamespace(callers: Callers): RequestHandler {
  return (request, response, next) => {
    const caller = callers.get(request.get(CALLER) ?? "");
    const { namespace } = caller ?? {};
    const asked = request.path.split("/")[2];
    if (!caller || namespace === undefined || asked !== namespace) {
      const text = `Cannot open repository: expected one of the namespace "${namespace}"`;
      throw new ActorError("forbidden", text);
    }
    localsOf(response).caller = caller;
    next();
  };
}

type CallRoutes = (asked: AppRestRequest) => Promise<AppRestAnswer>;

/** Never rejects. */
async function answerCall(payload: string, call: CallRoutes, logger: Logger): Promise<string> {
  try {
    return JSON.stringify(await call(AppRestRequest.parse(JSON.parse(payload))));
  } catch (error) {
    if (!(error instanceof ActorError)) logger.error({ err: error }, "call of an app failed");
    return JSON.stringify(refused(error));
  }
}

function callRoutes(
  { now }: AppRestParts,
  { bodies, callers, socketPath }: { bodies: AppBodies; callers: Callers; socketPath: string },
): CallRoutes {
  return async (asked) => {
    const { accountId, app, permission, request, deadlineAt } = asked;
    // A host of an earlier version sends no namespace. Such a call must not reach all namespaces, so it gets an empty
    // one.
    const { namespace = "" } = asked;
    const path = pathOf(request.url, accountId);
    const key = appKey(accountId, app);
    const body = await bodies.read(request.body);
    const name = randomBytes(16).toString("hex");
    callers.set(name, {
      ...{ accountId, app, tokenId: `app ${app}`, permissions: BINDING_PERMISSIONS[permission] },
      ...(permission === "artifacts" && { namespace }),
    });
    try {
      const response = await send({
        ...{ socketPath, path, method: request.method, body },
        headers: [...request.headers.filter(([header]) => isCarried(header, path)), [CALLER, name]],
        withinMs: Math.max(1, deadlineAt - now()),
      });
      const bytes = await readAll(response);
      const answered = await bodies.write(bytes, key);
      return {
        status: response.statusCode ?? ERRORS.internal_error.status,
        headers: answeredHeaders(response),
        ...(answered && { body: answered }),
      };
    } finally {
      callers.delete(name);
    }
  };
}

interface SentCall {
  socketPath: string;
  path: string;
  method: string;
  headers: HeaderList;
  body: Buffer;
  withinMs: number;
}

function send({ headers, body, withinMs, ...where }: SentCall): Promise<IncomingMessage> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const sent = ask({
    ...where,
    headers: [...headers.flat(), "host", "app", "content-length", String(body.length)],
    signal: AbortSignal.timeout(withinMs),
  });
  sent.on("response", resolve);
  sent.on("error", (error) => {
    const late = error.name === "AbortError";
    const text = "Cannot answer: the call's deadline passed";
    reject(late ? new ActorError("deadline_exceeded", text) : error);
  });
  sent.end(body);
  return promise;
}

/**
 * Converts `http://trunkline/<path below the account>` to a path of the API. `/git/` leads to the account's
 * repositories. Refuses other hosts. No path can leave the account, because parsing the URL resolves `..`.
 */
function pathOf(url: string, accountId: string): string {
  const read = URL.parse(url);
  if (read?.origin === "http://trunkline") {
    const [, repository] = /^\/git(\/.*)$/.exec(read.pathname) ?? [];
    if (repository !== undefined) return `/git/${accountId}${repository}${read.search}`;
    return `/v4/accounts/${accountId}${read.pathname}${read.search}`;
  }
  throw new ActorError("forbidden", "Cannot call the API: expected a path below the account");
}

const NOT_CARRIED = new Set(["host", "content-length", "cookie", CALLER]);

/**
 * Returns whether the app's header is passed on. The app has no token, so `authorization` is only passed on to git,
 * which needs the repository's token.
 */
function isCarried(header: string, path: string): boolean {
  const name = header.toLowerCase();
  return !NOT_CARRIED.has(name) && (name !== "authorization" || path.startsWith("/git/"));
}

function answeredHeaders({ rawHeaders }: IncomingMessage): HeaderList {
  const headers: HeaderList = [];
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    headers.push([rawHeaders[index]?.toLowerCase() ?? "", rawHeaders[index + 1] ?? ""]);
  }
  return headers.filter(
    ([name]) => !["connection", "keep-alive", "transfer-encoding"].includes(name),
  );
}

async function readAll(response: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response) {
    bytes += chunk.length;
    if (bytes > APP_ANSWER_BYTES_MAX) {
      const text = `Cannot answer: the answer is larger than ${APP_ANSWER_BYTES_MAX} bytes`;
      throw new ActorError("body_too_large", text);
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, bytes);
}

function refused(error: unknown): AppRestAnswer {
  const refusal =
    error instanceof ActorError
      ? error
      : new ActorError(
          "internal_error",
          "Cannot answer: internal error; its log line has the id of this request",
        );
  const { status, code } = ERRORS[refusal.code];
  const body = failure([{ code, message: refusal.message }]);
  return {
    status,
    headers: [["content-type", "application/json; charset=utf-8"]],
    body: { text: JSON.stringify(body) },
  };
}
