/** Our pages: which there are, and what a person sees when one of them fails. */
import { type ErrorRequestHandler, type RequestHandler, Router } from "express";
import { ActorError, ERRORS } from "../../../schemas/errors.ts";
import { LoginPages } from "../../account/pages/login-pages.ts";
import { MembersPage } from "../../account/pages/members-page.ts";
import type { PageParts } from "../../account/pages/page-parts.ts";
import { PROFILE_PATHS } from "../../account/pages/profile-nav.ts";
import { ProfilePages } from "../../account/pages/profile-pages.ts";
import { readForm, Visit } from "../../account/pages/visit.ts";
import { localsOf } from "../../http/locals.ts";
import { methodNotAllowed } from "../../http/middleware/method-not-allowed.ts";
import { setRetryAfter } from "../../http/retry-after.ts";
import { html } from "../../pages/html.ts";
import { sendPage } from "../../pages/page.ts";
import { STYLE, STYLE_PATH } from "../../pages/style.ts";
import { ConsentPage } from "./consent-page.ts";

type Show = (visit: Visit) => Promise<void>;

export function pageRouter(parts: PageParts): Router {
  const router = Router({ caseSensitive: true });
  const login = new LoginPages(parts);
  const consent = new ConsentPage(parts);
  const profile = new ProfilePages(parts);
  const members = new MembersPage(parts);
  const home: Show = async (visit) => visit.leadTo(parts.link("/profile/clients"));

  router.get(STYLE_PATH, (_request, response) => {
    response.set("Cache-Control", "public, max-age=31536000, immutable").type("css").send(STYLE);
  });
  page(
    "/login",
    (visit) => login.showLogin(visit),
    (visit) => login.login(visit),
  );
  page(
    "/signup",
    (visit) => login.showSignup(visit),
    (visit) => login.signup(visit),
  );
  page("/signout", undefined, (visit) => login.signOut(visit));
  page(
    "/oauth2/consent",
    (visit) => consent.show(visit),
    (visit) => consent.decide(visit),
  );
  page("/profile", home);
  page("/profile/clients", (visit) => profile.showClients(visit));
  page("/profile/clients/revoke", undefined, (visit) => profile.revokeClient(visit));
  page(PROFILE_PATHS.members, (visit) => members.show(visit));
  page(`${PROFILE_PATHS.members}/invite`, undefined, (visit) => members.invite(visit));
  page(
    `${PROFILE_PATHS.members}/change`,
    (visit) => members.showMember(visit),
    (visit) => members.changeMember(visit),
  );
  page(
    "/profile/password",
    (visit) => profile.showPassword(visit),
    (visit) => profile.changePassword(visit),
  );
  return router;

  function page(path: string, get: Show | undefined, post?: Show): void {
    const failed = pageError(parts);
    if (get) router.get(path, visiting(get), failed);
    if (post) router.post(path, readForm, visiting(post), failed);
    router.all(path, methodNotAllowed([...(get ? ["GET"] : []), ...(post ? ["POST"] : [])]));
  }

  function visiting(show: Show): RequestHandler {
    return async (request, response) => show(await Visit.begin(request, response, parts));
  }
}

/** What was asked for is over, was never there, or belongs to another browser. */
export function showOver(visit: Visit): void {
  visit.show(400, {
    title: "This is over",
    body: html`<h1>This is over</h1>
<p>You took longer than it is kept, it was decided already, or it began in another browser. Go back to the application
that sent you here and start again.</p>`,
  });
}

/** Where a person would see what is for programs. */
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
  // Of a form that is too large or broken, as the parser of forms says it.
  const status = error instanceof Error && "status" in error ? Number(error.status) : 500;
  return status >= 400 && status < 500 ? status : 500;
}
