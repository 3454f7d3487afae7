/** Assigns ports to apps, so that each keeps its origin whatever process opens the port. */
import { type AppPort, appPorts, type PortRange } from "../../../schemas/apps/app-ports.ts";
import type { DeepReadonly } from "../../../schemas/contract.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { defineActor } from "../../runtime/kinds/define-actor.ts";
import { AppPortsState } from "./app-ports-state.ts";

/**
 * Stored at: `main`
 *
 * State: `{ ports: [{ accountId, app, port, cookieKey }], next }`: ports of apps on a single machine
 */
export const appPortsActor = defineActor(appPorts, {
  state: AppPortsState,
  initial: { ports: [], next: 0 },

  handlers: {
    assign(state, { accountId, app, cookieKey, range, taken }) {
      const known = state.ports.find(isOf({ accountId, app }));
      const isUsable = (port: number) =>
        port >= range.first && port <= range.last && !taken.includes(port);
      if (known && isUsable(known.port)) return { state, reply: { ...known, isNew: false } };
      const others = state.ports.filter((one) => one !== known);
      const used = new Set(others.map(({ port }) => port));
      const port = inTurn(range, state.next).find((one) => isUsable(one) && !used.has(one));
      if (port === undefined) throw full(app, range);
      const made = { accountId, app, port, cookieKey: known?.cookieKey ?? cookieKey };
      const next = { ports: [...others, made], next: port + 1 };
      return { state: next, reply: { ...made, isNew: true } };
    },

    released(state, of) {
      const ports = state.ports.filter((one) => !isOf(of)(one));
      return { state: ports.length === state.ports.length ? state : { ...state, ports } };
    },

    list: (state) => ({ state, reply: { ports: state.ports } }),
  },
});

type Of = Pick<AppPort, "accountId" | "app">;

const isOf = (of: Of) => (one: DeepReadonly<Of>) =>
  one.accountId === of.accountId && one.app === of.app;

/**
 * Returns the ports of a range, starting with `next` and wrapping around. Ports of deleted apps thus come last,
 * because browsers may still store data of these apps.
 */
function inTurn({ first, last }: PortRange, next: number): number[] {
  const all = Array.from({ length: last - first + 1 }, (_, index) => first + index);
  return [...all.filter((port) => port >= next), ...all.filter((port) => port < next)];
}

function full(app: string, { first, last }: PortRange): ActorError {
  const text = `Cannot give app "${app}" a port: all from ${first} to ${last} are in use; delete an app, or widen TRUNKLINE_APPS_PORTS`;
  return new ActorError("limit_reached", text);
}
