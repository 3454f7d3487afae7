/**
 * Messages between an app's process and its host, over the IPC channel with V8's serialization. The process runs user
 * code and opens the databases of its agents. The host has the access to the bus, sockets and timers, and performs
 * every operation outside the process.
 */

import type { CallId } from "../call-id.ts";
import type { SocketClose } from "./agent.ts";
import type { AgentInspection, QueryRows } from "./agent-inspection.ts";
import type { AppAnswer, AppRequest } from "./app-exchange.ts";
import type { AgentAddress } from "./app-names.ts";
import type { TokenIdentity } from "./app-token.ts";

/** The first message to a process. */
export interface StartProcess {
  type: "start";
  /** The bundle's file, below a folder that the process may read. */
  bundle: string;
  /** The folder of open databases. */
  workFolder: string;
  env: {
    /** Vars and secrets by name. */
    values: Record<string, unknown>;
    agents: { binding: string; className: string }[];
    artifacts: { binding: string; namespace: string }[];
    browser: string | undefined;
  };
  compatibilityDate: string;
  limits: {
    databaseBytes: number;
    answerBytes: number;
    turnMs: number;
    workMs: number;
    /** Time after which deliveries that arrived together no longer share a record. */
    togetherMs: number;
  };
}

/** One socket, in the form in which its agent stores it in its database and in memory. */
export interface ProcessConnection {
  id: string;
  number: number;
  gateway: string;
}

/** The event of a turn. The forms are those of the `agent` contract, but bodies and frames are bytes or text. */
export type TurnInput =
  | { type: "request"; request: ProcessRequest }
  | { type: "deliver"; deliveryId: string; attempt: number; request: ProcessRequest }
  | { type: "invoke"; method: string; args: Uint8Array; isJson?: boolean | undefined }
  | {
      type: "connect";
      connection: ProcessConnection;
      request: ProcessRequest;
      props: Uint8Array | undefined;
    }
  | {
      type: "frames";
      connection: ProcessConnection;
      first: number;
      frames: (string | Uint8Array)[];
      settledBefore?: number | undefined;
    }
  | {
      type: "disconnect";
      connection: ProcessConnection;
      close: SocketClose;
      wasClean: boolean;
    }
  | { type: "wake" }
  | { type: "inspect" }
  | { type: "query"; sql: string };

export type ProcessRequest = Omit<AppRequest, "body"> & { body?: Uint8Array | undefined };
/** An answer as the process sends or receives it. Only the host sets `rest`. */
export type ProcessAnswer = Omit<AppAnswer, "body"> & {
  body?: Uint8Array | undefined;
  /** Number of a stream of this process that has the rest of the body, after `body`. */
  stream?: number | undefined;
  /**
   * Number of a stream that has the rest of the body, after `body`, if another process writes it. The host lent that
   * stream to this process under this number.
   */
  lent?: number | undefined;
};

/** The next part of a stream. */
export type StreamPart =
  | { bytes: Uint8Array }
  | { isEnd: true }
  /** The stream broke off before its end. */
  | { failed: string };

/** The result of a turn. */
export type TurnResult =
  | { type: "answer"; answer: ProcessAnswer }
  | { type: "invoked"; result: Uint8Array }
  | {
      type: "accept";
      className: string;
      name: string;
      request: ProcessRequest;
      props?: Uint8Array | undefined;
    }
  | ({ type: "inspected" } & AgentInspection)
  | ({ type: "queried" } & QueryRows)
  /** `isPending`: frames of the turn are still being handled. */
  | { type: "nothing"; isPending?: boolean | undefined };

export type ToProcess =
  | StartProcess
  /** Opens an agent. `image` and `records` are the content of its log. The host chooses the number `agent`. */
  | {
      type: "open";
      agent: number;
      address: AgentAddress;
      image: Uint8Array | undefined;
      records: Uint8Array[];
      /** Number of the last record in the log. */
      lastCommit: number;
    }
  /**
   * Begins a turn. `id` is the same in every attempt, and the agent answers a repeated turn from its database. A
   * delivery that `follows` another turn begins only if that turn was answered 2xx and both can share a record.
   * Otherwise its result is `nothing`.
   */
  | {
      type: "turn";
      agent: number;
      turn: number;
      id: string;
      call?: CallId;
      input: TurnInput;
      follows?: number;
    }
  /** Calls `fetch` of the default export. With `isUpgrade`, the app may accept the upgrade. */
  | { type: "entry"; turn: number; request: ProcessRequest; isUpgrade: boolean }
  | { type: "committed"; agent: number; commit: number }
  /** Requests the next part of a stream. With `isLeft`, the reader wants no more parts. */
  | { type: "pull"; stream: number; isLeft?: boolean }
  | { type: "done"; operation: number; result: OperationResult }
  | { type: "failed"; operation: number; error: ProcessError }
  /** Sockets of this agent that disappeared without a close frame. */
  | { type: "gone"; agent: number; gateway: string; numbers: number[] | "all" }
  /** Closes the agent. The agent finishes no more turns, and the process removes it from memory. */
  | { type: "close"; agent: number }
  | { type: "ping"; number: number };

/** Stands for the entry in place of an agent's number, which is never 0. */
export const ENTRY = 0;

export type FromProcess =
  | { type: "ready"; classes: string[]; hasEntry: boolean; hasDefault: boolean }
  | { type: "broken"; error: ProcessError }
  /** `isEmpty`: the agent stores nothing but replies. */
  | { type: "opened"; agent: number; isEmpty?: boolean | undefined }
  | { type: "unopened"; agent: number; error: ProcessError }
  /**
   * A record of the pages that changed since the last commit, or a whole image. The process takes the next record
   * only after this one is `committed`. Messages with this number as `after` wait until then. `actions` are sent when
   * the record is stored. A new owner sends them again if it does not know whether they arrived.
   */
  | {
      type: "commit";
      agent: number;
      commit: number;
      record: Uint8Array;
      isImage: boolean;
      /** The agent was destroyed. It does not exist until it writes data again. */
      isGone?: boolean | undefined;
      /** The agent's database stores nothing but replies. */
      isEmpty?: boolean | undefined;
      actions: ProcessAction[];
      /**
       * The time of the next alarm. If it is earlier than the current one, the host sets it before it stores the
       * commit. Absent means unchanged; null means that no alarm is needed.
       */
      wakeAt?: number | null | undefined;
    }
  /** Socket actions that belong to no commit. */
  | { type: "act"; agent: number; after: number; actions: ProcessAction[] }
  | {
      type: "finished";
      agent?: number | undefined;
      turn: number;
      after: number;
      result: TurnResult;
    }
  | {
      type: "refused";
      agent?: number | undefined;
      turn: number;
      after: number;
      error: ProcessError;
    }
  /** A part of a stream, as an answer to `pull`. */
  | {
      type: "part";
      agent?: number | undefined;
      stream: number;
      after: number;
      part: StreamPart;
    }
  | {
      type: "operation";
      operation: number;
      agent?: number | undefined;
      after: number;
      wanted: Operation;
    }
  | {
      type: "log";
      agent?: number | undefined;
      level: "debug" | "info" | "warn" | "error";
      text: string;
    }
  /**
   * Reports whether the agent is idle, so that it may be unloaded. An idle agent may be unloaded only when the record
   * `after` is stored, because that record has the last changes of its work. The ENTRY is idle if no `waitUntil`
   * promise is pending.
   */
  | { type: "idle"; agent: number; after: number; isIdle: boolean }
  | { type: "pong"; number: number };

/** Socket actions by gateway. */
export type ProcessAction = { gateway: string; to: number[] } & (
  | { frame: string | Uint8Array; isState?: boolean | undefined }
  | { close: SocketClose }
);

/** An operation outside the process. User code requests it, and the host performs it. */
export type Operation =
  /**
   * A request to the network, checked by the egress guard. Redirects are followed as by `fetch`, and the guard checks
   * each target.
   */
  | { type: "fetch"; request: ProcessRequest; redirect: "follow" | "error" | "manual" }
  /** A request to another agent of this app: to its `onRequest`, or to a public method. */
  | { type: "agent.request"; className: string; name: string; request: ProcessRequest }
  | { type: "agent.invoke"; className: string; name: string; method: string; args: Uint8Array }
  /**
   * A call of the platform's REST API on behalf of the app, below /v4/accounts/{its account}. Bindings use it. The
   * request's URL is `http://trunkline/<path after the account>`. With `artifacts`, the call may access only one
   * namespace, which the app's configuration must bind.
   */
  | {
      type: "rest";
      permission: "artifacts" | "browser";
      namespace?: string | undefined;
      request: ProcessRequest;
    }
  /** Reads part number `part`, from 1, of a lent stream. With `isLeft`, no more parts are wanted. */
  | { type: "read"; lent: number; part: number; isLeft?: boolean | undefined }
  /** Asks for the owner of a token. */
  | { type: "identify"; token: string }
  /** Sends a durable outgoing webhook of this agent. */
  | { type: "webhook"; id: string; url: string; payload: string; secrets: string[] };

export type OperationResult =
  | { type: "answer"; answer: ProcessAnswer; url?: string }
  | { type: "invoked"; result: Uint8Array }
  /** `part` is absent if no part is ready yet. */
  | { type: "part"; part?: StreamPart }
  /** `identity` is absent if the text is not a token or the token is no longer valid. */
  | { type: "identified"; identity?: TokenIdentity }
  | { type: "nothing" };

/** `refusal` is an error code of schemas/errors.ts. `name` is the name of the error that user code sees. */
export interface ProcessError {
  name: string;
  message: string;
  refusal?: string | undefined;
  stack?: string | undefined;
}
