/** Facts about one request that middleware passes on. */
import assert from "node:assert/strict";
import type { Response } from "express";
import type { Logger } from "pino";
import type { ErrorCode } from "../../schemas/errors.ts";
import type { Caller } from "./caller.ts";
import type { Route } from "./route.ts";

export type { Caller };

/** Identifies an app by its account and its name. */
export interface AppOf {
  accountId: string;
  app: string;
}

/** Which app a request addresses, and how. */
export interface AppTarget extends AppOf {
  /** The path that the app sees, with its query. */
  path: string;
  isOwnOrigin: boolean;
  /** Prefix of the app's cookies in browsers. Set for a request at the app's own port. */
  cookiePrefix?: string;
}

interface Locals {
  requestId: string;
  /** Adds the request's id to every line. */
  logger: Logger;
  /** Set when a route matched. */
  route?: Route;
  /** Set for requests to apps. Their paths belong to the app and are no labels of metrics. */
  appTarget?: AppTarget;
  /** Set by `authenticate`. */
  caller?: Caller;
  /**
   * Verifies the request's credential once more, and resolves to the caller that it has now. Refuses as
   * `unauthenticated` if the credential is no longer valid. Absent if the caller is the code of an app.
   */
  findCallerAgain?: () => Promise<Caller>;
  /** The request body. `readBody` sets it; no schema has checked it yet. */
  body?: unknown;
  /** The error code of a refused request. */
  refusal?: ErrorCode;
}

export function localsOf(response: Response): Locals {
  // The first middleware sets the required fields before anything else runs.
  return response.locals as Locals;
}

/** Returns the caller on a route behind `authenticate`. */
export function callerOf(response: Response): Caller {
  const { caller } = localsOf(response);
  assert(caller, "the route is not behind authenticate");
  return caller;
}
