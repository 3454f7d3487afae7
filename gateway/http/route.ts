/** One endpoint as a declaration: the router, the permission check and the OpenAPI document all come from it. */
import type { Response } from "express";
import type { Logger } from "pino";
import type { z } from "zod";
import type { Permission } from "../../schemas/account/permissions.ts";
import type { ErrorCode } from "../../schemas/errors.ts";
import type { CursorInfo, ResultInfo } from "../../schemas/http/envelope.ts";
import type { Caller } from "./locals.ts";

/** What a handler gets: everything parsed. */
export interface Asked<P = unknown, Q = unknown, B = unknown> {
  parameters: P;
  query: Q;
  body: B;
  caller: Caller;
  /** Aborts when the client hangs up. */
  signal: AbortSignal;
  logger: Logger;
}

export type Answer<R> = { result: R; resultInfo?: ResultInfo | CursorInfo };

/** How refusals are told where the public API has numbers and pointers of its own for them. */
export interface RefusalWording {
  /** `pointer`: of the fault; "" where the refusal is about none. */
  code(name: ErrorCode, pointer: string): number;
  pointer(pointer: string): string;
}

interface Declaration<P extends z.ZodType, Q extends z.ZodType, B extends z.ZodType> {
  method: "get" | "post" | "put" | "patch" | "delete";
  /** In the form of OpenAPI, below /v4: `/accounts/{account_id}/tokens`. */
  path: string;
  /** Another path that leads here. */
  alias?: string;
  id: string;
  tag: string;
  summary: string;
  /** A valid token is always needed; one of these permissions too. None: any token will do. */
  permissions?: readonly Permission[];
  /** Also for a caller that is held to one namespace, though the path names none; its handler sees to that. */
  isOpenToBindings?: boolean;
  parameters: P;
  query: Q;
  body?: { schema: B; bytesMax: number };
  /** What it may refuse besides what its declaration implies. */
  refusals?: readonly ErrorCode[];
  wording?: RefusalWording;
  /** A parameter of the path, its last, that may have slashes in it. */
  rest?: string;
  /** Answers say in X-Browser-Ms-Used how long a browser was held, and in X-Queued-Ms how long the request waited for one. */
  rendering?: boolean;
}

interface Answers<R extends z.ZodType> {
  result: R;
  /** A list, of which the answer is a part: by the numbers of its pages, or from a cursor on. */
  paged?: "numbers" | "cursor" | "both";
  /** 200 where it is not said; an answer of 204 has no body. */
  status?: 201 | 202 | 204;
}

/** Written by the handler itself: bytes of a media type, or the envelope around a result too large to be held. */
type Streamed =
  | {
      /** One, or those that the body of the request chooses from. */
      mediaType: string | readonly string[];
      description: string;
      /** Other statuses a client may ask for, with what they say: 304, for one. */
      also?: Readonly<Record<number, string>>;
    }
  | { streamed: z.ZodType };

/** The result is JSON in the envelope, or the handler writes the answer itself. */
export type RouteParts<
  P extends z.ZodType,
  Q extends z.ZodType,
  B extends z.ZodType,
  R extends z.ZodType,
> = Declaration<P, Q, B> &
  (
    | {
        answer: Answers<R>;
        /** `response`: to see when the client has it; it is written by the router. */
        handle(
          asked: Asked<z.output<P>, z.output<Q>, z.output<B>>,
          response: Response,
        ): Promise<Answer<z.input<R>>>;
      }
    | {
        answer: Streamed;
        handle(
          asked: Asked<z.output<P>, z.output<Q>, z.output<B>>,
          response: Response,
        ): Promise<void>;
      }
  );

/** A route whose types are known only to itself: what the router keeps. */
export type Route = Declaration<z.ZodType, z.ZodType, z.ZodType> & {
  answer: Answers<z.ZodType> | Streamed;
  handle(asked: Asked, response: Response): Promise<Answer<unknown> | undefined>;
};

export function defineRoute<
  P extends z.ZodType,
  Q extends z.ZodType,
  R extends z.ZodType,
  B extends z.ZodType = z.ZodUndefined,
>(parts: RouteParts<P, Q, B, R>): Route {
  // The router parses with the very schemas the handler's types are made of.
  return parts as unknown as Route;
}

/** What a route may refuse: what its declaration implies, and what it adds. */
export function refusalsOf(route: Route): ErrorCode[] {
  return [
    "invalid_request",
    "unauthenticated",
    ...(route.permissions ? (["forbidden"] as const) : []),
    ...(route.path.includes("{") ? (["not_found"] as const) : []),
    ...(route.body ? (["body_too_large", "unsupported_media_type"] as const) : []),
    "rate_limited",
    "internal_error",
    "busy",
    "unavailable",
    "deadline_exceeded",
    ...(route.refusals ?? []),
  ];
}
