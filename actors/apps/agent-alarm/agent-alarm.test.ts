import { expect } from "chai";
import { runHandler } from "../../../scripts/testing/run-handler.ts";
import type { AnyActorDefinition } from "../../runtime/kinds/define-actor.ts";
import { AGENT_ALARM_RETRY_MS, AGENT_ALARM_RETRY_MS_MAX, agentAlarmActor } from "./agent-alarm.ts";

const context = { key: "a.b.C.d", now: 6_000, newId: () => "0".repeat(32), rows: new Map() };
type State = {
  at?: number | undefined;
  rings?: number | undefined;
  record?: number;
  missed?: number | undefined;
};
type Input = { at?: number; record?: number };
function run(message: "set" | "heard" | "ring", state: State, input: Input = {}) {
  const definition = { ...agentAlarmActor } as AnyActorDefinition;
  const handled = runHandler(definition, message, state, input, context);
  return { ...handled, state: handled.state as State };
}

describe("agent-alarm", () => {
  it("set() sets a reminder, and does nothing the second time", () => {
    const first = run("set", {}, { at: 5_000 });
    expect(first.state).to.deep.equal({ at: 5_000 });
    expect(first.remind).to.deep.equal({ ring: 5_000 });
    const again = run("set", { at: 5_000 }, { at: 5_000 });
    expect(again.remind).to.deep.equal({});
    expect(run("set", { at: 5_000 }, { at: 4_000 }).remind).to.deep.equal({ ring: 4_000 });
  });

  it("set() without a time takes it back", () => {
    expect(run("set", { at: 5_000 }, {}).forgotten).to.equal(true);
    expect(run("set", {}, {}).forgotten).to.equal(false);
  });

  it("set() of a former owner neither cancels the alarm of its successor nor puts it off", () => {
    const { state } = run("set", { at: 9_000, record: 4 }, { at: 5_000, record: 7 });
    expect(state).to.deep.equal({ at: 5_000, record: 7 });
    for (const late of [{ record: 5 }, { at: 86_400_000, record: 5 }]) {
      const ignored = run("set", state, late);
      expect([ignored.state, ignored.remind, ignored.forgotten]).to.deep.equal([state, {}, false]);
    }
    // An alarm that has fired stays until the agent has handled it.
    const rung = run("ring", state).state;
    expect(rung).to.deep.equal({ at: 5_000, record: 7, rings: 1 });
    expect(run("set", rung, { record: 5 }).changed).to.equal(false);
    const late = run("set", rung, { at: 86_400_000, record: 5 });
    expect([late.state, late.remind]).to.deep.equal([{ ...rung, missed: 86_400_000 }, {}]);
    // The same owner may cancel the alarm, or set another.
    expect(run("set", state, { record: 7 }).forgotten).to.equal(true);
    const next = run("set", state, { at: 8_000, record: 8 });
    expect([next.state, next.remind]).to.deep.equal([{ at: 8_000, record: 8 }, { ring: 8_000 }]);
    const same = run("set", state, { at: 5_000, record: 8 });
    expect([same.state, same.remind]).to.deep.equal([{ at: 5_000, record: 8 }, {}]);
  });

  it("set() with a lower number can make the alarm earlier, because numbers restart with a new app", () => {
    const { state, remind } = run("set", { at: 9_000, record: 500 }, { at: 7_000, record: 2 });
    expect([state, remind]).to.deep.equal([{ at: 7_000, record: 500 }, { ring: 7_000 }]);
  });

  it("set() with a lower number while the alarm rings is kept until the alarm is handled", () => {
    // A record of the deleted app set this alarm. The app that was created anew begins with low numbers.
    let { state } = run("ring", { at: 5_000, record: 500 });
    for (const [at, missed] of [
      [9_000, 9_000],
      [7_000, 7_000],
      [8_000, 7_000],
    ] as const) {
      const set = run("set", state, { at, record: 2 });
      expect([set.state.missed, set.remind]).to.deep.equal([missed, {}]);
      expect(run("set", set.state, { at, record: 2 }).changed).to.equal(false);
      state = set.state;
    }
    ({ state } = run("ring", state));
    expect(state).to.deep.equal({ at: 5_000, record: 500, rings: 2, missed: 7_000 });
    const heard = run("heard", state, { at: 5_000 });
    expect(heard.forgotten).to.equal(false);
    expect([heard.state, heard.remind]).to.deep.equal([{ at: 7_000 }, { ring: 7_000 }]);
    expect(run("heard", heard.state, { at: 5_000 }).changed).to.equal(false);
    // A call of the owner that the alarm knows replaces all times.
    const next = run("set", state, { at: 12_000, record: 501 });
    expect(next.state).to.deep.equal({ at: 12_000, record: 501 });
    expect(run("set", state, { record: 501 }).forgotten).to.equal(true);
  });

  it("set() of an earlier version has no number, and still sets and cancels the alarm", () => {
    const { state } = run("set", { at: 9_000, record: 7 }, { at: 12_000 });
    expect(state).to.deep.equal({ at: 12_000, record: 7 });
    expect(run("set", state, { record: 6 }).changed).to.equal(false);
    expect(run("set", state, {}).forgotten).to.equal(true);
    expect(run("set", { at: 9_000 }, { at: 12_000, record: 1 }).state).to.deep.equal({
      at: 12_000,
      record: 1,
    });
  });

  it("ring() wakes the agent at growing intervals until the agent handles it; a late ring wakes nobody", () => {
    const rung = run("ring", { at: 5_000 });
    expect(rung.send).to.deep.equal([
      { to: "actor", kind: "agent", key: "a.b.C.d", message: "wake", input: { at: 5_000 } },
    ]);
    expect(rung.state).to.deep.equal({ at: 5_000, rings: 1 });
    expect(rung.remind).to.deep.equal({ ring: 6_000 + AGENT_ALARM_RETRY_MS });
    const again = run("ring", { at: 5_000, rings: 1 });
    expect(again.send).to.deep.equal(rung.send);
    expect(again.remind).to.deep.equal({ ring: 6_000 + 2 * AGENT_ALARM_RETRY_MS });
    const last = run("ring", { at: 5_000, rings: 2_000 });
    expect(last.remind).to.deep.equal({ ring: 6_000 + AGENT_ALARM_RETRY_MS_MAX });
    expect(run("ring", {}).send).to.deep.equal([]);
  });

  it("heard() ends it, but not one that was set since, nor one that has not rung", () => {
    expect(run("heard", { at: 5_000, rings: 3 }, { at: 5_000 }).forgotten).to.equal(true);
    expect(run("heard", { at: 9_000 }, { at: 5_000 }).state).to.deep.equal({ at: 9_000 });
    expect(run("heard", { at: 9_000, rings: 1 }, { at: 5_000 }).forgotten).to.equal(false);
    expect(run("heard", {}, { at: 5_000 }).forgotten).to.equal(false);
    // The alarm has fired and is set again for the same time: it must fire again.
    const anew = run("set", { at: 5_000, rings: 1 }, { at: 5_000 });
    expect(anew.state).to.deep.equal({ at: 5_000 });
    expect(anew.remind).to.deep.equal({ ring: 5_000 });
    expect(run("heard", { at: 5_000 }, { at: 5_000 }).forgotten).to.equal(false);
  });
});
