/**
 * Git over HTTP (gitprotocol-http): the endpoints below a repository's address. Errors are sent as plain text, which
 * git shows to the user.
 */
import express, { type ErrorRequestHandler, type Response, type Router } from "express";
import { callsOf } from "../../../actors/runtime/calls/call-places.ts";
import { ActorError, ERRORS, type ErrorCode } from "../../../schemas/errors.ts";
import { countWork, timeWork } from "../../../schemas/meter.ts";
import { checkComplete } from "../../../schemas/repositories/check-complete.ts";
import type { Tokens } from "../../account/found-token.ts";
import { AnswerPace } from "../../http/answer-pace.ts";
import { localsOf } from "../../http/locals.ts";
import type { GitParts } from "../git-parts.ts";
import { sendLfsError } from "../lfs/lfs-answers.ts";
import { addLfsRoutes } from "../lfs/lfs-router.ts";
import type { OpenedRepo } from "../opened-repo.ts";
import {
  FetchCapabilities,
  fetchAdvertisement,
  receiveAdvertisement,
  serviceLine,
} from "./advertisement.ts";
import { GitAccess } from "./git-access.ts";
import { type Exchange, exchangeOf, nameRoute, type Service } from "./git-exchange.ts";
import { receivePack } from "./receive-pack.ts";
import { advertiseFetch, uploadPack, versionOf } from "./upload-pack.ts";

/** The path of a repository. Its name may end with `.git` or not, because other Git services accept both. */
const REPOSITORY = "/:account/:namespace/:name";
/** The account of a path. A path that writes it with escapes, which no client does, counts for no account. */
const ACCOUNT = /^\/([0-9a-f]{32})\//;

interface RouterParts extends GitParts {
  access: GitAccess;
  capabilities: FetchCapabilities;
}

interface GitEndpoint {
  method: "get" | "post";
  /** The path below the repository. */
  path: string;
  handle(parts: RouterParts): (http: Exchange) => Promise<void>;
}

const ENDPOINTS: readonly GitEndpoint[] = [
  { method: "get", path: "info/refs", handle: advertise },
  { method: "post", path: "git-upload-pack", handle: fetchPack },
  { method: "post", path: "git-receive-pack", handle: pushPack },
];

interface RouterOptions {
  now: () => number;
  tokens?: Tokens | undefined;
  publicUrl?: string | undefined;
  transfersMax?: number | undefined;
}

/** Returns the router that serves git and Git LFS. It must be mounted at `/git`. */
export function gitRouter(parts: GitParts, { now, tokens, ...large }: RouterOptions): Router {
  const router = express.Router({ caseSensitive: true });
  const access = new GitAccess({ ...parts, now, tokens });
  // Nobody has checked the client's token yet, so its calls leave room for the members of the account.
  router.use(({ path }, _response, next) =>
    callsOf({ accountId: ACCOUNT.exec(path)?.[1] ?? "", isVisitor: true }, next),
  );
  const routed = { ...parts, access, capabilities: new FetchCapabilities(parts.cache.files) };
  for (const { method, path, handle } of ENDPOINTS) {
    const answer = handle(routed);
    router[method](`${REPOSITORY}/${path}`, (request, response) =>
      answer(exchangeOf(request, response)),
    );
  }
  addLfsRoutes(router, REPOSITORY, { ...routed, ...large });
  router.use(() => {
    throw new ActorError("not_found", "Not found: this is no address that git asks for");
  });
  router.use(sayToGit);
  return router;
}

/** Serves the first request of every fetch and push: lists refs and capabilities. */
function advertise(parts: RouterParts) {
  return async (http: Exchange): Promise<void> => {
    const { request, response } = http;
    const { service } = request.query;
    if (service !== "git-upload-pack" && service !== "git-receive-pack") {
      nameRoute(response, "git_dumb", "info/refs");
      throw new ActorError("forbidden", "Only the smart protocol of git is served here");
    }
    nameRoute(response, `${service}_refs`, "info/refs");
    if (service === "git-receive-pack") return advertisePush(parts, http);
    if (versionOf(request) === 2) return advertiseCapabilities(parts, http);
    return advertiseRefs(parts, http);
  };
}

async function advertisePush(parts: RouterParts, http: Exchange): Promise<void> {
  const opened = await openForPush(parts, http);
  setType(http.response, "git-receive-pack", "advertisement");
  const version = versionOf(http.request) === 1 ? 1 : 0;
  const body = receiveAdvertisement(opened.manifest, version);
  await sendAdvertisement(parts, http, "git-receive-pack", body);
}

/**
 * Serves version 2 of the protocol: the response is the same for all repositories, and the client requests the refs
 * next.
 */
async function advertiseCapabilities(
  { access, capabilities }: RouterParts,
  http: Exchange,
): Promise<void> {
  await access.authorize(http, "git-upload-pack", async () => {});
  const offered = await capabilities.get(2);
  setType(http.response, "git-upload-pack", "advertisement");
  http.response.send(Buffer.concat([serviceLine("git-upload-pack"), offered]));
}

/** Serves versions 0 and 1 of the protocol, in which the first response lists the refs. */
async function advertiseRefs(parts: RouterParts, http: Exchange): Promise<void> {
  const opened = await open(parts, http, "git-upload-pack");
  setType(http.response, "git-upload-pack", "advertisement");
  const version = versionOf(http.request) === 1 ? 1 : 0;
  const body = fetchAdvertisement(opened.manifest, await parts.capabilities.get(0), version);
  if (body) await sendAdvertisement(parts, http, "git-upload-pack", body);
  else await advertiseFetch(parts, opened, withRefusals(http));
}

async function sendAdvertisement(
  { pace }: RouterParts,
  { response, signal }: Exchange,
  service: Service,
  body: Buffer,
): Promise<void> {
  const content = Buffer.concat([serviceLine(service), body]);
  response.setHeader("Content-Length", content.length);
  await new AnswerPace(response, pace).end(signal, content);
}

function fetchPack(parts: RouterParts) {
  return async (http: Exchange): Promise<void> => {
    meter(http, "fetch");
    beginExchange(http, "git-upload-pack");
    const opened = await open(parts, http, "git-upload-pack");
    setType(http.response, "git-upload-pack", "result");
    await uploadPack(parts, opened, withRefusals(http));
  };
}

function pushPack(parts: RouterParts) {
  return async (http: Exchange): Promise<void> => {
    meter(http, "push");
    beginExchange(http, "git-receive-pack");
    const opened = await openForPush(parts, http);
    setType(http.response, "git-receive-pack", "result");
    await receivePack(parts, opened, withRefusals(http));
  };
}

/** Records the refusals that responses with status 200 contain, for logs and metrics. */
function withRefusals(http: Exchange): Exchange & { onRefusal(code: ErrorCode): void } {
  const onRefusal = (code: ErrorCode) => {
    localsOf(http.response).refusal = code;
  };
  return { ...http, onRefusal };
}

/** Counts the operation and records its duration when the response is closed. */
function meter({ response }: Exchange, operation: "fetch" | "push"): void {
  const startedAt = performance.now();
  response.once("close", () => {
    const outcome = outcomeOf(response);
    countWork("git_operations_total", { operation, outcome });
    timeWork("git_operation_seconds", { operation }, performance.now() - startedAt);
  });
}

function outcomeOf(response: Response): "done" | "left" | "refused" | "failed" {
  const { refusal } = localsOf(response);
  if (refusal === undefined) return response.writableFinished ? "done" : "left";
  if (refusal === "cancelled") return "left";
  return ERRORS[refusal].status < 500 ? "refused" : "failed";
}

function beginExchange({ request, response }: Exchange, service: Service): void {
  nameRoute(response, service, service);
  const type = `application/x-${service}-request`;
  if (request.get("content-type") === type) return;
  throw new ActorError("unsupported_media_type", `Cannot read body: expected ${type}`);
}

function open(
  { access, manifests }: RouterParts,
  http: Exchange,
  service: Service,
): Promise<OpenedRepo> {
  return access.authorize(http, service, async (id, address) => {
    const manifest = await manifests.read(id, address, http.signal);
    return { id, accountId: address.accountId, address, manifest };
  });
}

async function openForPush(parts: RouterParts, http: Exchange): Promise<OpenedRepo> {
  const opened = await open(parts, http, "git-receive-pack");
  checkComplete(opened.manifest.status, "Cannot push");
  if (opened.manifest.readOnly) throw new ActorError("forbidden", "The repository is read-only");
  return opened;
}

/** Sets the media type without a character set, which git would not accept. */
function setType(response: Response, service: Service, part: "advertisement" | "result"): void {
  response.setHeader("Content-Type", `application/x-${service}-${part}`);
  response.setHeader("Cache-Control", "no-cache, max-age=0, must-revalidate");
}

/** Sends an error of a middleware before the router in the form that the client shows: that of git or of git-lfs. */
export const refuseGit: ErrorRequestHandler = (error: unknown, request, response, next) => {
  const send = request.path.includes("/info/lfs/") ? sendLfsError : sayToGit;
  send(error, request, response, next);
};

/** Sends an error as text, which git shows. If the status is 401, git asks the user for a password. */
const sayToGit: ErrorRequestHandler = (error: unknown, _request, response, _next) => {
  const locals = localsOf(response);
  const known = error instanceof ActorError && error.code !== "internal_error" ? error : undefined;
  locals.refusal = known?.code ?? "internal_error";
  if (!known) locals.logger.error({ err: error, route: locals.route?.path }, "request failed");
  if (response.headersSent) {
    response.destroy();
    return;
  }
  const { code, message, details } =
    known ?? new ActorError("internal_error", "A fault on our side; try again later");
  const { status } = ERRORS[code];
  if (status === 401) response.set("WWW-Authenticate", 'Basic realm="git", charset="UTF-8"');
  if (status === 429 || status === 503) {
    response.set("Retry-After", String(details.retryAfterS ?? 1));
  }
  response.status(status).type("text/plain").send(`${message}\n`);
};
