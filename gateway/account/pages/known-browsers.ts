/**
 * Recognises browsers in which a person signed in before. Wrong passwords from other browsers do not delay sign-ins
 * from such a browser.
 */
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { Response } from "express";
import { sha256 } from "../../http/sha256.ts";
import { type CookieNames, readCookie, setCookie } from "./browser-cookies.ts";

/** How long after a sign-in a browser stays known. */
export const KNOWN_BROWSER_MS = 180 * 86_400_000;
/** Limits the people for whom one browser is known. One more replaces the person who signed in longest ago. */
export const KNOWN_PEOPLE_PER_BROWSER_MAX = 8;

/** The value of the cookie: a random name of the browser, followed by a proof for each person. */
const VALUE = /^[\w-]{22}(\.[\w-]{22})*$/;
const PROOF_BYTES = 16;

export class KnownBrowsers {
  readonly #secret: () => Promise<string>;
  readonly #cookies: CookieNames;

  /** `secret` is the same at all gateways. */
  constructor(secret: () => Promise<string>, cookies: CookieNames) {
    this.#secret = secret;
    this.#cookies = cookies;
  }

  /**
   * Resolves to a stable name of this browser for the person; undefined if the browser has no proof of an earlier
   * sign-in.
   */
  async find(request: IncomingMessage, email: string): Promise<string | undefined> {
    const { name, proofs } = this.#read(request);
    const own = await this.#prove(name, email);
    return proofs.some((proof) => isSame(proof, own)) ? sha256(own).slice(0, 32) : undefined;
  }

  /** Remembers in a cookie that the person has signed in. */
  async remember(request: IncomingMessage, response: Response, email: string): Promise<void> {
    const { name, proofs } = this.#read(request);
    const own = await this.#prove(name, email);
    const all = [own, ...proofs.filter((proof) => proof !== own)];
    const value = [name, ...all.slice(0, KNOWN_PEOPLE_PER_BROWSER_MAX)].join(".");
    const { known, isSecure } = this.#cookies;
    setCookie(response, known, value, { maxAgeMs: KNOWN_BROWSER_MS, isSecure });
  }

  #read(request: IncomingMessage): { name: string; proofs: string[] } {
    const value = readCookie(request, this.#cookies.known) ?? "";
    const [name = "", ...proofs] = VALUE.test(value) ? value.split(".") : [];
    return { name: name || randomBytes(PROOF_BYTES).toString("base64url"), proofs };
  }

  async #prove(name: string, email: string): Promise<string> {
    const mac = createHmac("sha256", await this.#secret());
    const proof = mac.update(JSON.stringify(["known browser", name, email])).digest();
    return proof.subarray(0, PROOF_BYTES).toString("base64url");
  }
}

/** Compares texts of equal length in constant time. */
const isSame = (one: string, other: string) =>
  timingSafeEqual(Buffer.from(one), Buffer.from(other));
