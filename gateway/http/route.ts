/**
 * The declaration of one endpoint. The router, the permission check and the OpenAPI document are all generated from
 * it.
 */
import type { Response } from "express";
import type { Logger } from "pino";
import type { z } from "zod";
import type { Permission } from "../../schemas/account/permissions.ts";
import type { ErrorCode } from "../../schemas/errors.ts";
import type { CursorInfo, ResultInfo } from "../../schemas/http/envelope.ts";
import type { Caller } from "./caller.ts";
import { storesMuch } from "./stores-much.ts";

/** The parsed request that a handler receives. */
export interface RouteRequest<P = unknown, Q = unknown, B = unknown> {
  parameters: P;
  query: Q;
  body: B;
  caller: Caller;
  /** Aborts when the client closes its connection. */
  signal: AbortSignal;
  /**
   * Whether the caller's credential could still make this request. Handlers of connections that outlive their request
   * check it every few seconds.
   */
  isStillAllowed: () => Promise<boolean>;
  logger: Logger;
}

export type Answer<R> = { result: R; resultInfo?: ResultInfo | CursorInfo };

/** The error numbers and pointers of the public API, for routes on which they differ from ours. */
export interface RefusalWording {
  /** `pointer` is the JSON pointer of the fault; "" when the refusal concerns no field. */
  code(name: ErrorCode, pointer: string): number;
  pointer(pointer: string): string;
}

/** A group of routes in the OpenAPI document. All routes of the group use the same object. */
export interface Tag {
  name: string;
  description: string;
}

interface Declaration<P extends z.ZodType, Q extends z.ZodType, B extends z.ZodType> {
  method: "get" | "post" | "put" | "patch" | "delete";
  /** OpenAPI path below /v4: `/accounts/{account_id}/tokens`. */
  path: string;
  /** A second path of the same route. */
  alias?: string;
  id: string;
  tag: Tag;
  summary: string;
  /** The token needs one of these permissions. When absent, any valid token is enough. */
  permissions?: readonly Permission[];
  /**
   * True for routes that concern only the person, not an account. The person's own session may use the route without
   * a permission; no token may.
   */
  isOfPerson?: boolean;
  /**
   * True for routes that take access away. A full disk does not refuse them. Neither does a full window of requests:
   * each caller has a small window for them.
   */
  isRevocation?: boolean;
  /** Only sessions of the installation's administrators may use the route; no token may. */
  isOfAdministrators?: boolean;
  /**
   * The path names no namespace, but callers that are bound to one namespace may use the route too. The handler must
   * then restrict them to their namespace.
   */
  isOpenToBindings?: boolean;
  parameters: P;
  query: Q;
  /** The body. If `isOptional` is set, a request without a body is handled as if it had the body `{}`. */
  body?: { schema: B; bytesMax: number; isOptional?: true };
  /**
   * The body may also be a form. Its field `files` is sent as file parts, and all other fields as JSON in the part
   * `options`.
   */
  takesFiles?: true;
  /** Error codes in addition to the codes that follow from the declaration. */
  refusals?: readonly ErrorCode[];
  wording?: RefusalWording;
  /** The name of the last parameter of the path, if its value may contain slashes. */
  rest?: string;
  /** The answer has X-Browser-Ms-Used (time in a browser) and X-Queued-Ms (time in the queue). */
  rendering?: boolean;
  /** With `Prefer: respond-async` the call becomes a job, and the answer has the status 202. */
  mayBeJob?: boolean;
}

/**
 * The result is the whole JSON answer without the envelope, as clients of another protocol expect it. Errors still
 * have the envelope.
 */
interface Bare<R extends z.ZodType> {
  bare: R;
}

interface Answers<R extends z.ZodType> {
  result: R;
  /** The answer is one page of a list, chosen by page number or by cursor. */
  paged?: "numbers" | "cursor" | "both";
  /** Defaults to 200. A 204 has no body. */
  status?: 201 | 202 | 204;
}

/**
 * The handler writes the answer itself: bytes of a media type, or an envelope whose result is too large for memory.
 */
type Streamed =
  | {
      /** One media type, or several. If there are several, the request chooses one. */
      mediaType: string | readonly string[];
      description: string;
      /** Descriptions of other statuses, such as 304. */
      also?: Readonly<Record<number, string>>;
    }
  | {
      streamed: z.ZodType;
      /** Members of the envelope in addition to the result. */
      beside?: Readonly<Record<string, z.ZodType>>;
    };

/**
 * A declaration with its handler. The handler returns the JSON result for the envelope, or writes the answer itself.
 */
type RouteParts<
  P extends z.ZodType,
  Q extends z.ZodType,
  B extends z.ZodType,
  R extends z.ZodType,
> = Declaration<P, Q, B> &
  (
    | {
        answer: Answers<R> | Bare<R>;
        /**
         * Returns the result, which the router writes. A handler uses `response` only to notice when the client has
         * received the answer.
         */
        handle(
          asked: RouteRequest<z.output<P>, z.output<Q>, z.output<B>>,
          response: Response,
        ): Promise<Answer<z.input<R>>>;
      }
    | {
        answer: Streamed;
        handle(
          asked: RouteRequest<z.output<P>, z.output<Q>, z.output<B>>,
          response: Response,
        ): Promise<void>;
      }
  );

/** A route without its own types, as the router stores it. */
export type Route = Declaration<z.ZodType, z.ZodType, z.ZodType> & {
  answer: Answers<z.ZodType> | Bare<z.ZodType> | Streamed;
  handle(asked: RouteRequest, response: Response): Promise<Answer<unknown> | undefined>;
};

export function defineRoute<
  P extends z.ZodType,
  Q extends z.ZodType,
  R extends z.ZodType,
  B extends z.ZodType = z.ZodUndefined,
>(parts: RouteParts<P, Q, B, R>): Route {
  // The cast is safe, because the router parses requests with the same schemas from which the handler's types are
  // derived.
  return parts as unknown as Route;
}

/** Returns every error code that a route can answer with. */
export function refusalsOf(route: Route): ErrorCode[] {
  const mayStoreMuch = storesMuch({
    method: route.method.toUpperCase(),
    path: `/v4${route.path}`,
    isRevocation: route.isRevocation,
    isJob: route.mayBeJob,
  });
  return [
    "invalid_request",
    "unauthenticated",
    ...(route.permissions || route.isOfAdministrators ? (["forbidden"] as const) : []),
    ...(route.path.includes("{") ? (["not_found"] as const) : []),
    ...(route.body ? (["body_too_large", "unsupported_media_type"] as const) : []),
    "rate_limited",
    "internal_error",
    "busy",
    "unavailable",
    "deadline_exceeded",
    ...(mayStoreMuch ? (["storage_full"] as const) : []),
    ...(route.refusals ?? []),
  ];
}
