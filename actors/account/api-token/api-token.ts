/** Verifies the secret of an API token, and stores the token's permissions. */
import { account } from "../../../schemas/account/account.ts";
import { apiToken } from "../../../schemas/account/api-token.ts";
import { TOKEN_USED_EVERY_MS } from "../../../schemas/account/limits.ts";
import { type DeepReadonly, envelope } from "../../../schemas/contract.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { defineActor } from "../../runtime/kinds/define-actor.ts";
import { sameHash } from "../lib/hashes/same-hash.ts";
import { ApiTokenState } from "./api-token-state.ts";

/**
 * Time for which a revoked token is remembered, so that a late `issue` is refused. A gateway makes an id once and calls
 * `issue` within seconds. Only a first start that was interrupted repeats the call later.
 */
export const TOKEN_REVOKED_KEPT_MS = 86_400_000;

/**
 * Stored at: token id, 32 hex
 *
 * State: `{ status: "unknown" }`, `{ status: "issued", accountId, permissions, secretHash, notBeforeAt?, expiresAt?,
 * grantId?, isDisabled?, lastUsedAt?, changes? }` (the grant of the OAuth access token it was made with) or
 * `{ status: "revoked" }` (forgotten after a day); the secret itself is stored nowhere
 */
export const apiTokenActor = defineActor(apiToken, {
  state: ApiTokenState,
  initial: { status: "unknown" },

  handlers: {
    issue(state, input) {
      if (state.status === "unknown") {
        return { state: { status: "issued" as const, ...input }, reply: {} };
      }
      const repeated = state.status === "issued" && sameHash(state.secretHash, input.secretHash);
      if (repeated) return { state, reply: {} };
      throw new ActorError("conflict", `Cannot issue token: it is ${state.status}`);
    },

    verify(state, { secretHash }, { now }) {
      const opened =
        state.status === "issued" &&
        sameHash(state.secretHash, secretHash) &&
        !state.isDisabled &&
        now >= (state.notBeforeAt ?? 0) &&
        now < (state.expiresAt ?? Number.POSITIVE_INFINITY);
      // The error is the same for every reason, so that attackers learn nothing from a difference.
      if (!opened) throw new ActorError("unauthenticated", "Cannot authenticate: unknown token");
      return { state, reply: state };
    },

    used(state, _input, { key, now }) {
      const isKnown =
        state.status !== "issued" ||
        now < (state.lastUsedAt ?? Number.NEGATIVE_INFINITY) + TOKEN_USED_EVERY_MS;
      if (isKnown) return { state };
      return {
        state: { ...state, lastUsedAt: now },
        send: [envelope(account, state.accountId, "tokenUsed", { id: key, at: now })],
      };
    },

    change(state, { opens, secretHash }) {
      if (state.status !== "issued") {
        throw new ActorError("not_found", `Cannot change token: it is ${state.status}`);
      }
      const { notBeforeAt, expiresAt, isDisabled, ...kept } = state;
      const changes = (state.changes ?? 0) + Number(opens !== undefined);
      const times = opens ?? {
        ...(notBeforeAt !== undefined && { notBeforeAt }),
        ...(expiresAt !== undefined && { expiresAt }),
        ...(isDisabled !== undefined && { isDisabled }),
      };
      return {
        state: { ...kept, ...times, changes, ...(secretHash !== undefined && { secretHash }) },
        reply: { changes },
      };
    },

    revoke: (state, _input, { now }) => revoked(state, now),

    revokeExpired(state, _input, { now }) {
      if (state.status === "issued" && now < (state.expiresAt ?? Number.POSITIVE_INFINITY)) {
        throw new ActorError("conflict", "Cannot revoke token as expired: it has not expired");
      }
      return revoked(state, now);
    },

    forget(state) {
      return state.status === "revoked" ? { forget: true as const } : { state };
    },
  },
});

function revoked(state: DeepReadonly<ApiTokenState>, now: number) {
  if (state.status === "revoked") return { state, reply: {} };
  const remind = { forget: now + TOKEN_REVOKED_KEPT_MS };
  return { state: { status: "revoked" as const }, remind, reply: {} };
}
