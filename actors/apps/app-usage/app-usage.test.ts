import { expect } from "chai";
import { agentKey } from "../../../schemas/apps/app-names.ts";
import { type appUsage, countedBytes, isToBeTold } from "../../../schemas/apps/app-usage.ts";
import { AGENT_ROOM_BYTES } from "../../../schemas/apps/limits.ts";
import type { DeepReadonly, Input } from "../../../schemas/contract.ts";
import { refusal } from "../../../scripts/testing/refusal.ts";
import { runHandler } from "../../../scripts/testing/run-handler.ts";
import { AGENT_USAGE_ENTRIES_MAX, appUsageActor, PURGED_APPS_KEPT_MAX } from "./app-usage.ts";
import type { AppUsageRow, AppUsageState } from "./app-usage-state.ts";

type Messages = (typeof appUsage)["messages"];

const agent = (name: string, app = "hooks") =>
  agentKey({ accountId: "a".repeat(32), app, className: "Counter", name });

/** Runs the actor with its rows, one message after the other. */
class Usage {
  state: DeepReadonly<AppUsageState> = appUsageActor.initial;
  rows = new Map<string, AppUsageRow>();

  run<N extends keyof Messages & string>(message: N, input: Input<Messages[N]>) {
    const { state, rows, reply } = runHandler(appUsageActor, message, this.state, input, {
      rows: this.rows,
    });
    this.state = state;
    for (const [name, row] of Object.entries(rows)) {
      if (row === null) this.rows.delete(name);
      else this.rows.set(name, row as AppUsageRow);
    }
    return reply;
  }

  hold(name: string, bytes: number, limits = { agents: 3, bytes: 1_000 }, wanted = bytes) {
    return this.run("hold", { agent: agent(name), bytes, wanted, limits });
  }

  get total() {
    const { agents, bytes } = this.run("get", {}) as { agents: number; bytes: number };
    return { agents, bytes };
  }
}

describe("app-usage", () => {
  it("hold() takes as many agents as the limit, and refuses one more, but no existing one", () => {
    const usage = new Usage();
    for (const name of ["a", "b", "c"]) usage.hold(name, 10);
    const { code, message } = refusal(() => usage.hold("d", 10));
    expect(code).to.equal("limit_reached");
    expect(message).to.equal(
      "Cannot create the agent: the account has 3, which is the limit (TRUNKLINE_AGENTS_PER_ACCOUNT)",
    );
    usage.hold("a", 20);
    expect(usage.total).to.deep.equal({ agents: 3, bytes: 40 });
    // An agent that stores nothing any more no longer counts toward the limit.
    usage.hold("b", 0);
    usage.hold("d", 10);
    expect(usage.total).to.deep.equal({ agents: 3, bytes: 40 });
  });

  it("hold() takes as many bytes as the limit, and refuses one more but never less", () => {
    const usage = new Usage();
    usage.hold("a", 400);
    expect(usage.hold("b", 600)).to.deep.equal({ bytes: 600 });
    const { code, message } = refusal(() => usage.hold("b", 601));
    expect(code).to.equal("limit_reached");
    expect(message).to.match(/store 1000 bytes, which is the limit \(TRUNKLINE_AGENT_BYTES_PER_/);
    // The setting was lowered: the stored bytes stay, and may only shrink.
    const lowered = { agents: 1, bytes: 100 };
    expect(usage.hold("b", 600, lowered)).to.deep.equal({ bytes: 600 });
    expect(usage.hold("b", 500, lowered, 700)).to.deep.equal({ bytes: 500 });
    expect(refusal(() => usage.hold("b", 501, lowered)).code).to.equal("limit_reached");
    expect(usage.hold("b", 5_000, { agents: 1, bytes: 0 }, 6_000)).to.deep.equal({ bytes: 6_000 });
  });

  it("hold() gives the wanted room if there is enough, and else the rest", () => {
    const usage = new Usage();
    expect(usage.hold("a", 100, undefined, 300)).to.deep.equal({ bytes: 300 });
    expect(usage.hold("b", 100, undefined, 900)).to.deep.equal({ bytes: 700 });
    expect(usage.total).to.deep.equal({ agents: 2, bytes: 1_000 });
  });

  it("stored() counts bytes of inboxes and outgoing webhooks, again or too late without harm", () => {
    const usage = new Usage();
    usage.hold("a", 100);
    for (let times = 0; times < 2; times++) {
      usage.run("stored", { agent: agent("a"), part: "inbox", bytes: 300 });
      usage.run("stored", { agent: agent("new"), part: "outgoing", bytes: 50 });
    }
    expect(usage.total).to.deep.equal({ agents: 1, bytes: 450 });
    expect(refusal(() => usage.hold("a", 651)).code).to.equal("limit_reached");
    usage.hold("a", 650);
    usage.run("stored", { agent: agent("a"), part: "inbox", bytes: 0 });
    usage.run("stored", { agent: agent("new"), part: "outgoing", bytes: 0 });
    expect(usage.total).to.deep.equal({ agents: 1, bytes: 650 });
    usage.hold("a", 0);
    expect(usage.rows.size).to.equal(0);
  });

  it("stored() omits agents that no longer fit a row, and counts those it knows", () => {
    const usage = new Usage();
    usage.run("stored", { agent: agent("known"), part: "inbox", bytes: 10 });
    const [row = "", known] = [...usage.rows][0] ?? [];
    const entries = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, index) => [`e${index}`, [0, 1, 0]]));
    const fill = (count: number) =>
      usage.rows.set(row, { agents: { ...known?.agents, ...entries(count) } } as AppUsageRow);
    // Another agent that shares the row.
    const other = Array.from({ length: 1_000 }, (_, index) => agent(`other-${index}`)).find(
      (key) => {
        const tried = new Usage();
        tried.run("stored", { agent: key, part: "inbox", bytes: 1 });
        return tried.rows.has(row);
      },
    );
    fill(AGENT_USAGE_ENTRIES_MAX - 1);
    usage.run("stored", { agent: other ?? "", part: "inbox", bytes: 5 });
    expect(usage.total.bytes).to.equal(10);
    fill(AGENT_USAGE_ENTRIES_MAX - 2);
    usage.run("stored", { agent: other ?? "", part: "inbox", bytes: 5 });
    expect(usage.total.bytes).to.equal(15);
    fill(AGENT_USAGE_ENTRIES_MAX);
    usage.run("stored", { agent: agent("known"), part: "inbox", bytes: 20 });
    expect(usage.total.bytes).to.equal(25);
  });

  it("purged() lets go of all of an app and of nothing else, twice too", () => {
    const usage = new Usage();
    const limits = { agents: 9, bytes: 0 };
    for (const app of ["hooks", "hooks-2"]) {
      for (const name of ["a", "b"]) {
        usage.run("hold", { agent: agent(name, app), bytes: 7, wanted: 7, limits });
      }
    }
    for (let times = 0; times < 2; times++) usage.run("purged", { app: "hooks" });
    expect(usage.run("get", {})).to.deep.equal({
      agents: 2,
      bytes: 14,
      apps: [{ name: "hooks-2", agents: 2, bytes: 14 }],
    });
    expect([...usage.rows.keys()].every((name) => name.startsWith("hooks-2/"))).to.equal(true);
  });

  it("hold() refuses an app that was purged, also a smaller number, and takes the next app of its name", () => {
    const usage = new Usage();
    const [gone, present] = ["1".repeat(32), "2".repeat(32)];
    const hold = (bytes: number, appId: string) => {
      const limits = { agents: 9, bytes: 0 };
      return usage.run("hold", { agent: agent("a"), bytes, wanted: bytes, limits, appId });
    };
    hold(7, gone);
    for (let times = 0; times < 2; times++) usage.run("purged", { app: "hooks", id: gone });
    hold(9, present);
    for (const bytes of [10, 0]) {
      expect(refusal(() => hold(bytes, gone)).code).to.equal("not_found");
    }
    // A worker of an earlier version sends no id.
    usage.run("purged", { app: "other" });
    expect(refusal(() => hold(10, gone)).code).to.equal("not_found");
    expect(usage.total).to.deep.equal({ agents: 1, bytes: 9 });
  });

  it("purged() remembers the last PURGED_APPS_KEPT_MAX apps", () => {
    const usage = new Usage();
    const ids = Array.from({ length: PURGED_APPS_KEPT_MAX + 1 }, (_, at) =>
      at.toString(16).padStart(32, "0"),
    );
    for (const id of ids) usage.run("purged", { app: "hooks", id });
    expect(usage.state.purged?.map(({ id }) => id)).to.deep.equal(ids.slice(1));
  });

  it("isToBeTold() is true for the first byte, after a change of more than a quarter, and for the last byte", () => {
    expect(isToBeTold(1, 0)).to.equal(true);
    expect(isToBeTold(1, AGENT_ROOM_BYTES)).to.equal(false);
    expect(isToBeTold(2 * AGENT_ROOM_BYTES, AGENT_ROOM_BYTES)).to.equal(false);
    expect(isToBeTold(2 * AGENT_ROOM_BYTES + 1, AGENT_ROOM_BYTES)).to.equal(true);
    expect(isToBeTold(1_250_000, 1_000_000)).to.equal(false);
    expect(isToBeTold(1_250_001, 1_000_000)).to.equal(true);
    expect(isToBeTold(749_999, 1_000_000)).to.equal(true);
    expect(isToBeTold(0, 1)).to.equal(true);
    expect(isToBeTold(0, 0)).to.equal(false);
  });

  it("countedBytes() counts the smallest inbox as the smallest agent", () => {
    expect(countedBytes(0)).to.equal(0);
    expect(countedBytes(1)).to.equal(AGENT_ROOM_BYTES);
    expect(countedBytes(AGENT_ROOM_BYTES + 1)).to.equal(AGENT_ROOM_BYTES + 1);
  });
});
