/**
 * One agent in memory. The agent's turns run in its app's process, and no effect leaves before the turn's record is
 * in the agent's log.
 */
import { type agent, agentAlarm } from "../../../schemas/apps/agent.ts";
import { type AgentAddress, appKey } from "../../../schemas/apps/app-names.ts";
import type { TurnInput, TurnResult } from "../../../schemas/apps/app-process.ts";
import { AGENT_TURN_MS_MAX } from "../../../schemas/apps/limits.ts";
import type { CallId } from "../../../schemas/call-id.ts";
import { ActorError, isPassing } from "../../../schemas/errors.ts";
import type {
  HostedContext,
  HostedInstance,
  HostedMessage,
} from "../../runtime/kinds/define-hosted.ts";
import type { Running } from "../lib/app-host/process-slot.ts";
import { readRequest, writeAnswer } from "../lib/app-process/process-bodies.ts";
import { ProcessEnded } from "../lib/app-process/process-ended.ts";
import { toActorError } from "../lib/app-process/process-error.ts";
import type { OfAgent } from "../lib/app-process/process-listener.ts";
import { Turns, unexpected } from "../lib/app-process/turns.ts";
import type { AgentLog, LoadedLog } from "./agent-log.ts";
import type { AgentParts } from "./agent-parts.ts";
import { Deliveries } from "./deliveries.ts";
import { HeldMessages } from "./held-messages.ts";
import { invokeMethod } from "./invoke-method.ts";
import { LogEnd } from "./log-end.ts";
import { actionsByGateway, SocketSender } from "./socket-sender.ts";
import { APP_DRAIN_MS, untilAtRest } from "./until-at-rest.ts";

export type AgentMessages = (typeof agent)["messages"];
type Received = HostedMessage<AgentMessages>;

/** The reason of a close after which the agent opens again, in another version of its app or on request. */
class Reopened extends Error {}

export class AgentInstance implements HostedInstance<AgentMessages> {
  readonly #parts: AgentParts;
  readonly #context: HostedContext;
  readonly #key: string;
  readonly #address: AgentAddress;
  readonly #app: string;
  readonly #running: Running;
  readonly #log: AgentLog;
  readonly #logEnd: LogEnd;
  readonly #sockets: SocketSender;
  readonly #turns = new Turns();
  readonly #deliveries: Deliveries;
  #agent = 0;
  #isCommitting = false;
  readonly #held: HeldMessages;
  /** The last notice of the process. Its work has ended when it is idle and the record `after` is stored. */
  #idle = { isIdle: true, after: 0 };
  #isOver = false;
  readonly #finished = new AbortController();
  #leaving: Error | undefined;
  #changed = Promise.withResolvers<void>();

  static async open(
    parts: AgentParts,
    identity: { key: string; address: AgentAddress },
    { running, loaded, context }: { running: Running; loaded: LoadedLog; context: HostedContext },
  ): Promise<AgentInstance> {
    const instance = new AgentInstance(parts, identity, { running, loaded, context });
    await instance.#open(loaded);
    return instance;
  }

  private constructor(
    parts: AgentParts,
    { key, address }: { key: string; address: AgentAddress },
    { running, loaded, context }: { running: Running; loaded: LoadedLog; context: HostedContext },
  ) {
    this.#parts = parts;
    this.#context = context;
    this.#key = key;
    this.#address = address;
    this.#app = appKey(address.accountId, address.app);
    this.#running = running;
    this.#log = loaded.log;
    this.#logEnd = new LogEnd(parts, loaded.log);
    this.#held = new HeldMessages(loaded.lastCommit, running.process.held);
    this.#deliveries = new Deliveries({
      ...{ ...parts, key, turns: this.#turns },
      begin: (...begun) => this.#begin(...begun),
      hasCrashed: (id) => parts.processes.hasCrashed(`${key} ${id}`),
      goesOn: () => !this.#leaving && !this.#isOver,
      givesWay: () => context.hasOtherMail(),
      ended: () => this.#look(),
    });
    this.#sockets = new SocketSender({
      bus: parts.bus,
      clock: parts.clock,
      agent: key,
      // The number of the takeover record, which is unique to this owner.
      owner: String(loaded.lastCommit),
      confirm: () => context.confirm(),
      lost: () => this.#fail(new Error("Another host may have this agent")),
      waits: (bytes) => running.process.held.hold(bytes),
      sent: (bytes) => running.process.held.release(bytes),
      gone: (gateway, numbers) =>
        running.process.send({ type: "gone", agent: this.#agent, gateway, numbers }),
    });
  }

  get idleMs(): number {
    return this.#logEnd.idleMs;
  }

  get isBusy(): boolean {
    const hasWork = !this.#idle.isIdle || this.#idle.after > this.#held.durable;
    const isAtWork = hasWork || this.#turns.size > 0 || this.#deliveries.isUnderWay;
    return isAtWork || this.#isCommitting || !this.#sockets.isIdle;
  }

  async receive({ message, input, id, call, deadlineAt }: Received): Promise<unknown> {
    // The next instance handles messages that arrive from now on.
    if (this.#leaving || this.#isOver) return new Promise(() => {});
    this.#logEnd.received(deadlineAt);
    switch (message) {
      case "request": {
        const read = this.#read(input as HostedInput<"request">);
        // Turns begin in the order in which requests arrived, except that a request whose body must be fetched may
        // begin later.
        const request = read instanceof Promise ? await read : read;
        const result = await this.#turn(id, { type: "request", request }, call);
        if (result.type !== "answer") throw unexpected(result);
        return writeAnswer(this.#parts.blobs, this.#app, result.answer);
      }
      case "deliver":
        return this.#deliveries.take();
      case "invoke": {
        const invoked = input as HostedInput<"invoke">;
        const take = (turn: TurnInput) => this.#turn(id, turn, call);
        return invokeMethod(invoked, { blobs: this.#parts.blobs, app: this.#app, take });
      }
      case "connect": {
        const { connection, props, ...rest } = input as HostedInput<"connect">;
        const read = this.#read(rest.request);
        const request = read instanceof Promise ? await read : read;
        const bytes = props === undefined ? undefined : Buffer.from(props, "base64");
        await this.#turn(id, { type: "connect", connection, request, props: bytes }, call);
        return {};
      }
      case "frames": {
        const { connection, frames, ...numbers } = input as HostedInput<"frames">;
        const read = frames.map((frame) =>
          "text" in frame ? frame.text : Buffer.from(frame.base64, "base64"),
        );
        const asked = { type: "frames" as const, connection, ...numbers, frames: read };
        const result = await this.#turn(id, asked);
        if (result.type === "nothing" && result.isPending) return { isPending: true };
        // Frames that change no data write no record. The gateway sends the frames again until the actions of their
        // turn have arrived, so the answer waits for these actions.
        await this.#sockets.arrived(connection.gateway);
        return {};
      }
      case "disconnect":
        await this.#turn(id, { type: "disconnect", ...(input as HostedInput<"disconnect">) });
        return {};
      case "wake":
        return this.#wake(id, input as HostedInput<"wake">);
      case "inspect":
        return this.#inspect(id);
      case "query": {
        const { sql } = input as HostedInput<"query">;
        const result = await this.#turn(id, { type: "query", sql });
        if (result.type !== "queried") throw unexpected(result);
        const { type: _, ...rows } = result;
        return rows;
      }
      case "reload":
        this.#leave(new Reopened("Reopened as asked"));
        return {};
      default:
        throw new ActorError("invalid_request", `Cannot handle ${message satisfies never}`);
    }
  }

  async close(signal: AbortSignal): Promise<void> {
    this.#deliveries.stop();
    this.#endStreams();
    const { clock } = this.#parts;
    const changed = () => this.#changed.promise;
    await untilAtRest(() => this.isBusy && !this.#isOver, { clock, signal, changed });
    const isAtRest = !this.isBusy && !signal.aborted;
    const left = this.#logEnd.leave(isAtRest ? this.#held.durable : undefined);
    this.#finish();
    if (!signal.aborted) await left;
  }

  async #open(loaded: LoadedLog): Promise<void> {
    const { process, outdated } = this.#running;
    const turns = this.#turns;
    const opened = await process.openAgent({ key: this.#key, address: this.#address }, loaded, {
      get turns() {
        return turns.size;
      },
      heard: (message) => this.#heard(message),
      ended: (error) => this.#processEnded(error),
      giveWay: () => this.#giveWay(),
    });
    this.#agent = opened.agent;
    this.#logEnd.stored(opened);
    // It is unknown whether these socket actions have arrived, so they are sent again. Gateways ignore actions that
    // they have already received.
    for (const { commit, to } of loaded.actions) this.#sockets.send(to, commit);
    const leave = () => this.#leave(new Reopened("Another version of its app serves"));
    if (outdated.aborted) leave();
    else {
      const { signal } = this.#finished;
      outdated.addEventListener("abort", leave, { once: true, signal });
    }
  }

  #turn(id: string, input: TurnInput, call?: CallId): Promise<TurnResult> {
    return this.#begin(id, input, call && { call }).ended;
  }

  #begin(id: string, input: TurnInput, more: { follows?: number; call?: CallId } = {}) {
    this.#turns.mustHaveRoom();
    const turn = this.#running.process.turn({ agent: this.#agent, id, input, ...more });
    return { turn, ended: this.#turns.wait(turn, id) };
  }

  async #wake(id: string, { at }: HostedInput<"wake">): Promise<void> {
    await this.#turn(id, { type: "wake" });
    await this.#parts.actors.call(agentAlarm, this.#key, "heard", { at });
  }

  async #inspect(id: string): Promise<unknown> {
    const result = await this.#turn(id, { type: "inspect" });
    if (result.type !== "inspected") throw unexpected(result);
    const { type: _, ...inspected } = result;
    return { version: this.#running.process.serving.version, ...inspected };
  }

  #read = (request: Parameters<typeof readRequest>[1]) => readRequest(this.#parts.blobs, request);

  #heard(message: OfAgent): void {
    if (this.#isOver) return;
    const { streams, operations } = this.#parts;
    const { process } = this.#running;
    switch (message.type) {
      case "finished":
        this.#held.hold(message, () => this.#settle(message.turn, message.result));
        break;
      case "refused":
        this.#held.hold(message, () => {
          this.#turns.reject(message.turn, toActorError(message.error));
          this.#look();
        });
        break;
      case "act": {
        const to = actionsByGateway(message.actions);
        this.#held.hold(message, () => this.#sockets.send(to));
        break;
      }
      case "part":
        this.#held.hold(message, () => streams.heard(process, message));
        break;
      case "operation":
        this.#held.hold(message, () => void operations.run(process, message, this.#address));
        break;
      case "idle":
        this.#idle = message;
        this.#look();
        break;
      case "commit":
        void this.#commit(message);
        break;
      default:
        message satisfies never;
    }
  }

  #settle(turn: number, result: TurnResult): void {
    const { streams } = this.#parts;
    this.#turns.resolve(turn, () => streams.withRest(this.#running.process, result, this.#agent));
    this.#look();
  }

  async #commit(message: Extract<OfAgent, { type: "commit" }>): Promise<void> {
    const { commit, record, isImage, isGone, wakeAt } = message;
    try {
      if (this.#isCommitting || commit !== this.#held.durable + 1) {
        throw new Error("Cannot store a record: the process gave another than the next");
      }
      this.#isCommitting = true;
      const to = actionsByGateway(message.actions);
      const actions = Object.keys(to).length > 0 ? [{ commit, to }] : [];
      // The alarm is set before the record that needs it: an alarm without a due timer does no harm.
      if (typeof wakeAt === "number") await this.#setAlarm({ at: wakeAt, record: commit });
      await this.#log.append({
        commit,
        record,
        isImage,
        isGone,
        actions: isImage ? [...this.#sockets.waiting, ...actions] : actions,
        arrived: this.#sockets.arrivedOf(commit - 1),
      });
      // The alarm is cancelled only after the record that no longer needs it.
      if (wakeAt === null) await this.#setAlarm({ record: commit }).catch(() => {});
      this.#isCommitting = false;
      this.#logEnd.stored(message);
      if (this.#isOver) return;
      this.#held.store(commit);
      this.#running.process.send({ type: "committed", agent: this.#agent, commit });
      this.#sockets.send(to, commit);
      this.#held.release();
      this.#look();
    } catch (error) {
      this.#refuse(error);
      // The next owner finds out whether the record was stored.
      this.#fail(error instanceof Error ? error : new Error(String(error)));
    }
  }

  /** Rejects the running turns if the log refused the record. A retry would be refused again. */
  #refuse(error: unknown): void {
    if (!(error instanceof ActorError) || isPassing(error)) return;
    for (const { turn } of this.#turns.underWay()) this.#turns.reject(turn, error);
  }

  async #setAlarm(alarm: { at?: number; record: number }): Promise<void> {
    await this.#parts.actors.call(agentAlarm, this.#key, "set", alarm);
  }

  #processEnded(error: Error): void {
    // The next instance handles messages that arrive from now on.
    this.#leaving ??= error;
    // The likely cause is a turn during which the process ended more than once, so that turn is rejected. A turn that
    // reached a limit while it ran alone is rejected the first time, because it would reach the limit again.
    const { bound, isOfOneTurn = false } = error instanceof ProcessEnded ? error : {};
    const isRunaway = bound !== undefined && isOfOneTurn;
    for (const { turn, id } of this.#turns.underWay()) {
      const isTiresome = this.#parts.processes.crashed(`${this.#key} ${id}`);
      if (!isTiresome && !isRunaway) continue;
      const text = `Cannot finish: ${error.message}`;
      this.#turns.reject(turn, new ActorError("app_failed", text, { bound }));
    }
    this.#fail(error);
  }

  #giveWay(): boolean {
    if (this.#agent === 0 || this.isBusy) return false;
    this.#leave(new Reopened("Others need its place"));
    return true;
  }

  /**
   * Accepts no more messages, finishes the running ones and closes, so that the next message opens the agent again.
   */
  #leave(reason: Error): void {
    if (this.#leaving || this.#isOver) return;
    this.#leaving = reason;
    this.#look();
    // Background work starts again in the next process, so it gets a short time. A turn may use its whole time limit.
    setTimeout(() => {
      this.#idle = { isIdle: true, after: 0 };
      this.#look();
    }, APP_DRAIN_MS).unref();
    setTimeout(() => this.#fail(reason), AGENT_TURN_MS_MAX).unref();
  }

  /** Ends open streams, because a close would wait for them. Clients must repeat the requests at the next host. */
  #endStreams(): void {
    this.#parts.streams.agentLeft(this.#running.process, this.#agent);
  }

  /** Called when some work has ended. If it was the last work that a close waits for, the instance ends. */
  #look(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
    if (!this.#leaving || this.#isOver) return;
    this.#endStreams();
    if (!this.isBusy) this.#fail(this.#leaving);
  }

  #fail(error: Error): void {
    if (this.#isOver) return;
    this.#finish();
    // In the next turn of the event loop, the answers have been sent.
    void this.#deliveries.end(error).then(() => setImmediate(() => this.#context.end(error)));
  }

  #finish(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#finished.abort();
    this.#held.drop();
    this.#sockets.stop();
    this.#running.process.closeAgent(this.#agent);
    void this.#logEnd.leave();
    this.#endStreams();
    this.#changed.resolve();
  }
}

type HostedInput<N extends keyof AgentMessages> = HostedMessage<AgentMessages, N>["input"];
