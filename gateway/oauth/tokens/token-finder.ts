/** Finds the caller of a token. The form of the text decides whether it is an API token or an OAuth access token. */
import { apiToken } from "../../../schemas/account/api-token.ts";
import { TOKEN_USED_EVERY_MS } from "../../../schemas/account/limits.ts";
import { readToken } from "../../account/api-token-text.ts";
import type { FoundToken, Tokens } from "../../account/found-token.ts";
import type { Caller } from "../../http/locals.ts";
import { AccessTokens, type AccessTokensOptions } from "./access-tokens.ts";

/** A report of a token's use is repeated after this time if it had no effect. */
const REPORT_AGAIN_MS = 60_000;
/** Limits the remembered reports; past it they are forgotten, and tokens are reported once more. */
const REPORTED_MAX = 10_000;

export class TokenFinder implements Tokens {
  readonly #actors: AccessTokensOptions["actors"];
  readonly #now: () => number;
  readonly #accessTokens: AccessTokens;
  /** When this process last reported a use of a token. */
  readonly #reportedAt = new Map<string, number>();

  constructor(options: AccessTokensOptions) {
    this.#actors = options.actors;
    this.#now = options.now;
    this.#accessTokens = new AccessTokens(options);
  }

  read(text: string, askedId: string | undefined): FoundToken | undefined {
    const accessTokens = this.#accessTokens;
    const access = accessTokens.read(text);
    if (access) {
      const credential = { identity: access.grantId, proof: access.hash };
      return { credential, find: () => accessTokens.verify(access, askedId) };
    }
    const token = readToken(text);
    if (!token) return undefined;
    const { id, secretHash } = token;
    const find = async (): Promise<Caller> => {
      const issued = await this.#actors.call(apiToken, id, "verify", { secretHash });
      const { grantId, lastUsedAt, ...caller } = { tokenId: id, ...issued };
      if (grantId === undefined) {
        this.#noteUse(id, lastUsedAt);
        return caller;
      }
      const held = await accessTokens.verifyIssued({ ...caller, grantId });
      this.#noteUse(id, lastUsedAt);
      return held;
    };
    return { credential: { identity: id, proof: secretHash }, find };
  }

  verifyIssued(issued: Caller & { grantId: string }): Promise<Caller> {
    return this.#accessTokens.verifyIssued(issued);
  }

  /**
   * Reports a use to the token's actor, unless a recent one is stored. The request does not wait for it. While a report
   * has no effect yet, other requests with the token report nothing.
   */
  #noteUse(id: string, lastUsedAt = Number.NEGATIVE_INFINITY): void {
    const now = this.#now();
    if (now - lastUsedAt < TOKEN_USED_EVERY_MS) return;
    if (now - (this.#reportedAt.get(id) ?? Number.NEGATIVE_INFINITY) < REPORT_AGAIN_MS) return;
    if (this.#reportedAt.size >= REPORTED_MAX) this.#reportedAt.clear();
    this.#reportedAt.set(id, now);
    this.#actors.send(apiToken, id, "used", {}).catch(() => {
      // A request after REPORT_AGAIN_MS reports again.
    });
  }
}
