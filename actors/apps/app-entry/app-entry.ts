/**
 * The entries of apps. `fetch` of an app's default export answers requests to the app itself, and decides which agent
 * accepts a socket.
 */
import { randomBytes } from "node:crypto";
import { appEntry, type EntryRequest } from "../../../schemas/apps/agent.ts";
import { app } from "../../../schemas/apps/app.ts";
import { type AppRequest, isSafeMethod } from "../../../schemas/apps/app-exchange.ts";
import type { TurnResult } from "../../../schemas/apps/app-process.ts";
import { AGENT_IDLE_MS, AGENT_TURNS_MAX } from "../../../schemas/apps/limits.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { CALL_DEADLINE_MS } from "../../../schemas/limits.ts";
import type { Bus } from "../../runtime/bus/bus.ts";
import { persist } from "../../runtime/bus/persist.ts";
import type { ActorClient } from "../../runtime/calls/actor-client.ts";
import {
  defineHosted,
  type HostedDefinition,
  type HostedInstance,
  type HostedMessage,
} from "../../runtime/kinds/define-hosted.ts";
import type { Clock } from "../../runtime/lib/clock.ts";
import { APP_BODY_INLINE_BYTES_MAX } from "../lib/app-bodies/body-blobs.ts";
import type { AppProcesses } from "../lib/app-host/app-processes.ts";
import type { AppProcess } from "../lib/app-process/app-process.ts";
import type { HostStreams } from "../lib/app-process/host-streams.ts";
import {
  type BodyBlobs,
  readRequest,
  writeAnswer,
  writeRequest,
} from "../lib/app-process/process-bodies.ts";
import { ProcessEnded } from "../lib/app-process/process-ended.ts";
import { toActorError } from "../lib/app-process/process-error.ts";
import type { OfAgent } from "../lib/app-process/process-listener.ts";
import { Turns, unexpected } from "../lib/app-process/turns.ts";

interface AppEntryParts {
  bus: Pick<Bus, "ask">;
  clock: Clock;
  actors: Pick<ActorClient, "call">;
  blobs: BodyBlobs;
  processes: AppProcesses;
  streams: HostStreams;
}

/**
 * Time for which the answer to a request is kept after its shard was lost. Callers repeat a request for the same
 * time.
 */
const ANSWER_KEPT_MS = CALL_DEADLINE_MS;

interface EntryParts extends AppEntryParts {
  /**
   * Requests that run in this host, by key and id. If a host loses its lease only briefly, it may also be the next
   * owner and get copies of these requests. A copy shares the answer of the running request, so the code does not do
   * the same work again.
   */
  running: Map<string, Promise<unknown>>;
}

type EntryMessages = (typeof appEntry)["messages"];

/** The actor kind of an app's entry. It stores nothing; only the app's processes are in memory. */
export function appEntryKind(parts: AppEntryParts): HostedDefinition<EntryMessages> {
  const running: EntryParts["running"] = new Map();
  return defineHosted({
    contract: appEntry,
    idleMs: AGENT_IDLE_MS,
    open: async (key) => new AppEntry({ ...parts, running }, key),
  });
}

class AppEntry implements HostedInstance<EntryMessages> {
  readonly isBusy = false;
  readonly #parts: EntryParts;
  readonly #key: string;
  /** The running requests, by id. */
  readonly #underWay = new Map<string, AppRequest & Pick<EntryRequest, "permit">>();
  /** The names of runs begin with this text. */
  readonly #runsOfEntry = randomBytes(9).toString("hex");
  #runs = 0;
  #emptied = Promise.withResolvers<void>();
  /**
   * True if the host may have lost the shard. Then copies of the requests are sent to the next owner, perhaps this
   * host.
   */
  #isLost = false;

  constructor(parts: EntryParts, key: string) {
    this.#parts = parts;
    this.#key = key;
  }

  async receive({ message, input, id }: HostedMessage<EntryMessages>): Promise<unknown> {
    switch (message) {
      case "request":
        return this.#counted(id, input as EntryRequest, (request) => this.#request(id, request));
      case "upgrade":
        return this.#counted(id, input as AppRequest, (request) => this.#upgrade(id, request));
      case "check":
        return this.#check(input as { version: number });
      default:
        throw new ActorError("invalid_request", `Cannot handle ${message satisfies never}`);
    }
  }

  /**
   * Returns whether the request may run again. An entry stores nothing, so a second run repeats the effects, unless
   * the request's method is safe or its gateway permits a single run.
   */
  mayRepeat(id: string): boolean {
    const request = this.#underWay.get(id);
    return !request || request.permit !== undefined || isSafeMethod(request.method);
  }

  async close(signal: AbortSignal): Promise<void> {
    this.#isLost = signal.aborted;
    if (this.#underWay.size === 0 || signal.aborted) return;
    const lose = () => {
      this.#isLost = true;
      this.#emptied.resolve();
    };
    signal.addEventListener("abort", lose, { once: true });
    await this.#emptied.promise;
    // After this turn of the event loop, the answers have been sent.
    await new Promise(setImmediate);
  }

  async #counted<T, R extends AppRequest>(
    id: string,
    input: R,
    work: (input: R) => Promise<T>,
  ): Promise<T> {
    if (this.#underWay.size >= AGENT_TURNS_MAX) {
      const text = `Cannot take more: the app has ${AGENT_TURNS_MAX} requests under way`;
      throw new ActorError("busy", text, { retryAfterS: 1 });
    }
    const { running } = this.#parts;
    const name = `${this.#key} ${id}`;
    this.#underWay.set(id, input);
    try {
      const run = running.get(name) ?? work(input);
      running.set(name, run);
      return (await run) as T;
    } finally {
      if (this.#isLost) setTimeout(() => running.delete(name), ANSWER_KEPT_MS).unref();
      else running.delete(name);
      this.#underWay.delete(id);
      if (this.#underWay.size === 0) {
        this.#emptied.resolve();
        this.#emptied = Promise.withResolvers();
      }
    }
  }

  async #request(id: string, { permit, ...input }: EntryRequest): Promise<unknown> {
    const permitted = permit && (() => this.#permitted(permit.subject));
    const { result, process } = await this.#turn(id, input, { permitted, isUpgrade: false });
    const { blobs, streams } = this.#parts;
    const withRest = streams.withRest(process, result);
    if (withRest.type !== "answer") throw unexpected(result);
    return writeAnswer(blobs, this.#key, withRest.answer);
  }

  /**
   * Resolves when the gateway has permitted this run and no other run. A notice without a reply would not be enough:
   * it could be lost, and then the next host would run the request again.
   */
  async #permitted(subject: string): Promise<void> {
    const { bus, clock } = this.#parts;
    this.#runs += 1;
    const run = Buffer.from(`${this.#runsOfEntry}.${this.#runs}`);
    const answer = await persist(clock, "begin the request", () => bus.ask(subject, run));
    if (Buffer.from(answer).toString() === "permitted") return;
    const text = "Cannot finish: its host was lost, and whether it had its effect is not known";
    throw new ActorError("may_have_run", text);
  }

  async #upgrade(id: string, input: AppRequest): Promise<unknown> {
    const { blobs } = this.#parts;
    const { result } = await this.#turn(id, input, { isUpgrade: true });
    // Nobody would delete the blob of a large body here: the gateway sends at most one line of an answer.
    const isSmall = ({ body }: { body?: Uint8Array | undefined }) =>
      body === undefined || body.length <= APP_BODY_INLINE_BYTES_MAX;
    if (result.type === "answer") {
      const { body, ...others } = result.answer;
      const answer = isSmall({ body }) ? result.answer : others;
      return { answer: await writeAnswer(blobs, this.#key, answer) };
    }
    if (result.type !== "accept") throw unexpected(result);
    const { className, name, request, props } = result;
    if (!isSmall(request)) {
      const text = `Cannot connect: the app gave the request more than ${APP_BODY_INLINE_BYTES_MAX} bytes`;
      throw new ActorError("app_failed", text);
    }
    return {
      accept: { className, name },
      request: await writeRequest(blobs, this.#key, request),
      ...(props && { props: Buffer.from(props).toString("base64") }),
    };
  }

  /**
   * Runs a request. If its process ended, runs it again if the request's method is safe and the request is not the
   * likely cause.
   */
  async #turn(
    id: string,
    input: AppRequest,
    { permitted, isUpgrade }: { permitted?: (() => Promise<void>) | undefined; isUpgrade: boolean },
  ): Promise<{ result: TurnResult; process: AppProcess }> {
    const { blobs, processes } = this.#parts;
    const request = await readRequest(blobs, input);
    for (;;) {
      // If the host loses the shard before the process starts, the next host runs the request.
      await processes.of(this.#key);
      await permitted?.();
      // Another process may have replaced this one meanwhile.
      const { process } = await processes.of(this.#key);
      const result = await entryTurn(process, { id, request, isUpgrade });
      if (!(result instanceof Error)) return { result, process };
      const isTiresome = processes.crashed(`${this.#key} ${id}`);
      const bound = result instanceof ProcessEnded ? result.bound : undefined;
      if (isSafeMethod(input.method) && !isTiresome && bound === undefined) continue;
      throw new ActorError("app_failed", `Cannot finish: ${result.message}`, { bound });
    }
  }

  async #check({ version }: { version: number }): Promise<unknown> {
    const { actors, processes } = this.#parts;
    const staged = await actors.call(app, this.#key, "getVersion", { version });
    const { classes, hasDefault } = await processes.check(this.#key, staged);
    return { classes: [...classes], hasDefault };
  }
}

/** Runs one turn of the entry. Resolves with the reason if the process ended during it. */
async function entryTurn(
  process: AppProcess,
  { id, ...wanted }: { id: string; isUpgrade: boolean } & Pick<Wanted, "request">,
): Promise<TurnResult | Error> {
  const turns = new Turns();
  const ended = Promise.withResolvers<Error>();
  const turn = process.entry(wanted, {
    heard: (message: OfAgent) => {
      if (message.type === "finished") turns.resolve(message.turn, () => message.result);
      else if (message.type === "refused") turns.reject(message.turn, toActorError(message.error));
    },
    ended: ended.resolve,
    turns: 1,
    giveWay: () => false,
  });
  try {
    return await Promise.race([turns.wait(turn, id), ended.promise]);
  } finally {
    process.forgetEntry(turn);
  }
}

type Wanted = Parameters<AppProcess["entry"]>[0];
