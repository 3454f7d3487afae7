/**
 * Runs the operations that app code requests from the platform, such as fetches and calls. Each operation is limited
 * in time and size, and its result is sent to the process.
 */
import { agent as agentContract } from "../../../../schemas/apps/agent.ts";
import type { AppConfig } from "../../../../schemas/apps/app-config.ts";
import { inlineBytes } from "../../../../schemas/apps/app-exchange.ts";
import {
  type AgentAddress,
  agentKey,
  ClassName,
  readAppKey,
} from "../../../../schemas/apps/app-names.ts";
import type {
  FromProcess,
  Operation,
  OperationResult,
  ProcessError,
} from "../../../../schemas/apps/app-process.ts";
import {
  APP_REST_SUBJECT,
  AppRestAnswer,
  type AppRestRequest,
} from "../../../../schemas/apps/app-rest.ts";
import {
  APP_TOKEN_SUBJECT,
  AppTokenAnswer,
  type AppTokenRequest,
} from "../../../../schemas/apps/app-token.ts";
import { type AgentLimits, appUsage, noRoom } from "../../../../schemas/apps/app-usage.ts";
import { APP_HELD_BYTES_MAX, OUTGOING_INLINE_BYTES_MAX } from "../../../../schemas/apps/limits.ts";
import { OUTGOING_SECRET, outgoingWebhook } from "../../../../schemas/apps/outgoing-webhook.ts";
import { ActorError, isRefusal } from "../../../../schemas/errors.ts";
import { ask } from "../../../runtime/bus/ask.ts";
import type { Bus } from "../../../runtime/bus/bus.ts";
import type { ActorClient } from "../../../runtime/calls/actor-client.ts";
import type { Clock } from "../../../runtime/lib/clock.ts";
import { dropBlob, takeValue, writeValue } from "../app-bodies/body-blobs.ts";
import { leaveAnswerStream, readPart } from "../app-bodies/read-answer-stream.ts";
import type { AppProcess } from "../app-process/app-process.ts";
import type { HostStreams } from "../app-process/host-streams.ts";
import {
  type BodyBlobs,
  dropBody,
  takeAnswer,
  writeRequest,
} from "../app-process/process-bodies.ts";
import { thrownBy } from "../app-process/process-error.ts";
import { weightOf } from "../app-process/weight.ts";
import type { SecretBox } from "../app-secrets/secret-box.ts";
import type { AppFetch } from "./app-fetch.ts";
import { checkBound } from "./check-bound.ts";
import { isAgentCall, OperationPlaces } from "./operation-places.ts";

/** Limit of the payload of an outgoing webhook in UTF-8. */
const OUTGOING_PAYLOAD_BYTES_MAX = 1_000_000;

/** Time limit of one operation. */
const APP_OPERATION_MS_MAX = 60_000;

interface OperationsParts {
  bus: Bus;
  clock: Clock;
  actors: ActorClient;
  blobs: BodyBlobs;
  fetch: AppFetch;
  secrets: Pick<SecretBox, "seal">;
  streams: HostStreams;
  /** Limits of the agents of one account. */
  limits: AgentLimits;
}

/** The code that requested an operation: the agent with this address, or without an address the app's entry. */
interface Asker {
  config: AppConfig;
  app: string;
  address: AgentAddress | undefined;
  values: Readonly<Record<string, unknown>>;
  /** Aborts when the process ends or its time is up. */
  signal: AbortSignal;
  /** Counts bytes of a response that arrive. Throws ActorError `busy` past the limit. */
  comes(bytes: number): void;
  process: AppProcess;
}

type OperationOf<T extends Operation["type"]> = Extract<Operation, { type: T }>;

export class Operations {
  readonly #parts: OperationsParts;
  readonly #places = new WeakMap<AppProcess, OperationPlaces>();

  constructor(parts: OperationsParts) {
    this.#parts = parts;
  }

  /** Runs an operation and sends its result to the process. Never rejects. */
  async run(
    process: AppProcess,
    { operation, wanted }: Extract<FromProcess, { type: "operation" }>,
    address?: AgentAddress,
  ): Promise<void> {
    const places = this.#places.get(process) ?? new OperationPlaces();
    this.#places.set(process, places);
    const { arriving } = process;
    let heldBytes = 0;
    let arrivingBytes = 0;
    const comes = (more: number) => {
      arriving.add(more);
      arrivingBytes += more;
    };
    const arrived = () => arriving.remove(arrivingBytes);
    try {
      const bytes = weightOf(wanted);
      if (!process.held.hasRoom(bytes)) {
        throw new ActorError(
          "busy",
          `Cannot begin: ${APP_HELD_BYTES_MAX} bytes of what the app asked for are under way`,
        );
      }
      process.held.hold(bytes);
      heldBytes = bytes;
      const perform = () => {
        // Checked before any effect: no operation begins while the bytes on their way to the process are at their
        // limit. The size of this result is not known yet.
        arriving.checkRoom();
        const { ending } = process;
        // A call to an agent has a deadline of its own.
        const signal = isAgentCall(wanted.type)
          ? ending
          : AbortSignal.any([AbortSignal.timeout(APP_OPERATION_MS_MAX), ending]);
        return this.#perform(wanted, {
          app: process.key,
          config: process.serving.config,
          values: process.values,
          ...{ process, address, signal, comes },
        });
      };
      const { clock } = this.#parts;
      const result = await places.run(wanted, perform, { address, clock });
      // Bytes of the result that `comes` did not count are counted now.
      const uncounted = Math.max(0, weightOf(result) - arrivingBytes);
      arriving.addDone(uncounted);
      arrivingBytes += uncounted;
      process.send({ type: "done", operation, result }, arrived);
    } catch (error) {
      process.send({ type: "failed", operation, error: toProcessError(error) }, arrived);
    } finally {
      process.held.release(heldBytes);
    }
  }

  #perform(wanted: Operation, asker: Asker): Promise<OperationResult> {
    switch (wanted.type) {
      case "fetch":
        return this.#parts.fetch.fetch(wanted, {
          ...asker,
          account: readAppKey(asker.app).accountId,
        });
      case "agent.request":
        return this.#request(wanted, asker);
      case "agent.invoke":
        return this.#invoke(wanted, asker);
      case "rest":
        return this.#rest(wanted, asker);
      case "read":
        return this.#read(wanted, asker);
      case "identify":
        return this.#identify(wanted, asker);
      case "webhook":
        return this.#webhook(wanted, asker);
      default:
        wanted satisfies never;
        throw new ActorError("invalid_request", "Cannot do that: it is no operation");
    }
  }

  async #request(
    { className, name, request }: OperationOf<"agent.request">,
    asker: Asker,
  ): Promise<OperationResult> {
    const { actors, blobs, streams } = this.#parts;
    const key = otherAgent(asker.app, className, name);
    const written = await writeRequest(blobs, asker.app, request);
    const answer = await actors
      .call(agentContract, key, "request", written, {
        deadlineMs: APP_OPERATION_MS_MAX,
        signal: asker.signal,
      })
      .finally(() => dropBody(blobs, written.body));
    const lent = answer.rest && { lent: streams.lend(asker.process, answer.rest) };
    return { type: "answer", answer: { ...(await takeAnswer(blobs, answer)), ...lent } };
  }

  async #read(
    { lent, part, isLeft }: OperationOf<"read">,
    { process, signal }: Asker,
  ): Promise<OperationResult> {
    const { streams } = this.#parts;
    const stream = streams.lent(process, lent);
    if (!stream)
      return { type: "part", part: { failed: "it was passed on, or not read for long" } };
    if (isLeft) {
      streams.forgetLent(process, lent);
      leaveAnswerStream(this.#parts.bus, stream);
      return { type: "nothing" };
    }
    const answer = await streams.readLent(process, lent, () =>
      readPart(this.#parts, stream, part, signal),
    );
    if ("wait" in answer) return { type: "part" };
    if ("part" in answer) return { type: "part", part: { bytes: inlineBytes(answer.part) } };
    streams.forgetLent(process, lent);
    return { type: "part", part: "end" in answer ? { isEnd: true } : answer };
  }

  async #invoke(
    { className, name, method, args }: OperationOf<"agent.invoke">,
    { app, signal }: Asker,
  ): Promise<OperationResult> {
    const { actors, blobs } = this.#parts;
    const key = otherAgent(app, className, name);
    const { base64, blob } = await writeValue(blobs, app, args);
    const input = { method, args: base64, argsBlob: blob };
    const { result, resultBlob } = await actors
      .call(agentContract, key, "invoke", input, { deadlineMs: APP_OPERATION_MS_MAX, signal })
      .finally(() => dropBlob(blobs, blob));
    const taken = await takeValue(blobs, { base64: result, blob: resultBlob });
    return { type: "invoked", result: taken };
  }

  async #rest(
    { permission, namespace, request }: OperationOf<"rest">,
    { app, config }: Asker,
  ): Promise<OperationResult> {
    const { blobs, bus, clock } = this.#parts;
    checkBound(config, permission, namespace);
    const asked: AppRestRequest = {
      ...readAppKey(app),
      ...{ permission, namespace },
      request: await writeRequest(blobs, app, request),
      deadlineAt: clock.now() + APP_OPERATION_MS_MAX,
    };
    const answered = await askGateway(bus, APP_REST_SUBJECT, asked).finally(() =>
      dropBody(blobs, asked.request.body),
    );
    return { type: "answer", answer: await takeAnswer(blobs, AppRestAnswer.parse(answered)) };
  }

  async #identify({ token }: OperationOf<"identify">, { app }: Asker): Promise<OperationResult> {
    const { accountId } = readAppKey(app);
    const asked: AppTokenRequest = { accountId, token };
    const answer = AppTokenAnswer.parse(
      await askGateway(this.#parts.bus, APP_TOKEN_SUBJECT, asked),
    );
    if ("isUnavailable" in answer) {
      throw new ActorError("unavailable", "Cannot verify the token now", { retryAfterS: 1 });
    }
    return { type: "identified", ...("identity" in answer && { identity: answer.identity }) };
  }

  async #webhook(
    { id, url, payload, secrets }: OperationOf<"webhook">,
    { app, address, values, process }: Asker,
  ): Promise<OperationResult> {
    const { actors, blobs } = this.#parts;
    if (!address)
      throw new ActorError("invalid_request", "Cannot send a webhook: no agent sends it");
    const bytes = Buffer.from(payload);
    if (bytes.length > OUTGOING_PAYLOAD_BYTES_MAX) {
      const text = `Cannot send a webhook: its payload is larger than ${OUTGOING_PAYLOAD_BYTES_MAX} bytes`;
      throw new ActorError("body_too_large", text);
    }
    await this.#checkRoom(address);
    const signing = secrets.length > 0 && {
      secret: secrets.map((secret) => this.#signing(app, secret, values)),
    };
    const { body, remove } = await this.#payload(blobs, app, id, bytes);
    const { id: appId } = process.serving;
    const wanted = {
      ...{ id, url, payload: body, payloadBytes: bytes.length, ...signing },
      ...(appId !== undefined && { appId }),
    };
    try {
      const { isNew } = await actors.call(outgoingWebhook, agentKey(address), "send", wanted);
      if (!isNew) await remove();
    } catch (error) {
      if (isRefusal(error)) await remove();
      throw error;
    }
    return { type: "nothing" };
  }

  async #checkRoom({ accountId }: AgentAddress): Promise<void> {
    const { actors, limits } = this.#parts;
    if (limits.bytes === 0) return;
    const { bytes } = await actors.call(appUsage, accountId, "get", {});
    if (bytes >= limits.bytes) throw noRoom(limits.bytes);
  }

  /**
   * Stores a webhook's payload, and returns it with `remove`, which deletes a blob that this call wrote. If the
   * operation is a repeat, the queue has the blob already or no longer needs it.
   */
  async #payload(blobs: BodyBlobs, app: string, id: string, bytes: Buffer) {
    if (bytes.length <= OUTGOING_INLINE_BYTES_MAX) {
      return { body: { text: bytes.toString() }, remove: async () => {} };
    }
    const blob = `app.${app}.webhook.${id.replace(/[^\w-]/g, "_")}`;
    const { wasThere } = await blobs.put(blob, bytes);
    const remove = async () => {
      if (!wasThere) await blobs.remove(blob).catch(() => {});
    };
    return { body: { blob }, remove };
  }

  /** A secret of the app is stored by its name, so that each attempt uses the secret's current value. */
  #signing(app: string, secret: string, values: Readonly<Record<string, unknown>>) {
    const name = Object.keys(values).find((known) => values[known] === secret);
    if (name !== undefined) return { name };
    const sealedFor = { ...readAppKey(app), name: OUTGOING_SECRET };
    return { sealed: this.#parts.secrets.seal(secret, sealedFor) };
  }
}

async function askGateway(bus: Bus, subject: string, question: object): Promise<unknown> {
  const timeoutMs = APP_OPERATION_MS_MAX;
  const heard = await ask(bus, subject, JSON.stringify(question), { timeoutMs });
  if (typeof heard === "object") return JSON.parse(heard.answer.string());
  const reason = heard === "nobody" ? "no gateway is there" : "no answer in time";
  throw new ActorError("unavailable", `Cannot reach the API: ${reason}`, { retryAfterS: 1 });
}

/** Returns the key of another agent of the same app. */
function otherAgent(app: string, className: string, name: string): string {
  const read = ClassName.safeParse(className);
  if (!read.success || typeof name !== "string") {
    throw new ActorError("invalid_request", "Cannot address an agent: expected a class and a name");
  }
  return agentKey({ ...readAppKey(app), className: read.data, name });
}

function toProcessError(error: unknown): ProcessError {
  if (error instanceof ActorError) {
    const thrown = thrownBy(error);
    if (thrown) return thrown;
    return { name: "Error", message: error.message, refusal: error.code };
  }
  if (error instanceof DOMException) {
    const message = `Cannot finish: it took longer than ${APP_OPERATION_MS_MAX} ms`;
    return { name: error.name, message, refusal: "deadline_exceeded" };
  }
  return {
    name: "Error",
    message: "Cannot finish: see the platform's log",
    refusal: "internal_error",
  };
}
