/** Replaces how oidc-provider generates the texts of tokens and how it opens sessions. */
import { errors, type Provider } from "../library/oidc-library.ts";
import { newGrantId, newTokenText } from "../tokens/token-text.ts";

/** The text of a token contains its grant's id, because the grant's actor stores the token. */
export function adaptTokens({
  AuthorizationCode,
  AccessToken,
  RefreshToken,
  Grant,
}: Provider): void {
  const kinds = [
    [AuthorizationCode, "code"],
    [AccessToken, "access"],
    [RefreshToken, "refresh"],
  ] as const;
  for (const [{ prototype }, kind] of kinds) {
    const { generateTokenId } = prototype as unknown as { generateTokenId(): string };
    Object.assign(prototype, {
      generateTokenId(this: { grantId?: string }) {
        // The return value is not used, but the original function also sets the format of the token.
        generateTokenId.call(this);
        return newTokenText(kind, this.grantId ?? "");
      },
    });
  }
  Object.assign(Grant.prototype, { generateTokenId: newGrantId });
}

/** Our pages open and end sessions, so oidc-provider must not create a session or change a session's id. */
export function adaptSession({ Session }: Provider): void {
  Object.assign(Session.prototype, {
    resetIdentifier() {},
    loginAccount(this: { accountId?: string }, { accountId }: { accountId: string }) {
      if (this.accountId !== accountId) throw new errors.SessionNotFound("the sign-in has ended");
    },
  });
}
