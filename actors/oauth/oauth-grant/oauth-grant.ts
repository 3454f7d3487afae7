/**
 * Decides whether the code and tokens of a grant are valid. Ends the grant if its code is used twice, or if a refresh
 * token is used again after its grace period although the client has received its successor.
 */
import type { DeepReadonly, Envelope } from "../../../schemas/contract.ts";
import { envelope } from "../../../schemas/contract.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { grantList } from "../../../schemas/oauth/grant-list.ts";
import { oauthGrant } from "../../../schemas/oauth/oauth-grant.ts";
import { sameHash } from "../../account/lib/hashes/same-hash.ts";
import { defineActor } from "../../runtime/kinds/define-actor.ts";
import {
  endsAt,
  isLive,
  isRetriable,
  isSpent,
  wasUsed,
  withConfirmed,
  withTokens,
  withUse,
} from "./grant-tokens.ts";
import { OAuthGrantState, type OpenGrant } from "./oauth-grant-state.ts";

/**
 * Stored at: grant id, 32 hex, which its codes and tokens name
 *
 * State: `{ status: "none" }` or `{ status: "open", grant: { clientId, userId, email, scopes, rejectedScopes,
 * accountIds, invitationIds?, createdAt, expiresAt }, code, access, refresh, usedRefresh }`; tokens are `{ hash, expiresAt, record,
 * usedAt?, from?, isConfirmed?, retries? }`, `from` and used refresh tokens are 32 hex of their hashes; forgotten when it is revoked, or its last token expires
 */
export const oauthGrantActor = defineActor(oauthGrant, {
  state: OAuthGrantState,
  initial: { status: "none" },

  handlers: {
    open(state, { code, ...grant }, { key, now }) {
      if (state.status === "open") {
        if (sameHash(state.code.hash, code.hash)) return { state, reply: {} };
        throw new ActorError("conflict", "Cannot open grant: it is there already");
      }
      const { userId, clientId } = grant;
      return {
        state: {
          status: "open" as const,
          grant: { ...grant, createdAt: now },
          code,
          access: [],
          refresh: [],
          usedRefresh: [],
        },
        reply: {},
        remind: { expire: code.expiresAt },
        send: [envelope(grantList, userId, "grantOpened", { clientId, grantId: key })],
      };
    },

    get(state, _input, { now }) {
      return { state, reply: openOf(state, now).grant };
    },

    find(state, { kind, hash }, { now }) {
      const open = openOf(state, now);
      const { grant, code } = open;
      if (kind === "refresh" && wasUsed(open, hash)) {
        const token = { expiresAt: grant.expiresAt, record: {}, used: true };
        return { state, reply: { grant, token } };
      }
      if (kind === "code") {
        if (!sameHash(code.hash, hash)) throw unknown();
        return { state, reply: { grant, token: { ...code, used: code.usedAt !== undefined } } };
      }
      if (kind === "access") {
        const token = liveToken(open.access, hash, now);
        // The client has received the tokens that were issued with this one. That is stored once for each refresh.
        return {
          state: withConfirmed(open, token),
          reply: { grant, token: { ...token, used: false } },
        };
      }
      const token = liveToken(open.refresh, hash, now);
      const used = isSpent(token, now) && !isRetriable(open, token);
      return { state, reply: { grant, token: { ...token, used } } };
    },

    redeem(state, { codeHash, ...tokens }, { key, now }) {
      const open = openOf(state, now);
      const { code } = open;
      if (!sameHash(code.hash, codeHash)) throw unknown();
      if (code.usedAt !== undefined) return { ...endOf(open, key), reply: reused };
      if (!isLive(code, now)) throw unknown();
      const next = withTokens({ ...open, code: { ...code, usedAt: now } }, tokens, { now });
      return { state: next, reply: issued, remind: { expire: endsAt(next) } };
    },

    refresh(state, { refreshHash, ...tokens }, { key, now }) {
      const open = openOf(state, now);
      if (wasUsed(open, refreshHash)) return { ...endOf(open, key), reply: reused };
      const token = liveToken(open.refresh, refreshHash, now);
      const isLate = isSpent(token, now);
      if (isLate && !isRetriable(open, token)) return { ...endOf(open, key), reply: reused };
      const next = withTokens(withUse(open, token, now), tokens, { now, source: refreshHash });
      // No new reminder is needed: the existing one checks the remaining tokens when it fires, and sets itself again.
      return {
        state: next,
        reply: issued,
        ...(isLate && { live: { change: "revoked" as const } }),
      };
    },

    revokeAccess(state, { hash }) {
      if (state.status !== "open") return { state, reply: {} };
      const access = state.access.filter((token) => !sameHash(token.hash, hash));
      if (access.length === state.access.length) return { state, reply: {} };
      return { state: { ...state, access }, reply: {}, live: { change: "revoked" as const } };
    },

    revoke(state, _input, { key }) {
      if (state.status !== "open") return { state, reply: {} };
      return { ...endOf(state, key), reply: {} };
    },

    tellAgain(state) {
      const live = { change: state.status === "open" ? ("revoked" as const) : ("ended" as const) };
      return { state, reply: {}, live };
    },

    consentWithdrawn(state, _input, { key }) {
      return state.status === "open" ? endOf(state, key) : { state };
    },

    expire(state, _input, { key, now }) {
      if (state.status !== "open") return { state };
      const at = endsAt(state);
      return at > now ? { state, remind: { expire: at } } : endOf(state, key);
    },
  },
});

const issued = { outcome: "issued" as const };
const reused = { outcome: "reused" as const };

type State = DeepReadonly<OAuthGrantState>;

/** The error is the same for every reason, so that attackers learn nothing from a difference. */
const unknown = () => new ActorError("not_found", "Cannot find token: it is unknown or over");

function openOf(state: State, now: number): DeepReadonly<OpenGrant> {
  if (state.status !== "open" || now >= state.grant.expiresAt) throw unknown();
  return state;
}

/** Returns the token with this hash. Refuses an unknown or expired one. */
function liveToken<T extends { hash: string; expiresAt: number }>(
  tokens: readonly T[],
  hash: string,
  now: number,
): T {
  const token = tokens.find((other) => sameHash(other.hash, hash));
  if (!token || !isLive(token, now)) throw unknown();
  return token;
}

/** Ends the grant: its code and tokens become invalid, and the person's grant list is notified. */
function endOf(
  { grant: { userId, clientId } }: DeepReadonly<OpenGrant>,
  key: string,
): { forget: true; send: Envelope[]; live: { change: "ended" } } {
  return {
    forget: true,
    send: [envelope(grantList, userId, "grantEnded", { clientId, grantId: key })],
    live: { change: "ended" },
  };
}
