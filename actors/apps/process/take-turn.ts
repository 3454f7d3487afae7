/**
 * Runs each message from the host to an agent in a turn. A message has its effect only one time, and its answer is
 * sent when the effect is durable.
 */
import { deserialize, serialize } from "node:v8";
import type {
  ProcessError,
  ToProcess,
  TurnInput,
  TurnResult,
} from "../../../schemas/apps/app-process.ts";
import { CALL_INLINE_BYTES_MAX } from "../../../schemas/apps/limits.ts";
import type { CallId } from "../../../schemas/call-id.ts";
import { isSuccessful } from "../../../schemas/status-classes.ts";
import { AgentRefusal } from "../package/refusal.ts";
import type { AnswerStreams, StreamMaker } from "./answer-streams.ts";
import { DeliveryChain } from "./delivery-chain.ts";
import { PROPS_HEADER, toProcessAnswer, toRequest } from "./exchange.ts";
import { inspectAgent } from "./inspect-agent.ts";
import { methodOf } from "./methods.ts";
import type { OpenAgent } from "./open-agent.ts";
import { toProcessError } from "./process-errors.ts";
import { refuseBody, type UnreadBody, unheard } from "./read-body.ts";
import type { AnsweredMessage, Outcome } from "./replies.ts";

/** The content of a call through a stub: the method's arguments, and the start properties of the agent. */
interface Invocation {
  args: unknown[];
  props?: unknown;
}

/** A turn past its time limit continues to run, but nothing waits for it any more. */
interface RunningTurn {
  isOver: boolean;
}

type TakenTurn = Omit<ToProcess & { type: "turn" }, "type" | "agent">;

/** The answer to a late copy of a call for whose result no caller waits any more. */
const SETTLED: ProcessError = {
  name: "Error",
  message: "Cannot run the call: its client has settled it",
  refusal: "cancelled",
};
/** Stands for a reply that the agent's database had no room for. */
const NOT_KEPT: Outcome = {
  error: {
    name: "Error",
    message: "Cannot answer again: the agent's database had no room for the answer",
    refusal: "may_have_run",
  },
};
const NOTHING: TurnResult = { type: "nothing" };
/**
 * Types of messages whose replies are stored. Messages of other types may be repeated without harm: frames have
 * numbers, the agent knows its sockets, and alarms check which work is due.
 */
const KEPT = new Set<TurnInput["type"]>(["request", "deliver", "invoke", "connect"]);

export class TurnTaker {
  readonly #agent: OpenAgent;
  /** The running turns by id. A repeated message gets the answer of the running turn. */
  readonly #underWay = new Map<string, Promise<Outcome>>();
  readonly #deliveries: DeliveryChain;
  readonly #streams: AnswerStreams;
  readonly #maker: StreamMaker;
  #isClosed = false;

  constructor(agent: OpenAgent, streams: AnswerStreams) {
    this.#agent = agent;
    this.#deliveries = new DeliveryChain(agent);
    this.#streams = streams;
    const { gate, number } = agent;
    this.#maker = {
      say: (stream, part) =>
        gate.say({ type: "part", agent: number, stream, after: gate.after(), part }),
      failed: (error) => agent.background(() => agent.report(error)),
    };
  }

  /** Ends all streams of the agent, because it leaves this process. */
  close(): void {
    this.#isClosed = true;
    this.#streams.leaveThoseOf(this.#maker);
  }

  async take({ turn, id, call, input, follows }: TakenTurn): Promise<void> {
    if (input.type !== "deliver") return this.#say(turn, await this.#outcome(id, input, call));
    await this.#deliveries.take({
      ...{ turn, follows },
      run: async () => {
        const outcome = await this.#outcome(id, input);
        return { isTaken: isTaken(outcome), say: (soon) => this.#say(turn, outcome, soon) };
      },
      leaveOut: () => this.#say(turn, { result: NOTHING }),
    });
  }

  #say(turn: number, outcome: Outcome, soon?: { isSoon: boolean }): void {
    const { gate, number: agent } = this.#agent;
    const said = { agent, turn, after: gate.after(soon) };
    gate.say(
      "result" in outcome
        ? { type: "finished", ...said, result: outcome.result }
        : { type: "refused", ...said, error: outcome.error },
      soon,
    );
  }

  async #outcome(id: string, input: TurnInput, call?: CallId): Promise<Outcome> {
    // The agent does not know this socket, so the notice changes nothing. It must not start the agent, whose start
    // may be failing.
    if (input.type === "disconnect" && !this.#agent.sockets.has(input.connection)) {
      return { result: NOTHING };
    }
    const isKept = KEPT.has(input.type);
    const key = `${input.type} ${id}`;
    const known = this.#underWay.get(key) ?? (isKept ? this.#agent.replies.get(key) : undefined);
    if (known !== undefined) return known;
    if (isKept && call && this.#agent.replies.isSettled(call)) return { error: SETTLED };
    const outcome = this.#run({ id: key, call }, input, isKept);
    this.#underWay.set(key, outcome);
    try {
      return await outcome;
    } finally {
      this.#underWay.delete(key);
    }
  }

  async #run(asked: AnsweredMessage, input: TurnInput, isKept: boolean): Promise<Outcome> {
    const { log } = this.#agent.database;
    let before: string | undefined;
    let outcome: Outcome;
    const turn = { isOver: false };
    try {
      const props = propsOf(input);
      const work = () => {
        before = log.position;
        return this.#perform(input, turn);
      };
      outcome = {
        result:
          input.type === "inspect" || input.type === "query"
            ? await work()
            : await this.#agent.turn(props, work, input.type !== "frames"),
      };
    } catch (error) {
      outcome = { error: toProcessError(error) };
    } finally {
      // From now on, results of code that continues past its time limit are ignored.
      turn.isOver = true;
    }
    const hasWritten = before !== undefined && log.position !== before;
    // A failed delivery is repeated under the same id and must run again, so its reply is not stored.
    const isFinal = input.type !== "deliver" || isTaken(outcome);
    // The reply is stored in the same record as the turn's changes. Without changes, a repetition does no harm.
    if (isKept && hasWritten && isFinal) this.#keep(asked, keptOf(outcome, input));
    return outcome;
  }

  /**
   * Stores a reply. If the agent's database has no room for it, a repeated message is refused instead. The caller gets
   * its answer in any case: the changes of the turn are made.
   */
  #keep(asked: AnsweredMessage, reply: Outcome): void {
    if (this.#isClosed) return;
    for (const kept of [reply, NOT_KEPT]) {
      try {
        this.#agent.replies.put(asked, kept);
        return;
      } catch (error) {
        this.#agent.log("warn", `Cannot keep an answer for a repeated message: ${String(error)}`);
      }
    }
  }

  async #perform(input: TurnInput, turn: RunningTurn): Promise<TurnResult> {
    const { sockets } = this.#agent;
    switch (input.type) {
      case "request":
      case "deliver":
        return this.#request(input, turn);
      case "invoke":
        return this.#invoke(input);
      case "connect":
        await sockets.connect(input.connection, input.request);
        return NOTHING;
      case "frames":
        return { type: "nothing", isPending: await sockets.frames(input.connection, input) };
      case "disconnect":
        await sockets.disconnect(
          input.connection,
          input.close.code,
          input.close.reason,
          input.wasClean,
        );
        return NOTHING;
      case "wake":
        await this.#agent.due.wake();
        return NOTHING;
      case "inspect":
        return { type: "inspected", ...inspectAgent(this.#agent) };
      case "query":
        return { type: "queried", ...this.#agent.database.look(input.sql) };
      default:
        return input satisfies never;
    }
  }

  async #request(
    input: TurnInput & { type: "request" | "deliver" },
    turn: RunningTurn,
  ): Promise<TurnResult> {
    const request = toRequest(input.request);
    const { instance, limits } = this.#agent;
    return this.#agent.runAs({ request }, async () => {
      try {
        const response = await instance.fetch(request);
        // For a delivery, the whole body is awaited and not streamed, because an inbox uses only the status.
        const open = (unread: UnreadBody) => this.#open(unread, turn);
        const isRead = input.type === "request";
        const answer = await toProcessAnswer(
          response,
          limits.answerBytes,
          isRead ? open : undefined,
        );
        return { type: "answer", answer };
      } catch (error) {
        await this.#agent.report(error);
        throw error;
      }
    });
  }

  /** Opens a stream for the rest of an answer. The agent stays in memory while it is read. */
  #open(unread: UnreadBody, turn: RunningTurn): number {
    if (turn.isOver || this.#isClosed) throw refuseBody(unread, unheard());
    const { stream, ended } = this.#streams.open(unread, this.#maker);
    this.#agent.background(() => ended);
    return stream;
  }

  async #invoke(input: TurnInput & { type: "invoke" }): Promise<TurnResult> {
    const { method: name, isJson = false } = input;
    const { instance } = this.#agent;
    const method = methodOf(instance, name);
    if (method === undefined) throw new TypeError(`Method ${name} does not exist`);
    const { args } = invocationOf(input);
    const bytesMax = isJson ? CALL_INLINE_BYTES_MAX : this.#agent.limits.answerBytes;
    return this.#agent.runAs({}, async () => {
      const result: unknown = await Reflect.apply(method, instance, args);
      return {
        type: "invoked",
        result: serializeResult(name, result, { isJson, bytesMax }),
      };
    });
  }
}

function invocationOf({ args, isJson }: TurnInput & { type: "invoke" }): Invocation {
  if (isJson) return { args: JSON.parse(Buffer.from(args).toString()) as unknown[] };
  return deserialize(args) as Invocation;
}

function serializeResult(
  method: string,
  result: unknown,
  { isJson, bytesMax }: { isJson: boolean; bytesMax: number },
): Uint8Array {
  let bytes: Uint8Array;
  try {
    // A method without a result returns `undefined`, which JSON cannot represent, so it becomes null.
    bytes = isJson ? Buffer.from(JSON.stringify(result) ?? "null") : serialize(result);
  } catch (cause) {
    const { message } = cause as Error;
    throw new TypeError(`Cannot pass on what ${method} gave: ${message}`, { cause });
  }
  if (bytes.length > bytesMax) {
    throw new AgentRefusal(
      "object_too_large",
      `Cannot pass on what ${method} gave: it has more than ${bytesMax} bytes`,
    );
  }
  return new Uint8Array(bytes);
}

/** Returns the start properties. They are used only if this message starts the agent. */
function propsOf(input: TurnInput): unknown {
  switch (input.type) {
    case "invoke":
      return invocationOf(input).props;
    case "connect":
      return input.props === undefined ? undefined : deserialize(input.props);
    case "request": {
      const [, props] = input.request.headers.find(([name]) => name === PROPS_HEADER) ?? [];
      return props === undefined ? undefined : deserialize(Buffer.from(props, "base64"));
    }
    default:
      return undefined;
  }
}

/**
 * Returns the outcome that is stored. Of an answer to a delivery this is the status, because an inbox uses nothing
 * else. A streamed body is not stored, so a repeated request gets an error that states this.
 */
function keptOf(outcome: Outcome, { type }: TurnInput): Outcome {
  if (!("result" in outcome) || outcome.result.type !== "answer") return outcome;
  const { status, stream, lent } = outcome.result.answer;
  if (type === "deliver") return { result: { type: "answer", answer: { status, headers: [] } } };
  if (stream === undefined && lent === undefined) return outcome;
  const message = "Cannot answer again: the answer went out as it was made";
  return { error: { name: "Error", message, refusal: "may_have_run" } };
}

/** Returns whether the inbox counts the outcome as a success. Only 2xx counts. */
function isTaken(outcome: Outcome): boolean {
  if (!("result" in outcome) || outcome.result.type !== "answer") return false;
  return isSuccessful(outcome.result.answer.status);
}
