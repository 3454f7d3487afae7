/** Finds the caller of a token. The form of the text decides whether it is an API token or an OAuth access token. */
import { apiToken } from "../../../schemas/account/api-token.ts";
import { readToken } from "../../account/api-token-text.ts";
import type { FoundToken, Tokens } from "../../account/found-token.ts";
import type { Caller } from "../../http/locals.ts";
import { AccessTokens, type AccessTokensOptions, isGood } from "./access-tokens.ts";

export class TokenFinder implements Tokens {
  readonly #actors: AccessTokensOptions["actors"];
  readonly #accessTokens: AccessTokens;

  constructor(options: AccessTokensOptions) {
    this.#actors = options.actors;
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
      const { grantId, ...caller } = { tokenId: id, ...issued };
      if (grantId === undefined) return caller;
      const held = await accessTokens.verifyIssued({ ...caller, grantId });
      return { ...held, isStillGood: () => isGood(async () => (await find()) !== undefined) };
    };
    return { credential: { identity: id, proof: secretHash }, find };
  }
}
