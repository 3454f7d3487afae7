/**
 * Runs `fetch` of an app's default export, which answers requests to the app itself and decides which agent accepts a
 * socket.
 */

import { serialize } from "node:v8";
import type {
  ProcessRequest,
  StartProcess,
  TurnResult,
} from "../../../schemas/apps/app-process.ts";
import { runAs } from "../package/current-agent.ts";
import { acceptanceOf } from "../package/namespace.ts";
import { AgentRefusal } from "../package/refusal.ts";
import type { AnswerStreams, StreamMaker } from "./answer-streams.ts";
import { toProcessAnswer, toProcessRequest, toRequest } from "./exchange.ts";
import { clearTimeout, setTimeout } from "./native-timers.ts";
import { refuseBody, type UnreadBody, unheard } from "./read-body.ts";

export interface EntryExport {
  fetch?: (request: Request, env: object, context: object) => unknown;
}

const SWITCHING_PROTOCOLS = 101;
const UPGRADE_REQUIRED = 426;

export class Entry {
  readonly #entry: EntryExport;
  readonly #env: object;
  readonly #limits: StartProcess["limits"];
  readonly #report: (error: unknown) => void;
  readonly #tell: (isIdle: boolean) => void;
  readonly #streams: AnswerStreams;
  readonly #maker: StreamMaker;
  /** Number of pending `waitUntil` promises. */
  #waitedFor = 0;

  constructor(
    entry: EntryExport | undefined,
    env: object,
    limits: StartProcess["limits"],
    {
      report,
      tell,
      streams,
      say,
    }: {
      report(error: unknown): void;
      tell(isIdle: boolean): void;
      streams: AnswerStreams;
      say: StreamMaker["say"];
    },
  ) {
    this.#entry = entry ?? {};
    this.#env = env;
    this.#limits = limits;
    this.#report = report;
    this.#tell = tell;
    this.#streams = streams;
    this.#maker = { say, failed: report };
  }

  get exists(): boolean {
    return typeof this.#entry.fetch === "function";
  }

  async take(wire: ProcessRequest, isUpgrade: boolean): Promise<TurnResult> {
    if (!this.exists) {
      throw new AgentRefusal("not_found", "The app's default export has no fetch()");
    }
    const { turnMs } = this.#limits;
    const turn = { isOver: false };
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        reject(new AgentRefusal("deadline_exceeded", `fetch() took longer than ${turnMs} ms`));
      }, turnMs);
    });
    try {
      return await Promise.race([this.#answer(wire, isUpgrade, turn), late]);
    } finally {
      turn.isOver = true;
      clearTimeout(timer);
    }
  }

  async #answer(
    wire: ProcessRequest,
    isUpgrade: boolean,
    turn: { readonly isOver: boolean },
  ): Promise<TurnResult> {
    const request = toRequest(wire);
    if (isUpgrade) request.headers.set("upgrade", "websocket");
    return runAs({ request, isUpgrade }, async () => {
      const response = await this.#entry.fetch?.(request, this.#env, this.#context());
      const accepted = acceptanceOf(response);
      if (accepted !== undefined) {
        const { className, name, props } = accepted;
        return {
          type: "accept",
          className,
          name,
          request: await toProcessRequest(accepted.request, this.#limits.answerBytes),
          ...(props !== undefined && { props: new Uint8Array(serialize(props)) }),
        };
      }
      const open = (unread: UnreadBody) => {
        if (turn.isOver) throw refuseBody(unread, unheard());
        return this.#streams.open(unread, this.#maker).stream;
      };
      const answer = await toProcessAnswer(
        response,
        this.#limits.answerBytes,
        isUpgrade ? undefined : open,
      );
      // If the app copied the Response of an accepted upgrade, the copy no longer counts as accepted, so its status
      // is replaced.
      const status = answer.status === SWITCHING_PROTOCOLS ? UPGRADE_REQUIRED : answer.status;
      return { type: "answer", answer: { ...answer, status } };
    });
  }

  /** Keeps the process alive until the promise settles, for at most the time limit of a turn. */
  async #waitFor(promise: unknown): Promise<void> {
    this.#waitedFor += 1;
    this.#tell(false);
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, this.#limits.turnMs);
    });
    await Promise.race([Promise.resolve(promise).catch(this.#report), late]);
    clearTimeout(timer);
    this.#waitedFor -= 1;
    if (this.#waitedFor === 0) this.#tell(true);
  }

  #context(): object {
    return {
      waitUntil: (promise: unknown) => {
        void this.#waitFor(promise);
      },
      passThroughOnException: () => undefined,
      props: {},
    };
  }
}
