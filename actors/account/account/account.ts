/** Stores an account: its members and its API tokens. */
import { account, type TokenEntry } from "../../../schemas/account/account.ts";
import type { DeepReadonly } from "../../../schemas/contract.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { TOKENS_PER_ACCOUNT_MAX } from "../../../schemas/limits.ts";
import { defineActor } from "../../runtime/kinds/define-actor.ts";
import { AccountState } from "./account-state.ts";
import {
  acceptInvitation,
  invite,
  leave,
  live,
  memberOf,
  provenInvitation,
  removeMember,
  setRoles,
  validInvitations,
} from "./members.ts";

/**
 * Stored at: account id, 32 hex
 *
 * State: `{ createdAt, name, members: [{ userId, email, roles, invitationId? }], invitations: [{ id, email, roles,
 * invitedAt, expiresAt, secretHash, invitedBy? }], tokens: [{ id, name, permissions, lastFour, createdAt, notBeforeAt?, expiresAt?,
 * grantId?, isDisabled?, userId?, lastUsedAt?, changes? }] }`; `createdAt` 0 is not opened; members of the first release have a
 * `role` in place of `roles`; invitations that expired go with the next that is made; earlier versions also stored
 * `usage` and `countedTasks`, which are ignored
 */
export const accountActor = defineActor(account, {
  state: AccountState,
  initial: {
    createdAt: 0,
    name: "",
    members: [],
    invitations: [],
    tokens: [],
  },

  handlers: {
    open(state, { name, owner }, { now }) {
      if (state.createdAt === 0) {
        return { state: { ...state, name, createdAt: now, members: [owner] }, reply: {} };
      }
      if (state.members.some(({ userId }) => userId === owner.userId)) return { state, reply: {} };
      throw new ActorError("conflict", "Cannot open account: it belongs to another user");
    },

    get(state) {
      checkOpen(state);
      const { name, createdAt, members } = state;
      return { state, reply: { name, createdAt, members } };
    },

    getMember(state, { userId }) {
      checkOpen(state);
      return { state, reply: memberOf(state, userId) };
    },

    listMembers(state, _input, { now }) {
      checkOpen(state);
      const { members } = state;
      return { state, reply: { members, invitations: validInvitations(state, now) } };
    },

    invite(state, input, { now }) {
      checkOpen(state);
      return invite(state, input, now);
    },

    setRoles(state, input, { key, now }) {
      checkOpen(state);
      return setRoles(state, input, { accountId: key, now });
    },

    removeMember(state, input, { key, now }) {
      checkOpen(state);
      return removeMember(state, input, { accountId: key, now });
    },

    leave(state, input, { key, now }) {
      checkOpen(state);
      return leave(state, input, { accountId: key, now });
    },

    tellAgain: (state) => ({ state, reply: {}, live }),

    getInvitation(state, proof, { now }) {
      const { secretHash: _, ...invitation } = provenInvitation(state, proof, now);
      return { state, reply: { ...invitation, accountName: state.name } };
    },

    acceptInvitation(state, input, { key, now }) {
      return acceptInvitation(state, input, { accountId: key, now });
    },

    createToken(state, input, { now }) {
      checkOpen(state);
      const known = state.tokens.find((token) => token.id === input.id);
      if (known) return { state, reply: known };
      if (state.tokens.length >= TOKENS_PER_ACCOUNT_MAX) {
        throw new ActorError(
          "limit_reached",
          `Cannot create token: the account has ${TOKENS_PER_ACCOUNT_MAX}, which is the limit`,
        );
      }
      const token = { ...input, createdAt: now };
      return { state: { ...state, tokens: [...state.tokens, token] }, reply: token };
    },

    listTokens(state) {
      checkOpen(state);
      return { state, reply: { tokens: state.tokens } };
    },

    getToken(state, { id }) {
      return { state, reply: tokenOf(state, id) };
    },

    changeToken(state, { only, ...input }) {
      const known = tokenOf(state, input.id);
      if (only !== undefined) {
        const token = { ...known, [only]: input[only] };
        return { state: withToken(state, token), reply: token };
      }
      const { createdAt, grantId, userId, lastUsedAt, changes = 0 } = known;
      if (input.changes !== undefined && input.changes < changes) return { state, reply: known };
      // Only a roll changes these characters. One that ran meanwhile is newer than what the gateway has read.
      const lastFour = input.changes === undefined ? input.lastFour : known.lastFour;
      const token = {
        ...input,
        lastFour,
        createdAt,
        ...(grantId !== undefined && { grantId }),
        ...(userId !== undefined && { userId }),
        ...(lastUsedAt !== undefined && { lastUsedAt }),
      };
      return { state: withToken(state, token), reply: token };
    },

    tokenUsed(state, { id, at }) {
      const token = state.tokens.find((entry) => entry.id === id);
      if (!token || at <= (token.lastUsedAt ?? 0)) return { state };
      return { state: withToken(state, { ...token, lastUsedAt: at }) };
    },

    removeToken(state, { id }) {
      tokenOf(state, id);
      const tokens = state.tokens.filter((token) => token.id !== id);
      return { state: { ...state, tokens }, reply: {} };
    },
  },
});

type State = DeepReadonly<AccountState>;

function checkOpen(state: State): void {
  if (state.createdAt === 0)
    throw new ActorError("not_found", "Cannot find account: it is unknown");
}

const withToken = (state: State, token: DeepReadonly<TokenEntry>): State => ({
  ...state,
  tokens: state.tokens.map((entry) => (entry.id === token.id ? token : entry)),
});

function tokenOf(state: State, id: string): DeepReadonly<TokenEntry> {
  const token = state.tokens.find((entry) => entry.id === id);
  if (!token) throw new ActorError("not_found", `Cannot find token: "${id}" is unknown`);
  return token;
}
