/** Keeps a user: how they prove who they are, and the accounts they belong to. */
import { ActorError } from "../../schemas/errors.ts";
import { user } from "../../schemas/user.ts";
import { defineActor } from "../runtime/define-actor.ts";
import { UserState } from "./user-state.ts";

export const userActor = defineActor(user, {
  state: UserState,
  initial: { id: "", email: "", passwordHash: "", accounts: [] },

  handlers: {
    register(state, input) {
      if (state.id === "") return { state: input, reply: {} };
      if (state.id === input.id) return { state, reply: {} };
      throw new ActorError("conflict", "Cannot register user: the e-mail address is taken");
    },

    joined(state, { userId, accountId, roles }) {
      if (state.id !== userId) return { state };
      const others = state.accounts.filter((membership) => membership.accountId !== accountId);
      return { state: { ...state, accounts: [...others, { accountId, roles }] } };
    },

    left(state, { userId, accountId }) {
      const accounts = state.accounts.filter((membership) => membership.accountId !== accountId);
      const belonged = state.id === userId && accounts.length < state.accounts.length;
      return { state: belonged ? { ...state, accounts } : state };
    },

    get(state, _input, { key }) {
      if (state.id === "")
        throw new ActorError("not_found", `Cannot find user: "${key}" is unknown`);
      const { id, email, accounts } = state;
      return { state, reply: { id, email, accounts } };
    },
  },
});
