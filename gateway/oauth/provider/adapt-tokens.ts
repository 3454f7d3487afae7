/** The library's tokens and sessions, as ours: their texts name their grants, and sessions are opened by our pages. */
import { errors, type Provider } from "../library/oidc-library.ts";
import { newGrantId, newTokenText } from "../tokens/token-text.ts";

/** Texts name their grant, since that is the actor which keeps them. */
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
        // Its return value is unused. The call also decides the token's format.
        generateTokenId.call(this);
        return newTokenText(kind, this.grantId ?? "");
      },
    });
  }
  Object.assign(Grant.prototype, { generateTokenId: newGrantId });
}

/** Our own pages open sessions and end them: the library neither makes one nor gives it another name. */
export function adaptSession({ Session }: Provider): void {
  Object.assign(Session.prototype, {
    resetIdentifier() {},
    loginAccount(this: { accountId?: string }, { accountId }: { accountId: string }) {
      if (this.accountId !== accountId) throw new errors.SessionNotFound("the sign-in has ended");
    },
  });
}
