/** Decides which of all processes that start for the first time makes the account. */
import { installation } from "../../../schemas/account/installation.ts";
import { defineActor } from "../../runtime/kinds/define-actor.ts";
import { InstallationState } from "./installation-state.ts";

/**
 * Stored at: `main`
 *
 * State: `{ accountId }` of the first start; empty until one claimed it
 */
export const installationActor = defineActor(installation, {
  state: InstallationState,
  initial: { accountId: "" },

  handlers: {
    get(state) {
      return { state, reply: { accountId: state.accountId === "" ? null : state.accountId } };
    },

    claim(state, { accountId }) {
      if (state.accountId !== "") return { state, reply: { accountId: state.accountId } };
      return { state: { accountId }, reply: { accountId } };
    },
  },
});
