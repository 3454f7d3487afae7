/** The process's side of the channel to its host: sends messages and requests operations. */
import { inspect } from "node:util";
import type {
  FromProcess,
  Operation,
  OperationResult,
  ProcessError,
} from "../../../schemas/apps/app-process.ts";
import {
  APP_LOG_LINE_CHARS_MAX,
  APP_LOG_LINES_A_SECOND_MAX,
} from "../../../schemas/apps/limits.ts";
import { running } from "../package/current-agent.ts";
import { AgentRefusal } from "../package/refusal.ts";
import { toError } from "./process-errors.ts";
import { forPeople } from "./stack-texts.ts";

/**
 * Limit of the operations (fetches, calls and others) for whose results one process waits. Further operations are
 * refused immediately.
 */
export const APP_OPERATIONS_WAITING_MAX = 2_000;

type LogLevel = "debug" | "info" | "warn" | "error";

export class HostLink {
  readonly send: (message: FromProcess) => void;
  readonly #waiting = new Map<
    number,
    {
      resolve: (result: OperationResult) => void;
      reject: (error: Error) => void;
      /** Created where the code called, so that an error gets the stack of that place. */
      called: Error;
    }
  >();
  #operations = 0;
  #second = 0;
  #lines = 0;

  constructor(send: (message: FromProcess) => void) {
    this.send = send;
  }

  operate(wanted: Operation, agent?: { number: number; after: number }): Promise<OperationResult> {
    if (this.#waiting.size >= APP_OPERATIONS_WAITING_MAX) {
      return Promise.reject(
        new AgentRefusal(
          "busy",
          `Cannot begin: ${APP_OPERATIONS_WAITING_MAX} operations are under way`,
        ),
      );
    }
    const called = new Error();
    this.#operations += 1;
    const operation = this.#operations;
    const { open, block } = running() ?? {};
    return new Promise((resolve, reject) => {
      // The result of an agent's operation is delivered as an event of that agent.
      const heard =
        <T>(tell: (value: T) => void) =>
        (value: T) =>
          open === undefined ? tell(value) : void open.inputs.deliver(() => tell(value), block);
      this.#waiting.set(operation, { resolve: heard(resolve), reject: heard(reject), called });
      this.send({
        type: "operation",
        operation,
        after: agent?.after ?? 0,
        wanted,
        ...(agent !== undefined && { agent: agent.number }),
      });
    });
  }

  done(operation: number, result: OperationResult): void {
    this.#waiting.get(operation)?.resolve(result);
    this.#waiting.delete(operation);
  }

  failed(operation: number, error: ProcessError): void {
    const waiting = this.#waiting.get(operation);
    waiting?.reject(toError(error, waiting.called));
    this.#waiting.delete(operation);
  }

  log(level: LogLevel, text: string, agent?: number): void {
    const second = Math.floor(Date.now() / 1000);
    if (second !== this.#second) {
      const left = this.#lines - APP_LOG_LINES_A_SECOND_MAX;
      this.#second = second;
      this.#lines = 0;
      if (left > 0) this.log("warn", `${left} lines were left out of the log`);
    }
    this.#lines += 1;
    if (this.#lines > APP_LOG_LINES_A_SECOND_MAX) return;
    const line = forPeople(text, APP_LOG_LINE_CHARS_MAX);
    this.send({ type: "log", level, text: line, ...(agent !== undefined && { agent }) });
  }
}

/** Formats a value as a console does. */
export const inspectValue = (value: unknown) =>
  typeof value === "string" ? value : inspect(value, { depth: 4, breakLength: 120 });
