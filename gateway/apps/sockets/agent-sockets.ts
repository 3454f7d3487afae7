/**
 * The sockets of agents that this gateway holds. The gateway opens a socket if an app accepts it. The hosts of agents
 * send actions for their sockets.
 */
import { randomBytes, randomUUID } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { Logger } from "pino";
import type { AnswerOn } from "../../../actors/runtime/bus/answer.ts";
import type { ActorClient } from "../../../actors/runtime/calls/actor-client.ts";
import { callsOf } from "../../../actors/runtime/calls/call-places.ts";
import { appEntry, type Connection } from "../../../schemas/apps/agent.ts";
import {
  type SocketAction,
  SocketBatch,
  type SocketBatchAnswer,
  socketsSubject,
} from "../../../schemas/apps/agent-sockets.ts";
import { app as appContract } from "../../../schemas/apps/app.ts";
import type { AppAnswer, AppRequest } from "../../../schemas/apps/app-exchange.ts";
import {
  agentKey,
  appKey,
  isAddress,
  readAgentKey,
  readAppKey,
} from "../../../schemas/apps/app-names.ts";
import { APP_REQUEST_MS_MAX, SOCKETS_UNREAD_BYTES_MAX } from "../../../schemas/apps/limits.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { parseJson } from "../../../schemas/parse-json.ts";
import { callFew } from "../../http/call-few.ts";
import type { AppTarget } from "../../http/locals.ts";
import type { Admission, PendingUpgrade, SocketRoute } from "../../http/socket-router.ts";
import { UnreadBytes } from "../../http/unread-bytes.ts";
import { type AppAddresses, readAppRequest, seenOriginOf } from "../app-addresses.ts";
import { requestHeaders } from "../app-headers.ts";
import { pathOf, withoutInside } from "../app-requests.ts";
import { AgentSocket, type AgentSocketParts } from "./agent-socket.ts";
import { frameBytes } from "./frame-bytes.ts";

const CONNECTION_ID_CHARS_MAX = 256;
/**
 * Limit of the concurrent checks whether agents still know their sockets. After an outage of the bus, thousands of
 * sockets must be checked.
 */
export const SOCKET_CHECKS_MAX = 64;
/** Interval of pings. A client that has disappeared without closing its socket is noticed after two intervals. */
const SOCKET_PING_MS = 30_000;

interface AgentSocketsParts {
  actors: Pick<ActorClient, "call">;
  answerOn: AnswerOn;
  /** Calls `listener` when the bus is connected again after an outage. Returns a function that unsubscribes. */
  onReconnect(listener: () => void): () => void;
  addresses: AppAddresses;
  /** Returns the address of the client, which trusted proxies report. */
  clientOf(request: IncomingMessage): string | undefined;
  logger: Logger;
  /** Defaults to SOCKET_PING_MS. */
  pingMs?: number;
  /** Defaults to SOCKETS_UNREAD_BYTES_MAX. */
  unreadBytesMax?: number;
}

/**
 * The sockets of an agent at this gateway, and the last batch that the gateway applied, so that it applies none
 * twice.
 */
interface Progress {
  sockets: Map<number, AgentSocket>;
  owner: string;
  batch: number;
  commit: number;
  part: number;
}

export class AgentSockets implements SocketRoute {
  readonly #parts: AgentSocketsParts;
  readonly #id = randomBytes(8).toString("hex");
  readonly #agents = new Map<string, Progress>();
  /** Running notices to agents about sockets that begin and end. */
  readonly #telling = new Set<Promise<void>>();
  readonly #unread: UnreadBytes;
  readonly #leave: () => void;
  readonly #pings: NodeJS.Timeout;
  #last = 0;
  #isSearching = false;

  constructor(parts: AgentSocketsParts) {
    this.#parts = parts;
    this.#unread = new UnreadBytes(parts.unreadBytesMax ?? SOCKETS_UNREAD_BYTES_MAX);
    const leave = parts.answerOn(socketsSubject(this.#id), (payload) => this.#take(payload));
    const forget = parts.onReconnect(() => this.#check());
    this.#leave = () => {
      leave();
      forget();
    };
    this.#pings = setInterval(() => this.#ping(), parts.pingMs ?? SOCKET_PING_MS).unref();
  }

  match(_url: URL, request: IncomingMessage): boolean {
    return this.#asked(request) !== undefined;
  }

  /** Lets the app's own router choose the agent that accepts the socket, or answer instead of an agent. */
  async admit(request: IncomingMessage, { signal, countFor }: PendingUpgrade): Promise<Admission> {
    const asked = this.#asked(request);
    if (!asked) throw new Error("Cannot admit socket: it is for no app");
    const { isOwnOrigin, cookiePrefix, path, ...of } = asked;
    pathOf(path);
    const { accountId } = of;
    countFor(accountId);
    const client = this.#parts.clientOf(request);
    const upgrade: AppRequest = {
      method: "GET",
      url: seenOriginOf(this.#parts.addresses, asked) + path,
      headers: [
        ...requestHeaders(request, { isOwnOrigin, cookiePrefix, client }),
        ["upgrade", "websocket"],
      ],
    };
    const options = { deadlineMs: APP_REQUEST_MS_MAX, signal };
    const key = appKey(accountId, of.app);
    const said = await callsOf({ accountId, isVisitor: true }, () =>
      this.#parts.actors.call(appEntry, key, "upgrade", upgrade, options),
    ).catch((error: unknown) => {
      throw withoutInside(error);
    });
    if ("answer" in said) return { refuse: plainAnswer(said.answer) };
    const { className, name } = said.accept;
    const agent = agentKey({ ...of, className, name });
    if (!isAddress(agent)) {
      throw new ActorError("invalid_request", "Cannot connect: the name of the agent is too long");
    }
    const { request: heard, props } = said;
    return {
      accountId,
      accept: (socket, stream) =>
        this.#begin({ socket, stream, accountId, key: agent }, heard, props),
    };
  }

  /** Resolves when all agents have been notified of their closed sockets. */
  async close(): Promise<void> {
    clearInterval(this.#pings);
    while (this.#telling.size > 0) await Promise.all(this.#telling);
    this.#leave();
  }

  #asked({ headers, url, socket }: IncomingMessage): AppTarget | undefined {
    const asked = { host: headers.host, url, port: socket.localPort };
    return readAppRequest(this.#parts.addresses, asked);
  }

  /** Begins a socket. Since there are many sockets, no part of the request stays in memory. */
  #begin(
    { key, ...given }: Pick<AgentSocketParts, "socket" | "stream" | "accountId" | "key">,
    request: AppRequest,
    props: string | undefined,
  ): void {
    const number = ++this.#last;
    const connection: Connection = { id: connectionId(request.url), number, gateway: this.#id };
    const parts = { actors: this.#parts.actors, unread: this.#unread };
    const held = new AgentSocket({ ...parts, ...given, key, connection });
    const progress = this.#agents.get(key) ?? newProgress();
    this.#agents.set(key, progress);
    progress.sockets.set(number, held);
    given.socket.on("close", (code, reason) => {
      progress.sockets.delete(number);
      if (progress.sockets.size === 0) this.#agents.delete(key);
      this.#tell(held.leave(code, reason));
    });
    this.#tell(held.connect(request, props));
  }

  #tell(telling: Promise<void>): void {
    const told = telling.finally(() => this.#telling.delete(told));
    this.#telling.add(told);
  }

  /**
   * Handles a batch of actions from an agent's host. Returns the numbers of the agent's sockets that are not here.
   */
  #take(payload: string): string {
    const read = SocketBatch.safeParse(parseJson(payload));
    if (!read.success) {
      this.#parts.logger.error({ err: read.error }, "batch for sockets not read");
      return JSON.stringify({ gone: [] } satisfies SocketBatchAnswer);
    }
    const { agent, actions } = read.data;
    const progress = this.#agents.get(agent);
    const gone = new Set<number>();
    const isNew = !progress || takesFurther(progress, read.data);
    const gathered = new Set<AgentSocket>();
    try {
      for (const action of actions) {
        const sockets = action.to.flatMap((number) => {
          const held = progress?.sockets.get(number);
          if (!held) gone.add(number);
          return held ?? [];
        });
        if (!isNew) continue;
        // Writing to a socket costs more than all other work here. So each socket is written to only one time for all
        // actions of a batch.
        if (actions.length > 1) gather(sockets, gathered);
        this.#act(sockets, action);
      }
    } finally {
      for (const { reader } of gathered) reader.release();
    }
    return JSON.stringify({ gone: [...gone] } satisfies SocketBatchAnswer);
  }

  /** Applies an action to each socket. If it fails at one socket, that socket ends, and the others continue. */
  #act(sockets: readonly AgentSocket[], action: SocketAction): void {
    const act = deed(action);
    for (const held of sockets) {
      try {
        act(held);
      } catch (error) {
        this.#parts.logger.error({ err: error, key: held.key }, "message to socket not sent");
        held.terminate();
      }
    }
  }

  /**
   * Checks all sockets: their agents may have dropped them while this gateway was disconnected, and then send nothing
   * to them any more.
   */
  #check(): void {
    const next = this.#all().values();
    for (let at = 0; at < SOCKET_CHECKS_MAX; at += 1) void checkEach(next);
  }

  #ping(): void {
    for (const held of this.#all()) held.ping();
    if (this.#isSearching) return;
    this.#isSearching = true;
    void this.#endOfDeletedApps().finally(() => {
      this.#isSearching = false;
    });
  }

  /**
   * Closes the sockets of apps that were deleted. Their agents do not run any more, so a client that only listens would
   * wait for ever. Never rejects.
   */
  async #endOfDeletedApps(): Promise<void> {
    const apps = Map.groupBy(this.#all(), ({ key }) => {
      const address = readAgentKey(key);
      return address && appKey(address.accountId, address.app);
    });
    await callFew([...apps], async ([app, sockets]) => {
      if (app === undefined) return;
      const { accountId } = readAppKey(app);
      // If the call fails, the next check repeats it. A host of an earlier version does not know the message.
      const reply = await callsOf({ accountId, isVisitor: true }, () =>
        this.#parts.actors.call(appContract, app, "getId", {}),
      ).catch(() => undefined);
      if (reply) for (const held of sockets) held.checkApp(reply.id);
    });
  }

  #all(): AgentSocket[] {
    return [...this.#agents.values()].flatMap(({ sockets }) => [...sockets.values()]);
  }
}

/** Checks sockets one after the other. Several calls share one iterator, so that each socket is checked one time. */
async function checkEach(sockets: Iterable<AgentSocket>): Promise<void> {
  for (const held of sockets) await held.check();
}

const newProgress = (): Progress => ({
  sockets: new Map(),
  owner: "",
  batch: 0,
  commit: 0,
  part: 0,
});

/**
 * Returns false for a batch that was applied before, and otherwise notes it as applied. A batch is identified by
 * owner and number; a batch of a commit also by commit and part, whichever owner sends it.
 */
function takesFurther(progress: Progress, batch: SocketBatch): boolean {
  if (batch.owner !== progress.owner) Object.assign(progress, { owner: batch.owner, batch: 0 });
  if (batch.batch <= progress.batch) return false;
  progress.batch = batch.batch;
  const { commit, part = 0 } = batch;
  if (commit === undefined) return true;
  const isOld = commit < progress.commit || (commit === progress.commit && part <= progress.part);
  if (!isOld) Object.assign(progress, { commit, part });
  return !isOld;
}

function gather(sockets: readonly AgentSocket[], gathered: Set<AgentSocket>): void {
  for (const held of sockets) {
    if (gathered.has(held)) continue;
    gathered.add(held);
    held.reader.gather();
  }
}

/** Returns a function that applies the action to one socket. A frame is encoded only one time for all sockets. */
function deed(action: SocketAction): (socket: AgentSocket) => void {
  if ("close" in action) {
    const { code, reason } = action.close;
    return ({ reader }) => reader.close(code, reason);
  }
  const { frame, isState = false } = action;
  const isText = "text" in frame;
  const data = isText ? Buffer.from(frame.text) : Buffer.from(frame.base64, "base64");
  const sent = { bytes: frameBytes(data, isText), isState };
  return ({ reader }) => reader.send(sent);
}

/** Returns the connection's id. Clients choose an id, so that the connection has the same id after they reconnect. */
function connectionId(url: string): string {
  const named = URL.parse(url)?.searchParams.get("_pk") ?? "";
  return named !== "" && named.length <= CONNECTION_ID_CHARS_MAX ? named : randomUUID();
}

/**
 * Returns the answer to a refused upgrade. A body in a blob is ignored and expires later, because clients read at
 * most one line of such an answer.
 */
function plainAnswer({ status, headers, body }: AppAnswer) {
  const text = body && "text" in body ? body.text : "";
  const type = headers.find(([name]) => name.toLowerCase() === "content-type")?.[1];
  return { status, text, contentType: type ?? "text/plain; charset=utf-8" };
}
