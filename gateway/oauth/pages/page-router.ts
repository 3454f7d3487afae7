/** Routes requests to the pages for people, and shows an error page when a request fails. */
import { type ErrorRequestHandler, type RequestHandler, Router } from "express";
import { ActorError, ERRORS } from "../../../schemas/errors.ts";
import type { FormPage } from "../../account/pages/form-page.ts";
import { loginPages } from "../../account/pages/login-pages.ts";
import { membersPages } from "../../account/pages/members-page.ts";
import type { PageParts } from "../../account/pages/page-parts.ts";
import { profilePages } from "../../account/pages/profile-pages.ts";
import { readForm, Visit } from "../../account/pages/visit.ts";
import { localsOf } from "../../http/locals.ts";
import { methodNotAllowed } from "../../http/middleware/method-not-allowed.ts";
import { setRetryAfter } from "../../http/retry-after.ts";
import { html } from "../../pages/html.ts";
import { sendPage } from "../../pages/page.ts";
import { STYLE, STYLE_PATH } from "../../pages/style.ts";
import { logoRouter } from "./client-logo.ts";
import { consentPages } from "./consent-page.ts";

/** Serves the pages for people, with their style sheet and pictures. */
export function pageRouter(parts: PageParts): Router {
  const router = Router({ caseSensitive: true });
  router.get(STYLE_PATH, (_request, response) => {
    response.set("Cache-Control", "public, max-age=31536000, immutable").type("css").send(STYLE);
  });
  router.use(logoRouter(parts.actors));
  const failed = pageError(parts);
  const handlerOf = (handle: NonNullable<FormPage["get"]>): RequestHandler => {
    return async (request, response) => handle(await Visit.begin(request, response, parts));
  };
  for (const { path, get, post } of pagesOf(parts)) {
    if (get) router.get(path, handlerOf(get), failed);
    if (post) router.post(path, readForm, handlerOf(post), failed);
    router.all(path, methodNotAllowed([...(get ? ["GET"] : []), ...(post ? ["POST"] : [])]));
  }
  return router;
}

const pagesOf = (parts: PageParts): FormPage[] => [
  ...loginPages(parts),
  ...consentPages(parts),
  ...profilePages(parts),
  ...membersPages(parts),
];

/** Shows that an authorization request has expired, is unknown, or began in another browser. */
export function showOver(visit: Visit): void {
  visit.show(400, {
    title: "This is over",
    body: html`<h1>This is over</h1>
<p>You took longer than it is kept, it was decided already, or it began in another browser. Go back to the application
that sent you here and start again.</p>`,
  });
}

/** Shows errors as a page, where the REST API answers with JSON. */
export function pageError({ link }: Pick<PageParts, "link">): ErrorRequestHandler {
  return (error: unknown, _request, response, _next) => {
    const status = statusOf(error);
    const locals = localsOf(response);
    locals.refusal = error instanceof ActorError ? error.code : "internal_error";
    if (status === 500) locals.logger.error({ err: error }, "page failed");
    if (response.headersSent) {
      response.destroy();
      return;
    }
    const { retryAfterS } = error instanceof ActorError ? error.details : {};
    setRetryAfter(response, status, retryAfterS);
    const title = status === 503 || status === 429 ? "Not at the moment" : "Something went wrong";
    const body = html`<h1>${title}</h1>
<p>${textOf(status, error)}</p>`;
    sendPage(response, status, { title, body }, link);
  };
}

function textOf(status: number, error: unknown): string {
  if (status === 429) return "Too many requests came from where you are. Try again later.";
  if (status >= 500) return "This is a fault on our side. Try again shortly.";
  const isSaid = error instanceof ActorError && error.code === "invalid_request";
  return isSaid ? `${error.message}.` : "What was sent cannot be read.";
}

function statusOf(error: unknown): number {
  if (error instanceof ActorError) return ERRORS[error.code].status;
  // The form parser sets the status of a form that is too large or malformed.
  const status = error instanceof Error && "status" in error ? Number(error.status) : 500;
  return status >= 400 && status < 500 ? status : 500;
}
