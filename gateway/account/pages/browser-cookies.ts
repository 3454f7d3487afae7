/** The cookies of a browser: its random id, its session, and proofs of earlier sign-ins. */
import { randomBytes } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { Request, Response } from "express";
import { SESSION_MS } from "../../../schemas/account/limits.ts";
import { sha256 } from "../../http/sha256.ts";

/**
 * Lifetime of the browser cookie. Open forms and pending authorization requests belong to it, so none is valid
 * longer.
 */
export const BROWSER_MS = 30 * 86_400_000;

const BROWSER = /^[\w-]{43}$/;
const browsers = new WeakMap<IncomingMessage, string>();

export interface CookieNames {
  session: string;
  browser: string;
  /** The name of the cookie that contains proofs of earlier sign-ins. */
  known: string;
  isSecure: boolean;
}

/** Uses the prefix `__Host-` on https, so that no other host can set these cookies (RFC 6265bis section 4.1.3.2). */
export function cookieNames(publicUrl: string): CookieNames {
  const isSecure = publicUrl.startsWith("https:");
  const prefix = isSecure ? "__Host-" : "";
  return {
    session: `${prefix}tl_session`,
    browser: `${prefix}tl_browser`,
    known: `${prefix}tl_known`,
    isSecure,
  };
}

/**
 * Returns the id of the request's browser from its cookie. Without a valid cookie, makes an id and sets the cookie.
 */
export function knowBrowser(request: Request, response: Response, names: CookieNames): string {
  const known = browsers.get(request) ?? readCookie(request, names.browser);
  if (known !== undefined && BROWSER.test(known)) {
    browsers.set(request, known);
    return known;
  }
  const made = randomBytes(32).toString("base64url");
  browsers.set(request, made);
  setCookie(response, names.browser, made, {
    maxAgeMs: BROWSER_MS,
    isSecure: names.isSecure,
  });
  return made;
}

/** Returns the hash of the browser's id. `knowBrowser` must have handled the request before. */
export function browserHashOf(request: IncomingMessage): string {
  return sha256(browsers.get(request) ?? "");
}

export function newSessionText(): string {
  return randomBytes(32).toString("base64url");
}

/**
 * Derives the session's id, which is the key of its actor, and the hash of its secret from the text of the cookie.
 */
export function sessionAddress(text: string): { id: string; secretHash: string } {
  const secretHash = sha256(text);
  return { id: sha256(`session ${text}`).slice(0, 32), secretHash };
}

export const sessionTextOf = (request: Pick<IncomingMessage, "headers">, names: CookieNames) =>
  readCookie(request, names.session);

export function setSessionCookie(response: Response, names: CookieNames, text: string | null) {
  setCookie(response, names.session, text ?? "", {
    maxAgeMs: text === null ? 0 : SESSION_MS,
    isSecure: names.isSecure,
  });
}

export function setCookie(
  response: Response,
  name: string,
  value: string,
  { maxAgeMs, isSecure }: { maxAgeMs: number; isSecure: boolean },
): void {
  response.cookie(name, value, {
    httpOnly: true,
    // Lax: the browser sends the cookie when a client's site redirects back to us, but not with a form on another
    // site.
    sameSite: "lax",
    secure: isSecure,
    path: "/",
    maxAge: maxAgeMs,
  });
}

/**
 * Returns the first cookie of this name. RFC 6265 section 5.4: browsers send the cookie with the longest path first.
 */
export function readCookie(
  request: Pick<IncomingMessage, "headers">,
  name: string,
): string | undefined {
  for (const pair of request.headers.cookie?.split(";") ?? []) {
    const [key, ...value] = pair.trim().split("=");
    if (key === name) return value.join("=");
  }
  return undefined;
}
