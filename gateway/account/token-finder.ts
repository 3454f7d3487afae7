/** Finds out whose a token is: an API token or an OAuth access token, by its look. */
import { apiToken } from "../../schemas/account/api-token.ts";
import type { Caller } from "../http/locals.ts";
import { AccessTokens, type AccessTokensOptions, isGood } from "../oauth/access-tokens.ts";
import { readToken } from "./api-token-text.ts";
import type { Credential } from "./failed-authentications.ts";

/** A token that may be one of ours. */
export interface FoundToken {
  /** As its failures are counted. It contains no secret. */
  credential: Credential;
  /** Refuses as `unauthenticated`, whatever the reason. */
  find(): Promise<Caller>;
}

export class TokenFinder {
  readonly #actors: AccessTokensOptions["actors"];
  readonly #accessTokens: AccessTokens;

  constructor(options: AccessTokensOptions) {
    this.#actors = options.actors;
    this.#accessTokens = new AccessTokens(options);
  }

  /** Undefined when the text is none of ours. `askedId` is the account that is to be opened. */
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
      const { grantId, ...caller } = { tokenId: id, ...issued };
      if (grantId === undefined) return caller;
      const held = await accessTokens.verifyIssued({ ...caller, grantId });
      return { ...held, isStillGood: () => isGood(async () => (await find()) !== undefined) };
    };
    return { credential: { identity: id, proof: secretHash }, find };
  }
}
