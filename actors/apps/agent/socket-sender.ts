/**
 * Sends an agent's socket actions to the gateways that hold its sockets. Batches are sent in order: each after the
 * gateway has answered the previous one.
 */
import {
  type SocketAction,
  type SocketBatch,
  SocketBatchAnswer,
  socketsSubject,
} from "../../../schemas/apps/agent-sockets.ts";
import type { ProcessAction } from "../../../schemas/apps/app-process.ts";
import { parseJson } from "../../../schemas/parse-json.ts";
import { ask } from "../../runtime/bus/ask.ts";
import type { Bus } from "../../runtime/bus/bus.ts";
import type { Clock } from "../../runtime/lib/clock.ts";
import type { CommitActions } from "./agent-log.ts";

/**
 * Limit of the bytes of frames that wait for one gateway. Past it, the agent's sockets at that gateway are closed.
 */
export const SOCKET_BATCH_WAITING_BYTES_MAX = 16_000_000;
/** Limit of the bytes of actions in one message to a gateway. It also limits a single frame with its action. */
export const SOCKET_BATCH_BYTES_MAX = 900_000;
/** Limit of the sockets that one action names, at most 17 bytes each. An action for more sockets is split. */
export const SOCKET_ACTION_SOCKETS_MAX = 10_000;
/** Time limit for a gateway's answer to a batch, and the pause before the batch is sent again. */
const SOCKET_BATCH_TRY_MS = 2_000;
const SOCKET_BATCH_RETRY_MS = 50;
/**
 * Attempts without a subscribed gateway after which the gateway counts as gone. After an outage of the bus, a gateway
 * may reconnect some seconds after this host.
 */
const SOCKET_ABSENCES_MAX = 100;

interface SocketSenderParts {
  bus: Bus;
  clock: Clock;
  /** The agent's key. `owner` below identifies the sender; every owner has a different value. */
  agent: string;
  owner: string;
  /** Returns whether this host surely owns the agent. Actions without a record are sent only after this check. */
  confirm(): Promise<boolean>;
  /** Called when this host may no longer own the agent. */
  lost(): void;
  /** Counts the bytes that wait here. */
  waits(bytes: number): void;
  sent(bytes: number): void;
  /** Reports sockets of the agent that a gateway no longer has; "all" if the gateway is gone. */
  gone(gateway: string, numbers: number[] | "all"): void;
}

interface Waiting {
  commit?: number;
  part?: number;
  /**
   * All actions of the commit, if it was split. They are kept until the last part has arrived, so that the next owner
   * splits the commit in the same way.
   */
  whole?: SocketAction[];
  actions: SocketAction[];
  bytes: number;
  /** Callbacks that are called when the batch has arrived or will never arrive. */
  arrived: (() => void)[];
}

export class SocketSender {
  readonly #parts: SocketSenderParts;
  readonly #queues = new Map<string, Waiting[]>();
  readonly #bytes = new Map<string, number>();
  readonly #batches = new Map<string, number>();
  readonly #stopped = new AbortController();

  constructor(parts: SocketSenderParts) {
    this.#parts = parts;
  }

  /** Sends the actions of a commit, or actions without a commit. */
  send(to: Readonly<Record<string, SocketAction[]>>, commit?: number): void {
    for (const [gateway, actions] of Object.entries(to)) this.#add(gateway, actions, commit);
  }

  get isIdle(): boolean {
    return this.#queues.size === 0;
  }

  /**
   * Resolves when all actions that wait for this gateway have arrived or were abandoned. Never resolves if another
   * owner took over.
   */
  async arrived(gateway: string): Promise<void> {
    const last = this.#queues.get(gateway)?.at(-1);
    if (last) await new Promise<void>((resolve) => last.arrived.push(resolve));
  }

  /** The actions of commits that may not have arrived yet. */
  get waiting(): CommitActions[] {
    const commits = new Map<number, CommitActions>();
    for (const [gateway, queue] of this.#queues) {
      for (const { commit, actions, whole = actions } of queue) {
        if (commit === undefined) continue;
        const known = commits.get(commit) ?? { commit, to: {} };
        known.to[gateway] = whole;
        commits.set(commit, known);
      }
    }
    return [...commits.values()].toSorted((one, other) => one.commit - other.commit);
  }

  /**
   * Returns the newest commit, at most `last`, for which it holds that its actions and those of all earlier commits
   * have arrived.
   */
  arrivedOf(last: number): number {
    let arrived = last;
    for (const queue of this.#queues.values()) {
      for (const { commit } of queue)
        if (commit !== undefined) arrived = Math.min(arrived, commit - 1);
    }
    return arrived;
  }

  /** Stops sending, because another owner continues. */
  stop(): void {
    this.#stopped.abort();
    for (const bytes of this.#bytes.values()) this.#parts.sent(bytes);
    this.#bytes.clear();
    this.#queues.clear();
  }

  #add(gateway: string, actions: SocketAction[], commit: number | undefined): void {
    if (this.#stopped.signal.aborted) return;
    const parts = divided(actions);
    const waiting = parts.map((some, part): Waiting => {
      const bytes = some.reduce((sum, action) => sum + bytesOf(action), 0);
      const one = { actions: some, bytes, arrived: [] };
      if (commit === undefined) return one;
      return { ...one, commit, ...(parts.length > 1 && { part, whole: actions }) };
    });
    const held = waiting.reduce((sum, { bytes }) => sum + bytes, this.#bytes.get(gateway) ?? 0);
    const queue = this.#queues.get(gateway);
    if (queue && held > SOCKET_BATCH_WAITING_BYTES_MAX) {
      this.#giveUp(gateway);
      return;
    }
    this.#parts.waits(held - (this.#bytes.get(gateway) ?? 0));
    this.#bytes.set(gateway, held);
    if (queue) queue.push(...waiting);
    else if (waiting.length > 0) {
      this.#queues.set(gateway, waiting);
      void this.#drain(gateway, waiting);
    }
  }

  async #drain(gateway: string, queue: Waiting[]): Promise<void> {
    const { signal } = this.#stopped;
    const isWanted = () => !signal.aborted && this.#queues.get(gateway) === queue;
    for (let first = queue[0]; first && isWanted(); first = queue[0]) {
      // Neighbouring actions without a commit share a message.
      const together = first.commit === undefined ? leading(queue) : [first];
      if (first.commit === undefined && !(await this.#isOurs())) return;
      if (!isWanted()) return;
      const batch = (this.#batches.get(gateway) ?? 0) + 1;
      this.#batches.set(gateway, batch);
      const isThere = await this.#deliver(gateway, batch, { waiting: together, isWanted });
      if (!isWanted()) return;
      if (!isThere) return this.#giveUp(gateway);
      queue.splice(0, together.length);
      this.#release(gateway, together);
    }
    if (isWanted()) this.#forget(gateway);
  }

  async #isOurs(): Promise<boolean> {
    const isOurs = await this.#parts.confirm().catch(() => false);
    if (!isOurs && !this.#stopped.signal.aborted) this.#parts.lost();
    return isOurs;
  }

  #release(gateway: string, sent: readonly Waiting[]): void {
    const bytes = sent.reduce((sum, one) => sum + one.bytes, 0);
    this.#parts.sent(bytes);
    this.#bytes.set(gateway, (this.#bytes.get(gateway) ?? 0) - bytes);
    tell(sent);
  }

  /** Returns false if the gateway no longer exists. */
  async #deliver(
    gateway: string,
    batch: number,
    { waiting, isWanted }: { waiting: readonly Waiting[]; isWanted: () => boolean },
  ): Promise<boolean> {
    const { bus, clock, agent, owner } = this.#parts;
    const [first] = waiting;
    const message: SocketBatch = {
      agent,
      owner,
      batch,
      ...(first?.commit !== undefined && { commit: first.commit }),
      ...(first?.part !== undefined && { part: first.part }),
      actions: waiting.flatMap(({ actions }) => actions),
    };
    const payload = JSON.stringify(message);
    const { signal } = this.#stopped;
    let absences = 0;
    while (isWanted()) {
      const asked = await ask(bus, socketsSubject(gateway), payload, {
        timeoutMs: SOCKET_BATCH_TRY_MS,
      });
      if (typeof asked === "object") {
        this.#heard(gateway, asked.answer.string());
        return true;
      }
      // After a reconnection to the bus, the gateway's subscription may return a little later than this host's.
      if (asked === "nobody" && ++absences > SOCKET_ABSENCES_MAX) return false;
      await clock.wait(SOCKET_BATCH_RETRY_MS, signal);
    }
    return true;
  }

  #heard(gateway: string, text: string): void {
    const { success, data } = SocketBatchAnswer.safeParse(parseJson(text));
    if (success && data.gone.length > 0) this.#parts.gone(gateway, data.gone);
  }

  #giveUp(gateway: string): void {
    this.#forget(gateway);
    this.#parts.gone(gateway, "all");
  }

  #forget(gateway: string): void {
    const given = this.#queues.get(gateway) ?? [];
    this.#queues.delete(gateway);
    this.#parts.sent(this.#bytes.get(gateway) ?? 0);
    this.#bytes.delete(gateway);
    tell(given);
  }
}

/** Resolves the callers that wait for these batches, because the batches have arrived or never will. */
function tell(waiting: readonly Waiting[]): void {
  for (const { arrived } of waiting) for (const resolve of arrived) resolve();
}

function leading(queue: readonly Waiting[]): Waiting[] {
  const together: Waiting[] = [];
  let bytes = 0;
  for (const one of queue) {
    bytes += one.bytes;
    if (one.commit !== undefined || bytes > SOCKET_BATCH_BYTES_MAX) break;
    together.push(one);
  }
  return together.length > 0 ? together : queue.slice(0, 1);
}

/** Splits actions into parts that each fit in one message. */
function divided(actions: readonly SocketAction[]): SocketAction[][] {
  const parts: SocketAction[][] = [];
  let bytes = Number.POSITIVE_INFINITY;
  for (const action of actions.flatMap(withFewSockets)) {
    const size = bytesOf(action);
    if (size > SOCKET_BATCH_BYTES_MAX) {
      // No message can hold this frame. Its clients would miss the frame without noticing, so their sockets are
      // closed.
      parts.push([{ to: action.to, close: { code: 1009, reason: "A frame was too large" } }]);
      bytes = Number.POSITIVE_INFINITY;
      continue;
    }
    bytes += size;
    if (bytes > SOCKET_BATCH_BYTES_MAX) {
      parts.push([]);
      bytes = size;
    }
    parts.at(-1)?.push(action);
  }
  return parts;
}

/** Splits an action if its list of sockets alone could exceed one message. */
function withFewSockets(action: SocketAction): SocketAction[] {
  const parts = Math.max(1, Math.ceil(action.to.length / SOCKET_ACTION_SOCKETS_MAX));
  return Array.from({ length: parts }, (_, part) => {
    const first = part * SOCKET_ACTION_SOCKETS_MAX;
    return { ...action, to: action.to.slice(first, first + SOCKET_ACTION_SOCKETS_MAX) };
  });
}

/** Estimates the size as JSON, where a control character takes six bytes. */
function bytesOf(action: SocketAction): number {
  const sockets = 64 + JSON.stringify(action.to).length;
  if (!("frame" in action)) return sockets;
  return sockets + Buffer.byteLength(JSON.stringify(action.frame));
}

/** Returns the actions in the form of the bus: by gateway, in order. */
export function actionsByGateway(
  actions: readonly ProcessAction[],
): Record<string, SocketAction[]> {
  const to: Record<string, SocketAction[]> = {};
  for (const action of actions) {
    const list = to[action.gateway] ?? [];
    to[action.gateway] = list;
    list.push(toSocketAction(action));
  }
  return to;
}

function toSocketAction(action: ProcessAction): SocketAction {
  if ("close" in action) return { to: action.to, close: action.close };
  const { frame } = action;
  return {
    to: action.to,
    frame:
      typeof frame === "string"
        ? { text: frame }
        : { base64: Buffer.from(frame).toString("base64") },
    ...(action.isState && { isState: true }),
  };
}
