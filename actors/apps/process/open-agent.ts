/** One agent in memory: its database, its code and its running work. */

import type { AgentAddress } from "../../../schemas/apps/app-names.ts";
import type { FromProcess, StartProcess } from "../../../schemas/apps/app-process.ts";
import { AGENT_TURNS_MAX } from "../../../schemas/apps/limits.ts";
import { type AgentContext, agentContext } from "../package/agent-context.ts";
import type { Block } from "../package/agent-runtime.ts";
import type { AgentConnection } from "../package/connection.ts";
import { type Running, runAs, running } from "../package/current-agent.ts";
import { AgentRefusal } from "../package/refusal.ts";
import type { AgentClassOptions } from "../package/types.ts";
import type { AgentCore, AnyAgent } from "./agent-core.ts";
import { AgentDatabase } from "./agent-database.ts";
import { AgentState } from "./agent-state.ts";
import { DueWork } from "./due-work.ts";
import type { HostLink } from "./host-link.ts";
import { InputGate } from "./input-gate.ts";
import { methodOf } from "./methods.ts";
import { clearTimeout, setTimeout } from "./native-timers.ts";
import { OutputGate } from "./output-gate.ts";
import { createOwnTables, emptyDatabase } from "./own-tables.ts";
import { PageLog, restoreImage } from "./page-log.ts";
import { Queue } from "./queue.ts";
import { Replies } from "./replies.ts";
import { Schedules } from "./schedules.ts";
import { Sockets } from "./sockets.ts";
import { Submissions } from "./submissions.ts";

export type AgentClass = (new (
  context: AgentContext,
  env: never,
) => AnyAgent) & {
  options?: AgentClassOptions;
};

interface OpenOptions {
  number: number;
  address: AgentAddress;
  agentClass: AgentClass;
  env: object;
  link: HostLink;
  path: string;
  image: Uint8Array | undefined;
  records: Uint8Array[];
  lastCommit: number;
  limits: StartProcess["limits"];
}

const CLOSED_BY_SERVER = 1001;
/** Close code 1011, internal error (RFC 6455, 7.4.1): clients reconnect. Only the app's log has the thrown error. */
const NOT_STARTED = { code: 1011, reason: "The agent did not start: its code failed" };

export class OpenAgent implements AgentCore {
  readonly number: number;
  readonly address: AgentAddress;
  readonly limits: StartProcess["limits"];
  readonly link: HostLink;
  readonly classOptions: AgentClassOptions;
  readonly database: AgentDatabase;
  readonly gate: OutputGate;
  readonly inputs = new InputGate();
  state: AgentState;
  sockets: Sockets;
  schedules: Schedules;
  queue: Queue;
  submissions: Submissions;
  replies: Replies;
  due: DueWork;
  /** App code runs only when the agent has an instance: see ready(). */
  declare instance: AnyAgent;
  readonly #agentClass: AgentClass;
  readonly #env: object;
  #starting: Promise<void> | undefined;
  #isStarted = false;
  /** Critical sections that the constructor and `onStart` began. The agent has started when they have ended. */
  readonly #blocks: Promise<unknown>[] = [];
  #hasStarted = false;
  #isBroken = false;
  /** The error of the constructor. It is kept until one caller has received it. */
  #thrown: { error: unknown } | undefined;
  #last: Promise<unknown> = Promise.resolve();
  #turns = 0;
  #endedTurns = 0;
  #background = 0;
  /** The last report to the host, which takes a new agent for idle. */
  #isIdle = true;
  #isClosed = false;
  readonly #openedAt = Date.now();

  constructor(options: OpenOptions) {
    const { number, address, agentClass, image, records, link } = options;
    // The options are not kept: the image and the records may have many megabytes.
    this.#agentClass = agentClass;
    this.#env = options.env;
    this.number = number;
    this.address = address;
    this.limits = options.limits;
    this.link = link;
    this.classOptions = agentClass.options ?? {};
    const log = new PageLog(
      options.path,
      restoreImage(image, records),
      options.limits.databaseBytes,
    );
    this.database = new AgentDatabase(log, () => this.#touched());
    this.gate = new OutputGate({
      agent: number,
      database: this.database,
      send: (message: FromProcess) => link.send(message),
      lastCommit: options.lastCommit,
      records: records.length,
      recordBytes: records.reduce((sum, { length }) => sum + length, 0),
      imageBytes: image?.length ?? 0,
      alarm: () => this.due.alarm(),
    });
    try {
      createOwnTables(this.database);
      this.database.settle();
      this.replies = new Replies(this.database);
      this.state = new AgentState(this);
      this.sockets = new Sockets(this);
      this.schedules = new Schedules(this);
      this.queue = new Queue(this);
      this.submissions = new Submissions(this);
      this.due = new DueWork(this, [this.schedules, this.queue, this.submissions]);
    } catch (error) {
      this.database.close();
      throw error;
    }
    this.#constructFirst();
    this.due.changed();
  }

  /** Starts the agent, and resolves when `onStart` has ended. After a failure, the next call tries again. */
  ready(props?: unknown): Promise<void> {
    this.#starting ??= this.#start(props).catch((error: unknown) => {
      this.#starting = undefined;
      this.due.hold();
      // Sockets are closed, because clients must not wait for an agent that does not start.
      this.sockets.closeAll(NOT_STARTED.code, NOT_STARTED.reason);
      throw error;
    });
    return this.#starting;
  }

  /**
   * Runs a turn. Turns begin in order after the agent has started. With `serialTurns`, each turn begins after the
   * previous one has ended.
   */
  turn<T>(props: unknown, work: () => Promise<T>, isLimited = true): Promise<T> {
    if (this.#turns >= AGENT_TURNS_MAX) {
      return Promise.reject(
        new AgentRefusal("busy", `Cannot begin: ${AGENT_TURNS_MAX} turns wait for the agent`),
      );
    }
    this.#turns += 1;
    const begin = () => this.inputs.deliver(() => (isLimited ? this.limited(work) : work()));
    const done = this.classOptions.serialTurns
      ? this.#inTurn(async () => {
          await this.ready(props);
          return begin();
        })
      : this.#isStarted
        ? begin()
        : this.ready(props).then(begin);
    return done.finally(() => {
      this.#turns -= 1;
      this.#endedTurns += 1;
      this.noteIdle();
    });
  }

  /**
   * Limits the time that the caller waits for `work`. The work itself continues, because running code cannot be
   * interrupted.
   */
  async limited<T>(
    work: () => T | Promise<T>,
    { what = "turn", limitMs = this.limits.turnMs } = {},
  ): Promise<T> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        reject(new AgentRefusal("deadline_exceeded", `The ${what} took longer than ${limitMs} ms`));
      }, limitMs);
    });
    try {
      return await Promise.race([Promise.resolve(work()), late]);
    } finally {
      clearTimeout(timer);
    }
  }

  /** Calls a method by name, for a schedule, the queue or a submission. */
  async call(name: string, ...args: unknown[]): Promise<unknown> {
    const method = methodOf(this.instance, name);
    if (method === undefined) throw new TypeError(`this.${name} is not a function`);
    const work = async () => this.runAs({}, () => Reflect.apply(method, this.instance, args));
    const begin = (limit?: { what: string; limitMs: number }) =>
      this.inputs.start(() => this.limited(work, limit));
    if (this.classOptions.serialTurns) return this.#inTurn(begin);
    return begin({ what: `call of ${name}`, limitMs: this.limits.workMs });
  }

  /** Runs work in the agent's current critical section, if there is one. */
  runAs<T>(what: Omit<Running, "open">, work: () => T): T {
    return runAs({ open: this, block: this.#block(), ...what }, work);
  }

  /** Delivers no event to the agent until `work` has ended. The time limit of a turn applies. */
  blocking<T>(work: () => Promise<T>): Promise<T> {
    const done = this.inputs.block((block) =>
      this.limited(() => this.runAs({ block }, async () => work()), {
        what: "blockConcurrencyWhile",
      }),
    );
    if (!this.#hasStarted) this.#blocks.push(done);
    return done;
  }

  /** Handles sockets that ended without a close frame. */
  gone(gateway: string, numbers: number[] | "all"): void {
    this.background(async () => {
      await this.ready();
      await this.sockets.gone(gateway, numbers);
    });
  }

  /** Runs work outside of turns. The agent stays in memory until the work ends. */
  background(work: () => unknown): void {
    this.#background += 1;
    this.noteIdle();
    void this.#inBackground(work);
  }

  /**
   * Makes the start of work durable before it runs, if the work was due before the agent was opened. Such work may
   * have ended an earlier process.
   */
  async markBegun(dueAt: number): Promise<void> {
    if (dueAt < this.#openedAt) await this.gate.durable();
  }

  /** Reports an error to the agent's `onError`. If `onError` throws, its error goes to the app's log. */
  async report(error: unknown, connection?: AgentConnection): Promise<void> {
    // An agent without an instance cannot handle the error.
    if (this.instance === undefined) return this.log("error", error);
    try {
      await this.runAs({ connection }, () =>
        connection === undefined
          ? this.instance.onError(error)
          : this.instance.onError(connection, error),
      );
    } catch (thrown) {
      this.log("error", thrown);
    }
  }

  log(level: "warn" | "error", error: unknown): void {
    const text = error instanceof Error ? (error.stack ?? String(error)) : String(error);
    this.link.log(level, text, this.number);
  }

  /**
   * Deletes all of the agent's data, so that the next turn finds a new agent. Replies are kept, because the current
   * turn also has one.
   */
  destroy(): void {
    this.sockets.closeAll(CLOSED_BY_SERVER, "The agent was destroyed");
    emptyDatabase(this.database);
    this.gate.destroyed();
    this.due.close();
    this.state = new AgentState(this);
    this.schedules = new Schedules(this);
    this.queue = new Queue(this);
    this.submissions = new Submissions(this);
    this.due = new DueWork(this, [this.schedules, this.queue, this.submissions]);
    this.due.changed();
    this.#starting = undefined;
    this.#isStarted = false;
    this.#hasStarted = false;
    this.#isBroken = false;
    this.#blocks.length = 0;
    this.#constructFirst();
  }

  close(): void {
    this.#isClosed = true;
    this.due.close();
    this.gate.close();
    this.database.close();
  }

  #block(): Block | undefined {
    const now = running();
    return now?.open === this ? now.block : undefined;
  }

  /** Constructs the agent. If the constructor throws, the first caller receives the error. */
  #constructFirst(): void {
    try {
      this.instance = this.#construct();
    } catch (error) {
      this.#isBroken = true;
      this.#thrown = { error };
    }
  }

  #construct(): AnyAgent {
    const [agentClass, env] = [this.#agentClass, this.#env as never];
    return this.runAs({}, () => new agentClass(agentContext(this), env));
  }

  async #start(props: unknown): Promise<void> {
    if (this.#isBroken) {
      const thrown = this.#thrown;
      this.#thrown = undefined;
      if (thrown) throw thrown.error;
      this.instance = this.#construct();
      this.#isBroken = false;
    }
    const { instance } = this;
    await this.#blocksEnd();
    await this.runAs({}, () => instance.onStart(props));
    await this.#blocksEnd();
    if (instance !== this.instance) return;
    this.#isStarted = true;
    this.#hasStarted = true;
  }

  /**
   * Waits for the sections that the constructor or `onStart` began. If one fails, the agent is constructed again,
   * which repeats them.
   */
  async #blocksEnd(): Promise<void> {
    try {
      while (this.#blocks.length > 0) await Promise.all(this.#blocks.splice(0));
    } catch (error) {
      this.#isBroken = true;
      this.#blocks.length = 0;
      throw error;
    }
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#last.then(work);
    // The next turn begins however this one ends.
    this.#last = done.catch(() => undefined);
    return done;
  }

  async #inBackground(work: () => unknown): Promise<void> {
    const endedBefore = this.#endedTurns;
    try {
      await work();
    } catch (error) {
      if (!this.#isClosed) await this.report(error);
    } finally {
      this.#background -= 1;
      if (!this.#isClosed) {
        // If a turn ran the whole time, its own record contains this change.
        if (this.#turns === 0 || this.#endedTurns > endedBefore) this.gate.flushSoon();
        this.noteIdle();
      }
    }
  }

  /** Makes changes durable that no turn's record would contain. */
  #touched(): void {
    if (this.#turns === 0) this.gate.flushSoon();
  }

  /**
   * Reports to the host whether the agent is idle. During a turn this is not needed, because the host knows of the
   * turn. At the end of a turn, remaining work is reported before the answer. The end of work is reported after its last
   * frames, and counts when the record with its last changes is stored: the host drops what an idle agent that it closes
   * sends later.
   */
  noteIdle(): void {
    if (this.#isClosed || this.#turns > 0) return;
    const isIdle = this.#background === 0 && !this.due.isNear;
    if (isIdle === this.#isIdle) return;
    this.#isIdle = isIdle;
    const after = isIdle ? this.gate.after() : 0;
    this.gate.say({ type: "idle", agent: this.number, after, isIdle });
  }
}
