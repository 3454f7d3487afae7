import { expect } from "chai";
import { NAMESPACES_MAX } from "../../../schemas/repositories/limits.ts";
import { refusal } from "../../../scripts/testing/refusal.ts";
import { runHandler } from "../../../scripts/testing/run-handler.ts";
import { NAMESPACE_ANNOUNCED_MS, namespaceListActor } from "./namespace-list.ts";
import type { NamespaceListRow } from "./namespace-list-state.ts";

type Handlers = (typeof namespaceListActor)["handlers"];

class TestList {
  rows = new Map<string, NamespaceListRow>();
  now = 1_000_000;

  ask<N extends keyof Handlers & string>(message: N, input: Parameters<Handlers[N]>[1]) {
    const handled = runHandler(namespaceListActor, message, {}, input as never, {
      now: this.now,
      rows: this.rows,
    });
    for (const [row, value] of Object.entries(handled.rows)) {
      if (value === null) this.rows.delete(row);
      else this.rows.set(row, value as NamespaceListRow);
    }
    return handled;
  }

  list(query: { limit?: number; after?: string } = {}) {
    return this.ask("list", { limit: 200, ...query }).reply as {
      namespaces: { name: string }[];
      more: boolean;
      total: number;
    };
  }

  names = (query = {}) => this.list(query).namespaces.map(({ name }) => name);
}

const entry = (name: string, repoCount = 0) => ({ name, repoCount, createdAt: 1, updatedAt: 1 });

describe("namespace-list", () => {
  it("announce() lists a namespace at once, and drops it if it is never created", () => {
    const list = new TestList();
    list.ask("announce", { name: "Space" });
    expect(list.names()).to.deep.equal(["Space"]);
    expect(list.ask("announce", { name: "space" }).rows).to.deep.equal({});
    list.now += NAMESPACE_ANNOUNCED_MS;
    expect(list.names()).to.deep.equal([]);
  });

  it("changed() keeps a namespace listed, whatever its count; repeating it changes nothing", () => {
    const list = new TestList();
    list.ask("announce", { name: "Space" });
    for (let i = 0; i < 2; i++) list.ask("changed", entry("Space", 2));
    list.now += NAMESPACE_ANNOUNCED_MS;
    expect(list.list().namespaces).to.deep.equal([entry("Space", 2)]);
    expect(list.ask("announce", { name: "SPACE" }).rows).to.deep.equal({});
  });

  it("removed() removes a namespace, and may be repeated", () => {
    const list = new TestList();
    list.ask("changed", entry("Space"));
    list.ask("removed", { name: "Space" });
    expect(list.ask("removed", { name: "Space" }).rows).to.deep.equal({});
    expect(list.names()).to.deep.equal([]);
  });

  it("list() sorts by name without regard to case, in pages", () => {
    const list = new TestList();
    for (const name of ["b1", "A1", "c1"]) list.ask("changed", entry(name));
    expect(list.list({ limit: 2 })).to.deep.include({ more: true, total: 3 });
    expect(list.names({ limit: 2 })).to.deep.equal(["A1", "b1"]);
    expect(list.names({ limit: 2, after: "b1" })).to.deep.equal(["c1"]);
    expect(list.list({ after: "B1" }).more).to.equal(false);
  });

  it("announce() accepts namespaces up to the limit, and one more after another was never created", () => {
    const list = new TestList();
    for (let i = 1; i < NAMESPACES_MAX; i++) list.rows.set(`n${i}`, entry(`n${i}`));
    list.ask("announce", { name: "last" });
    expect(refusal(() => list.ask("announce", { name: "more" })).code).to.equal("limit_reached");
    list.now += NAMESPACE_ANNOUNCED_MS;
    list.ask("announce", { name: "more" });
    expect(list.rows.size).to.equal(NAMESPACES_MAX);
  });
});
