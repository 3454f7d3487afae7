/** What the gateway knows of one request, from one middleware to the next. */
import assert from "node:assert/strict";
import type { Response } from "express";
import type { Logger } from "pino";
import type { Permission } from "../../schemas/account/permissions.ts";
import type { ErrorCode } from "../../schemas/errors.ts";
import type { Scope } from "../../schemas/oauth/scopes.ts";
import type { Route } from "./route.ts";

/** Who asks: an API token or an OAuth access token, and what it opens. */
export interface Caller {
  accountId: string;
  /** Of an OAuth access token the grant's. */
  tokenId: string;
  permissions: readonly Permission[];
  /** That its client was given, and still has: of an OAuth access token. */
  scopes?: readonly Scope[];
  notBeforeAt?: number | undefined;
  expiresAt?: number | undefined;
  /** In whose name, and through which client: of what rests on a grant. */
  userId?: string;
  clientId?: string;
  /** That it rests on, itself or by the token it was made with. */
  grantId?: string | undefined;
  /** Every account it opens: of an OAuth access token. */
  accountIds?: readonly string[];
  /** The one namespace of repositories that it opens: of a binding of an app. */
  namespace?: string;
  /** Whether it opens the same still, for what lasts longer than a request. */
  isStillGood?: () => Promise<boolean>;
}

/** Names an app of an account. */
export interface AppOf {
  accountId: string;
  app: string;
}

/** What a request to an app asks for, besides its body. */
export interface AskedOfApp extends AppOf {
  /** With its query, as the app sees it. */
  path: string;
  isOwnOrigin: boolean;
}

export interface Locals {
  requestId: string;
  /** Carries the request's id. */
  logger: Logger;
  /** Once a route matched. */
  route?: Route;
  /** Of a request that is for an app: its path is the app's own, and no label of figures. */
  askedOfApp?: AskedOfApp;
  /** Once the request is authenticated. */
  caller?: Caller;
  /** Once the body is read; unparsed. */
  body?: unknown;
  /** Once the request is refused: the error's name. */
  refusal?: ErrorCode;
}

export function localsOf(response: Response): Locals {
  // Set by the first middleware, before anything else runs.
  return response.locals as Locals;
}

/** Who asks, on a route behind `authenticate`. */
export function callerOf(response: Response): Caller {
  const { caller } = localsOf(response);
  assert(caller, "the route is not behind authenticate");
  return caller;
}
