/** One request for a page: its browser, the signed-in user, and the submitted form. */

import type { Request, RequestHandler, Response } from "express";
import { urlencoded } from "express";
import type { ActorClient } from "../../../actors/runtime/calls/actor-client.ts";
import { session } from "../../../schemas/account/session.ts";
import { setRetryAfter } from "../../http/retry-after.ts";
import type { FormMarks } from "../../pages/form-marks.ts";
import { type Html, html } from "../../pages/html.ts";
import { type Link, type Page, sendPage } from "../../pages/page.ts";
import type { Refused } from "../../pages/refused.ts";
import { findSession, type SignedIn } from "../find-session.ts";
import { networkOf } from "../network-of.ts";
import {
  type CookieNames,
  knowBrowser,
  newSessionText,
  setSessionCookie,
} from "./browser-cookies.ts";
import type { KnownBrowsers } from "./known-browsers.ts";
import { openSession } from "./open-session.ts";
import type { Person } from "./sign-in.ts";

/** Limits the bytes of a form that our own pages send. */
export const FORM_BYTES_MAX = 64 * 1024;
/** Limits the fields of a form. The consent form has one field for each scope and each account. */
export const FORM_FIELDS_MAX = 1_000;

export interface VisitParts {
  actors: ActorClient;
  cookies: CookieNames;
  marks: FormMarks;
  known: KnownBrowsers;
  link: Link;
}

/**
 * Parses a form as browsers send it. A field that occurs once is a string; a field that occurs several times is an
 * array.
 */
export const readForm: RequestHandler = urlencoded({
  extended: false,
  limit: FORM_BYTES_MAX,
  parameterLimit: FORM_FIELDS_MAX,
});

export class Visit {
  readonly request: Request;
  readonly #response: Response;
  readonly #parts: VisitParts;
  readonly #browser: string;
  signedIn: SignedIn | undefined;

  private constructor(request: Request, response: Response, parts: VisitParts) {
    this.request = request;
    this.#response = response;
    this.#parts = parts;
    this.#browser = knowBrowser(request, response, parts.cookies);
  }

  static async begin(request: Request, response: Response, parts: VisitParts): Promise<Visit> {
    const visit = new Visit(request, response, parts);
    visit.signedIn = await findSession(parts.actors, request, parts.cookies);
    return visit;
  }

  /**
   * Opens a new session for every sign-in and ends the earlier one. So an attacker gains nothing by placing a session
   * cookie in this browser beforehand.
   */
  async signIn(person: Person): Promise<SignedIn> {
    const { actors, cookies, known } = this.#parts;
    const before = this.signedIn;
    const text = newSessionText();
    const opened = await openSession(actors, text, person);
    if (before) await actors.call(session, before.sessionId, "end", {});
    await known.remember(this.request, this.#response, opened.email);
    setSessionCookie(this.#response, cookies, text);
    this.signedIn = opened;
    return opened;
  }

  /** Resolves to a stable name of this browser if the person signed in here before. */
  knownAs(email: string): Promise<string | undefined> {
    return this.#parts.known.find(this.request, email);
  }

  async signOut(): Promise<void> {
    const { actors, cookies } = this.#parts;
    if (this.signedIn) await actors.call(session, this.signedIn.sessionId, "end", {});
    setSessionCookie(this.#response, cookies, null);
    this.signedIn = undefined;
  }

  /** Returns the hidden field with the form mark, which every form of our pages contains. */
  async markField(purpose: string): Promise<Html> {
    const mark = await this.#parts.marks.make(this.#owner(purpose));
    return html`<input type="hidden" name="mark" value="${mark}">`;
  }

  async isOurForm(purpose: string): Promise<boolean> {
    return this.#parts.marks.matches(this.text("mark"), this.#owner(purpose));
  }

  #owner(purpose: string) {
    return { browser: this.#browser, sessionId: this.signedIn?.sessionId ?? "", purpose };
  }

  /** Returns a field of the form; empty if it is absent. */
  text(name: string): string {
    return this.texts(name)[0] ?? "";
  }

  texts(name: string): string[] {
    return textsOf((this.request.body as Record<string, unknown> | undefined)?.[name]);
  }

  /** Returns a query parameter; empty if it is absent. */
  query(name: string): string {
    return textsOf(this.request.query[name])[0] ?? "";
  }

  get address(): string {
    return networkOf(this.request.ip ?? "");
  }

  /** Sets the Retry-After header of the page that is shown after this refusal. */
  noteRefusal({ status, retryAfterS }: Refused): void {
    setRetryAfter(this.#response, status, retryAfterS);
  }

  show(status: number, page: Page): void {
    sendPage(this.#response, status, page, this.#parts.link);
  }

  /** Redirects with GET after a form, so that the browser does not resend a password (RFC 9700 section 4.12). */
  leadTo(target: string): void {
    this.#response.redirect(303, target);
  }
}

function textsOf(value: unknown): string[] {
  if (typeof value === "string") return [value];
  return Array.isArray(value) ? value.filter((item) => typeof item === "string") : [];
}
