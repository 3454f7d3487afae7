/** The interface of a token from the Authorization header, for the parts of the gateway that verify it. */
import type { Caller } from "../http/locals.ts";
import type { Credential } from "./failed-authentications.ts";

/** A token that has the form of this platform's tokens but is not verified yet. */
export interface FoundToken {
  /** Identifies the credential for failure counting. Contains no secret. */
  credential: Credential;
  /** Verifies the token and resolves to its caller. Refuses as `unauthenticated`, whatever the reason. */
  find(): Promise<Caller>;
}

export interface Tokens {
  /**
   * Parses a token. Returns undefined if the text does not have the form of a token of this platform. `askedId` is
   * the account that the request is for.
   */
  read(text: string, askedId: string | undefined): FoundToken | undefined;
  /**
   * Resolves to the caller with the permissions that the grant's person and client still have. Refuses as
   * `unauthenticated` if the grant has ended.
   */
  verifyIssued(issued: Caller & { grantId: string }): Promise<Caller>;
}
