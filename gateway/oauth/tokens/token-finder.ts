/** Finds the caller of a token. The form of the text decides whether it is an API token or an OAuth access token. */
import { apiToken } from "../../../schemas/account/api-token.ts";
import { TOKEN_USED_EVERY_MS } from "../../../schemas/account/limits.ts";
import { readToken } from "../../account/api-token-text.ts";
import type { FoundToken, Tokens } from "../../account/found-token.ts";
import type { Caller } from "../../http/locals.ts";
import { AccessTokens, type AccessTokensOptions, isGood } from "./access-tokens.ts";

export class TokenFinder implements Tokens {
  readonly #actors: AccessTokensOptions["actors"];
  readonly #now: () => number;
  readonly #accessTokens: AccessTokens;

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
      this.#noteUse(id, lastUsedAt);
      if (grantId === undefined) return caller;
      const held = await accessTokens.verifyIssued({ ...caller, grantId });
      return { ...held, isStillGood: () => isGood(async () => (await find()) !== undefined) };
    };
    return { credential: { identity: id, proof: secretHash }, find };
  }

  /** Reports a use to the token's actor, unless a recent one is stored. The request does not wait for it. */
  #noteUse(id: string, lastUsedAt = Number.NEGATIVE_INFINITY): void {
    if (this.#now() - lastUsedAt < TOKEN_USED_EVERY_MS) return;
    this.#actors.send(apiToken, id, "used", {}).catch(() => {
      // The next request with this token reports again.
    });
  }
}
