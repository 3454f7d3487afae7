/**
 * Messages between an app's process and its host, over the IPC channel with V8's serialization. The process runs user
 * code and owns the databases of its agents; the host owns the bus, sockets, timers and everything that leaves.
 */

import type { CallId } from "../call-id.ts";
import type { SocketClose } from "./agent.ts";
import type { AgentInspection, QueryRows } from "./agent-inspection.ts";
import type { AppAnswer, AppRequest } from "./app-exchange.ts";
import type { AgentAddress } from "./app-names.ts";
import type { TokenIdentity } from "./app-token.ts";

/** First of all. */
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
    /** Deliveries that arrived together: none starts later behind another before a record exists. */
    togetherMs: number;
  };
}

/** One socket as its agent keeps it in its database and in memory. */
export interface ProcessConnection {
  id: string;
  number: number;
  gateway: string;
}

/** The event of a turn. The shapes are those of the `agent` contract, with bodies and frames as bytes or text. */
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
/** `rest` is set by the host alone. */
export type ProcessAnswer = Omit<AppAnswer, "body"> & {
  body?: Uint8Array | undefined;
  /** The rest after `body`: the number of a stream that this process makes. */
  stream?: number | undefined;
  /** The rest after `body`, if another process makes it: the number under which the host lent it to this one. */
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
  /** `isPending`: frames that the turn has brought are still being handled. */
  | { type: "nothing"; isPending?: boolean | undefined };

export type ToProcess =
  | StartProcess
  /** `image` and `records` are the content of the log. The host numbers the agents. */
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
   * `id` is the same in every try: an agent answers a repeat from its database. A delivery that `follows` another
   * turn is begun only where it can share the record of that, which was answered 2xx; else its result is `nothing`.
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
  /** `fetch` of the default export; an upgrade may be accepted. */
  | { type: "entry"; turn: number; request: ProcessRequest; isUpgrade: boolean }
  | { type: "committed"; agent: number; commit: number }
  /** The next part of a stream is wanted; `isLeft`: none is any more. */
  | { type: "pull"; stream: number; isLeft?: boolean }
  | { type: "done"; operation: number; result: OperationResult }
  | { type: "failed"; operation: number; error: ProcessError }
  /** Sockets of this agent that are gone without a close. */
  | { type: "gone"; agent: number; gateway: string; numbers: number[] | "all" }
  /** The agent finishes no more turns: it is closed and forgotten. */
  | { type: "close"; agent: number }
  | { type: "ping"; number: number };

/** In place of an agent's number, which is never 0. */
export const ENTRY = 0;

export type FromProcess =
  | { type: "ready"; classes: string[]; hasEntry: boolean; hasDefault: boolean }
  | { type: "broken"; error: ProcessError }
  | { type: "opened"; agent: number }
  | { type: "unopened"; agent: number; error: ProcessError }
  /**
   * Changed pages since the last commit, or a whole image. The next commit is taken when this one is `committed`, and
   * messages `after` it wait until then. `actions` leave with it, and again after a takeover that cannot know whether
   * they arrived.
   */
  | {
      type: "commit";
      agent: number;
      commit: number;
      record: Uint8Array;
      isImage: boolean;
      /** The agent was destroyed, and does not exist until it writes again. */
      isGone?: boolean | undefined;
      actions: ProcessAction[];
      /**
       * The next alarm. If earlier than the current one, the host sets it before the commit. Absent means unchanged,
       * null means none.
       */
      wakeAt?: number | null | undefined;
    }
  /** Actions of no commit. */
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
  /** A part that was pulled from a stream. */
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
  /** The agent is idle and may be unloaded. For the ENTRY: no `waitUntil` promise is pending. */
  | { type: "idle"; agent: number; isIdle: boolean }
  | { type: "pong"; number: number };

/** Socket actions by gateway. */
export type ProcessAction = { gateway: string; to: number[] } & (
  | { frame: string | Uint8Array; isState?: boolean | undefined }
  | { close: SocketClose }
);

/** An operation outside the process that user code asks for and the host does. */
export type Operation =
  /** Through the egress guard. Redirects are followed as fetch does, each target held to the guard. */
  | { type: "fetch"; request: ProcessRequest; redirect: "follow" | "error" | "manual" }
  /** A request to another agent of this app: to its `onRequest`, or to a public method. */
  | { type: "agent.request"; className: string; name: string; request: ProcessRequest }
  | { type: "agent.invoke"; className: string; name: string; method: string; args: Uint8Array }
  /**
   * A call of the platform's REST API as the app, below /v4/accounts/{its account}. Bindings use it. The request's
   * URL is `http://trunkline/<path after the account>`. With `artifacts` the call is limited to one namespace, which
   * the app's configuration binds.
   */
  | {
      type: "rest";
      permission: "artifacts" | "browser";
      namespace?: string | undefined;
      request: ProcessRequest;
    }
  /** Part `part`, from 1, of a stream that was lent; `isLeft`: none is wanted any more. */
  | { type: "read"; lent: number; part: number; isLeft?: boolean | undefined }
  /** Asks for the owner of a token. */
  | { type: "identify"; token: string }
  /** A durable outgoing webhook of this agent. */
  | { type: "webhook"; id: string; url: string; payload: string; secrets: string[] };

export type OperationResult =
  | { type: "answer"; answer: ProcessAnswer; url?: string }
  | { type: "invoked"; result: Uint8Array }
  /** Absent if no part is ready yet. */
  | { type: "part"; part?: StreamPart }
  /** Absent where it is no token, or is good no more. */
  | { type: "identified"; identity?: TokenIdentity }
  | { type: "nothing" };

/** `refusal` is an error code of schemas/errors.ts; `name` that of the error user code sees. */
export interface ProcessError {
  name: string;
  message: string;
  refusal?: string | undefined;
  stack?: string | undefined;
}
