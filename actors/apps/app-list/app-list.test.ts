import { expect } from "chai";
import { APPS_MAX } from "../../../schemas/apps/limits.ts";
import { refusal } from "../../../scripts/testing/refusal.ts";
import { runHandler } from "../../../scripts/testing/run-handler.ts";
import { appListActor } from "./app-list.ts";
import type { AppListState } from "./app-list-state.ts";

const NONE: AppListState = { apps: [] };

describe("app-list", () => {
  it("admit() lists apps by name, and one that is there once", () => {
    let state = runHandler(appListActor, "admit", NONE, { name: "b" }, { now: 1 }).state;
    state = runHandler(appListActor, "admit", state, { name: "a" }, { now: 2 }).state;
    expect(runHandler(appListActor, "admit", state, { name: "a" }, { now: 3 }).state).to.equal(
      state,
    );
    expect(state?.apps.map(({ name }) => name)).to.deep.equal(["a", "b"]);
  });

  it("admit() takes as many as the limit, and refuses one more but not one that is there", () => {
    const entry = (name: string) => ({ name, createdAt: 1, updatedAt: 1 });
    const most = Array.from({ length: APPS_MAX - 1 }, (_, index) => entry(`app-${index}`));
    const { state } = runHandler(appListActor, "admit", { apps: most }, { name: "last" });
    const again = refusal(() => runHandler(appListActor, "admit", state, { name: "more" }));
    expect(again.code).to.equal("limit_reached");
    runHandler(appListActor, "admit", state, { name: "last" });
  });

  it("changed() and removed() twice do what they do once", () => {
    const { state } = runHandler(appListActor, "admit", NONE, { name: "a" });
    const change = { name: "a", serving: 2, at: 9 };
    const changed = runHandler(appListActor, "changed", state, change).state;
    expect(changed?.apps[0]).to.deep.include({ serving: 2, updatedAt: 9 });
    expect(runHandler(appListActor, "changed", changed, change).state).to.deep.equal(changed);
    const { state: none } = runHandler(appListActor, "removed", changed, { name: "a" });
    expect(none).to.deep.equal(NONE);
    expect(runHandler(appListActor, "removed", none, { name: "a" }).state).to.equal(none);
  });

  it("changed() adds an app that removed() of an earlier app of its name took out", () => {
    let { state } = runHandler(appListActor, "admit", NONE, { name: "b" });
    state = runHandler(appListActor, "admit", state, { name: "a" }).state;
    state = runHandler(appListActor, "removed", state, { name: "a" }).state;
    const change = { name: "a", at: 9, createdAt: 8 };
    state = runHandler(appListActor, "changed", state, change).state;
    expect(state?.apps.map(({ name }) => name)).to.deep.equal(["a", "b"]);
    expect(state?.apps[0]).to.deep.equal({ name: "a", createdAt: 8, updatedAt: 9 });
    // Earlier versions send no time of creation.
    const early = runHandler(appListActor, "changed", NONE, { name: "a", serving: 1, at: 9 });
    const expected = { name: "a", createdAt: 9, updatedAt: 9, serving: 1 };
    expect(early.state?.apps).to.deep.equal([expected]);
  });
});
