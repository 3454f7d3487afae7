import { expect } from "chai";
import type { DeepReadonly } from "../../../schemas/contract.ts";
import { refusal } from "../../../scripts/testing/refusal.ts";
import { runHandler } from "../../../scripts/testing/run-handler.ts";
import { appPortsActor } from "./app-ports.ts";
import type { AppPortsState } from "./app-ports-state.ts";

const ACCOUNT = "a".repeat(32);
/** The state as handlers return it. */
type Kept = DeepReadonly<AppPortsState>;
const range = { first: 8_801, last: 8_803 };
const cookieKey = "0123456789abcdef";

describe("app-ports", () => {
  const wanted = (app: string, changes: object = {}) => ({
    ...{ accountId: ACCOUNT, app, cookieKey, range, taken: [] },
    ...changes,
  });
  const assign = (state: Kept | undefined, app: string, changes: object = {}) => {
    const kept = (state ?? appPortsActor.initial) as AppPortsState;
    return runHandler(appPortsActor, "assign", kept, wanted(app, changes));
  };

  it("assign() gives each app a port and a key of its own, and the same ones again", () => {
    const first = assign(undefined, "a");
    expect(first.reply).to.deep.include({ port: 8_801, cookieKey, isNew: true });
    const other = "f".repeat(16);
    const second = assign(first.state, "b", { cookieKey: other });
    expect(second.reply).to.deep.include({ port: 8_802, cookieKey: other });
    const again = assign(second.state, "a", { cookieKey: other });
    expect(again.reply).to.deep.include({ port: 8_801, cookieKey, isNew: false });
    expect(again.changed).to.equal(false);
    const elsewhere = assign(second.state, "a", { accountId: "b".repeat(32) });
    expect(elsewhere.reply).to.deep.include({ port: 8_803, isNew: true });
  });

  it("assign() passes over taken ports, and moves an app whose port is taken or out of the range", () => {
    const first = assign(undefined, "a", { taken: [8_801] });
    expect(first.reply).to.deep.include({ port: 8_802 });
    const moved = assign(first.state, "a", { taken: [8_802], cookieKey: "f".repeat(16) });
    expect(moved.reply).to.deep.include({ port: 8_803, cookieKey, isNew: true });
    expect(moved.state?.ports).to.have.length(1);
    const later = assign(moved.state, "a", { range: { first: 9_000, last: 9_000 } });
    expect(later.reply).to.deep.include({ port: 9_000, isNew: true });
  });

  it("assign() gives as many as the range has, and refuses one more, which a released port makes room for", () => {
    let state = assign(undefined, "a").state;
    for (const app of ["b", "c"]) state = assign(state, app).state;
    const none = refusal(() => assign(state, "d"));
    expect(none).to.include({ code: "limit_reached" });
    expect(none.message).to.match(/from 8801 to 8803 .* TRUNKLINE_APPS_PORTS$/);
    const released = { accountId: ACCOUNT, app: "b" };
    const freed = runHandler(appPortsActor, "released", state, released).state;
    expect(assign(freed, "d").reply).to.deep.include({ port: 8_802 });
    expect(runHandler(appPortsActor, "released", freed, released).state).to.equal(freed);
  });

  it("assign() gives the port of a deleted app last", () => {
    const { state } = assign(undefined, "a");
    const freed = runHandler(appPortsActor, "released", state, { accountId: ACCOUNT, app: "a" });
    expect(assign(freed.state, "b").reply).to.deep.include({ port: 8_802 });
  });

  it("list() shows all", () => {
    const { state } = assign(undefined, "a");
    expect(runHandler(appPortsActor, "list", state, {}).reply).to.deep.equal({
      ports: [{ accountId: ACCOUNT, app: "a", port: 8_801, cookieKey }],
    });
  });
});
