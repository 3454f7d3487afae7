/**
 * Stores the administrators of the installation. It also chooses the process that creates the first account, if
 * several processes make their first start together.
 */
import { ADMINISTRATORS_MAX, installation } from "../../../schemas/account/installation.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { defineActor } from "../../runtime/kinds/define-actor.ts";
import { InstallationState } from "./installation-state.ts";

/**
 * Stored at: `main`
 *
 * State: `{ accountId, administrators? }`: the account of the first start, empty until one claimed it; who operates
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
      return { state: { ...state, accountId }, reply: { accountId } };
    },

    nameFirst(state, first) {
      if (state.administrators) return { state, reply: {} };
      return { state: { ...state, administrators: [first] }, reply: {} };
    },

    listAdministrators(state) {
      return { state, reply: { administrators: [...(state.administrators ?? [])] } };
    },

    isAdministrator(state, { userId }) {
      const { administrators = [] } = state;
      return { state, reply: { is: administrators.some((one) => one.userId === userId) } };
    },

    addAdministrator(state, added) {
      const { administrators = [] } = state;
      if (administrators.some(({ userId }) => userId === added.userId)) return { state, reply: {} };
      if (administrators.length >= ADMINISTRATORS_MAX) {
        const text = `Cannot add administrator: the installation has ${ADMINISTRATORS_MAX}`;
        throw new ActorError("limit_reached", text);
      }
      return { state: { ...state, administrators: [...administrators, added] }, reply: {} };
    },

    removeAdministrator(state, { userId }) {
      const { administrators = [] } = state;
      const others = administrators.filter((one) => one.userId !== userId);
      if (others.length === administrators.length) {
        throw new ActorError("not_found", "Cannot remove administrator: no one has this id");
      }
      if (others.length === 0) {
        throw new ActorError("conflict", "Cannot remove the last administrator: add another first");
      }
      return { state: { ...state, administrators: others }, reply: {} };
    },
  },
});
