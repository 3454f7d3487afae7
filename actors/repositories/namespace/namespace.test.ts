import { expect } from "chai";
import { NAMESPACE_REPOS_MAX } from "../../../schemas/repositories/limits.ts";
import type { RepoListing } from "../../../schemas/repositories/namespace.ts";
import { processorTime } from "../../../scripts/testing/processor-time.ts";
import { refusal } from "../../../scripts/testing/refusal.ts";
import { runHandler } from "../../../scripts/testing/run-handler.ts";
import { NAME_CLAIM_MS, namespaceActor, REMOVED_NAMES_MAX } from "./namespace.ts";
import type { NamespaceRow, NamespaceState } from "./namespace-state.ts";
import { NAME_CLAIMS_MAX } from "./namespace-state.ts";

const OWNER = { accountId: "a".repeat(32), name: "Space" };

function listing(name: string, more: Partial<RepoListing> = {}): RepoListing {
  return {
    id: name.toLowerCase().replaceAll("-", "").padStart(16, "0"),
    name,
    description: null,
    defaultBranch: "main",
    readOnly: false,
    source: null,
    status: "ready",
    createdAt: 1,
    updatedAt: 1,
    lastPushAt: null,
    ...more,
  };
}

type Handlers = (typeof namespaceActor)["handlers"];

class TestNamespace {
  state: NamespaceState = namespaceActor.initial;
  rows = new Map<string, NamespaceRow>();
  now = 1_000_000;
  sends: string[] = [];
  /** The messages that the namespace sends to the account's list of namespaces. */
  listed: readonly { message: string; key: string; input: unknown }[] = [];
  changed = false;

  ask<N extends keyof Handlers & string>(message: N, input: Parameters<Handlers[N]>[1]) {
    const handled = runHandler(namespaceActor, message, this.state, input as never, {
      now: this.now,
      rows: this.rows,
    });
    this.changed = handled.changed || Object.keys(handled.rows).length > 0;
    this.state = handled.state;
    this.listed = handled.send.filter(({ kind }) => kind === "namespace-list");
    this.sends = handled.send
      .filter(({ kind }) => kind === "repo")
      .map(({ message: sent, key }) => `${sent} ${key}`);
    for (const [row, value] of Object.entries(handled.rows)) {
      if (value === null) this.rows.delete(row);
      else this.rows.set(row, value as NamespaceRow);
    }
    return handled.reply;
  }

  add(name: string, more: Partial<RepoListing> = {}) {
    this.ask("claim", { ...OWNER, listing: listing(name, more) });
    this.ask("repoChanged", listing(name, more));
  }

  names(query: object = {}) {
    const whole = { limit: 200, sort: "name" as const, direction: "asc" as const, ...query };
    const { repos } = this.ask("list", whole) as { repos: RepoListing[] };
    return repos.map(({ name }) => name);
  }
}

describe("namespace", () => {
  it("create() makes a namespace once; remove() deletes it unless it has repositories", () => {
    const space = new TestNamespace();
    expect(refusal(() => space.ask("get", {})).code).to.equal("not_found");
    space.ask("create", OWNER);
    expect(refusal(() => space.ask("create", OWNER)).code).to.equal("conflict");
    expect(space.ask("get", {})).to.deep.include({ name: "Space", repoCount: 0 });
    space.add("one");
    expect(refusal(() => space.ask("remove", {})).code).to.equal("conflict");
    space.ask("release", { name: "one" });
    space.ask("remove", {});
    expect(refusal(() => space.ask("remove", {})).code).to.equal("not_found");
  });

  it("claim() makes the namespace, reserves a name once in any case, and may be repeated", () => {
    const space = new TestNamespace();
    space.ask("claim", { ...OWNER, listing: listing("One") });
    space.ask("claim", { ...OWNER, listing: listing("One") });
    expect(space.changed).to.equal(false);
    expect(space.ask("find", { name: "oNE" })).to.deep.equal({ id: listing("One").id });
    const other = { ...listing("ONE"), id: "f".repeat(16) };
    expect(refusal(() => space.ask("claim", { ...OWNER, listing: other })).code).to.equal(
      "conflict",
    );
  });

  it("claim() refuses a claimed name however old the claim is, and find() reports an expired claim", () => {
    const space = new TestNamespace();
    const { id } = listing("one");
    space.ask("claim", { ...OWNER, listing: listing("one") });
    const other = { ...listing("one"), id: "f".repeat(16) };
    const claimOther = () => space.ask("claim", { ...OWNER, listing: other });
    space.now += NAME_CLAIM_MS - 1;
    expect(refusal(claimOther).code).to.equal("conflict");
    expect(space.ask("find", { name: "ONE" })).to.deep.equal({ id });
    space.now += 1;
    // The repository may exist and hold pushes, and its report may still be on its way.
    expect(refusal(claimOther).code).to.equal("conflict");
    expect(space.sends).to.deep.equal([]);
    expect(space.ask("find", { name: "ONE" })).to.deep.equal({ id, claimExpired: true });
    space.ask("repoChanged", listing("one"));
    space.now += NAME_CLAIM_MS;
    expect(space.ask("find", { name: "ONE" })).to.deep.equal({ id });
    expect(refusal(claimOther).code).to.equal("conflict");
  });

  it("a repository that is created after its claim was released loses the name", () => {
    const space = new TestNamespace();
    const { id } = listing("one");
    space.ask("claim", { ...OWNER, listing: listing("one") });
    space.ask("release", { name: "one", id });
    expect(space.sends).to.deep.equal([`nameReleased ${id}`]);
    const other = { ...listing("one"), id: "f".repeat(16) };
    space.ask("claim", { ...OWNER, listing: other });
    space.ask("repoChanged", listing("one"));
    expect(space.sends).to.deep.equal([`nameReleased ${id}`]);
    expect(space.ask("find", { name: "one" })).to.deep.equal({ id: other.id });
  });

  it("claim() stores NAME_CLAIMS_MAX claims in the state and more in rows, and all work alike", () => {
    const space = new TestNamespace();
    const claim = (number: number) =>
      space.ask("claim", { ...OWNER, listing: listing(`r${number}`) });
    const count = () => (space.ask("get", {}) as { repoCount: number }).repoCount;
    for (let i = 0; i < NAME_CLAIMS_MAX; i++) claim(i);
    expect(space.rows.size).to.equal(0);
    claim(NAME_CLAIMS_MAX);
    expect(space.rows.size).to.equal(NAME_CLAIMS_MAX);
    expect(Object.keys(space.state.claims ?? {})).to.deep.equal([`r${NAME_CLAIMS_MAX}`]);
    expect(count()).to.equal(NAME_CLAIMS_MAX + 1);
    expect(space.names()).to.have.length(NAME_CLAIMS_MAX + 1);
    for (const number of [0, NAME_CLAIMS_MAX]) {
      const { id } = listing(`r${number}`);
      expect(space.ask("find", { name: `R${number}` })).to.deep.equal({ id });
      expect(refusal(() => space.ask("remove", {})).code).to.equal("conflict");
      space.ask("repoChanged", listing(`r${number}`));
      expect(space.rows.get(`r${number}`)).to.deep.equal(listing(`r${number}`));
    }
    expect(space.state.claims).to.deep.equal({});
    claim(NAME_CLAIMS_MAX + 1);
    const { id } = listing(`r${NAME_CLAIMS_MAX + 1}`);
    space.ask("repoRemoved", { id, name: `r${NAME_CLAIMS_MAX + 1}` });
    claim(NAME_CLAIMS_MAX + 2);
    space.ask("release", { name: `r${NAME_CLAIMS_MAX + 2}` });
    expect(count()).to.equal(NAME_CLAIMS_MAX + 1);
    const again = { name: "again", id: listing("again").id };
    space.ask("claim", { ...OWNER, listing: listing("again") });
    space.ask("release", again);
    space.ask("claim", { ...OWNER, listing: { ...listing("again"), id: "f".repeat(16) } });
    space.ask("release", again);
    expect(space.ask("find", { name: "again" })).to.deep.equal({ id: "f".repeat(16) });
  });

  it("claim() accepts NAMESPACE_REPOS_MAX names and refuses one more", () => {
    const space = new TestNamespace();
    for (let i = 0; i < NAMESPACE_REPOS_MAX; i++) space.rows.set(`r${i}`, listing(`r${i}`));
    expect(refusal(() => space.ask("claim", { ...OWNER, listing: listing("x") })).code).to.equal(
      "limit_reached",
    );
    space.ask("release", { name: "r1" });
    space.ask("claim", { ...OWNER, listing: listing("x") });
    const elapsed = processorTime();
    expect(space.names({ limit: 3, direction: "desc" })).to.deep.equal(["x", "r9999", "r9998"]);
    expect(elapsed()).to.be.below(1_000);
  });

  it("release() frees a name, returns the same id if repeated, and refuses a name that never existed", () => {
    const space = new TestNamespace();
    space.add("One");
    expect(space.ask("release", { name: "one" })).to.deep.equal({ id: listing("One").id });
    expect(space.sends).to.deep.equal([`nameReleased ${listing("One").id}`]);
    expect(space.ask("release", { name: "ONE" })).to.deep.equal({ id: listing("One").id });
    expect(space.sends).to.deep.equal([]);
    expect(refusal(() => space.ask("release", { name: "two" })).code).to.equal("not_found");
    expect(refusal(() => space.ask("find", { name: "one" })).code).to.equal("not_found");
    for (let i = 0; i <= REMOVED_NAMES_MAX; i++) {
      space.add(`r${i}`);
      space.ask("release", { name: `r${i}` });
    }
    expect(space.state.removed).to.have.length(REMOVED_NAMES_MAX);
  });

  it("release() with an id frees the name only if this repository has it, whether it exists or is claimed", () => {
    for (const isReported of [false, true]) {
      const space = new TestNamespace();
      const [first, second] = [listing("one"), { ...listing("one"), id: "f".repeat(16) }];
      space.ask("claim", { ...OWNER, listing: first });
      space.ask("release", { name: "one", id: first.id });
      expect(refusal(() => space.ask("find", { name: "one" })).code).to.equal("not_found");
      space.ask("claim", { ...OWNER, listing: second });
      if (isReported) space.ask("repoChanged", second);
      expect(space.ask("release", { name: "one", id: first.id })).to.deep.equal({ id: first.id });
      expect(space.changed).to.equal(false);
      expect(space.sends).to.deep.equal([]);
      expect(space.ask("find", { name: "one" })).to.deep.equal({ id: second.id });
      // Gateways of older versions send no id.
      expect(space.ask("release", { name: "one" })).to.deep.equal({ id: second.id });
      expect(space.sends).to.deep.equal([`nameReleased ${second.id}`]);
      expect(space.ask("release", { name: "one", id: first.id })).to.deep.equal({ id: first.id });
      expect(space.changed).to.equal(false);
    }
  });

  it("find() with orRemoved finds the repository that has the name, or else the one that had it last", () => {
    const space = new TestNamespace();
    const find = () => space.ask("find", { name: "ONE", orRemoved: true });
    expect(refusal(find).code).to.equal("not_found");
    space.add("one");
    expect(find()).to.deep.equal({ id: listing("one").id });
    space.ask("release", { name: "one" });
    expect(find()).to.deep.equal({ id: listing("one").id });
    space.add("one", { id: "f".repeat(16) });
    expect(find()).to.deep.equal({ id: "f".repeat(16) });
  });

  it("repoChanged() and repoRemoved() that arrive twice or too late change no other repository", () => {
    const space = new TestNamespace();
    space.add("one");
    space.ask("repoChanged", listing("one", { lastPushAt: 5 }));
    expect(space.rows.get("one")?.lastPushAt).to.equal(5);
    const { id } = listing("one");
    space.ask("repoRemoved", { id, name: "one" });
    space.ask("repoRemoved", { id, name: "one" });
    expect(space.changed).to.equal(false);
    space.ask("repoChanged", listing("one"));
    expect(space.rows.has("one")).to.equal(false);
    expect(space.sends).to.deep.equal([`nameReleased ${id}`]);
    space.add("one", { id: "f".repeat(16) });
    space.ask("repoRemoved", { id, name: "one" });
    expect(space.rows.has("one")).to.equal(true);
  });

  it("list() lists each repository once in any order, and finds parts of names", () => {
    const space = new TestNamespace();
    for (let i = 0; i < 25; i++) {
      space.add(`Name-${i}`, { createdAt: i % 4, updatedAt: 100 - i, lastPushAt: i % 3 || null });
    }
    for (const sort of ["created_at", "updated_at", "last_push_at", "name"] as const) {
      for (const direction of ["asc", "desc"] as const) {
        const seen: string[] = [];
        let after: { value: string | number; id: string } | undefined;
        for (;;) {
          const page = space.ask("list", {
            limit: 4,
            sort,
            direction,
            ...(after && { after }),
          }) as {
            repos: RepoListing[];
            more: boolean;
          };
          seen.push(...page.repos.map(({ name }) => name));
          const last = page.repos.at(-1);
          if (!page.more || !last) break;
          const values = {
            created_at: last.createdAt,
            updated_at: last.updatedAt,
            last_push_at: last.lastPushAt ?? 0,
            name: last.name.toLowerCase(),
          };
          after = { value: values[sort], id: last.id };
        }
        expect(new Set(seen).size, sort).to.equal(25);
        expect(seen).to.have.length(25);
      }
    }
    expect(space.names({ search: "NAME-2" })).to.have.length(6);
    expect(space.names({ sort: "updated_at", limit: 2 })).to.deep.equal(["Name-24", "Name-23"]);
  });

  it("notifies the account's list of each change of the number of repositories", () => {
    const space = new TestNamespace();
    const told = () => space.listed.map(({ message, key, input }) => ({ message, key, input }));
    const entry = (repoCount: number, updatedAt: number) => ({
      message: "changed",
      key: OWNER.accountId,
      input: { name: "Space", repoCount, createdAt: 1_000_000, updatedAt },
    });
    space.ask("create", OWNER);
    expect(told()).to.deep.equal([entry(0, 1_000_000)]);
    space.now += 5;
    space.ask("claim", { ...OWNER, listing: listing("one") });
    expect(told(), "it is not there yet").to.deep.equal([]);
    space.ask("repoChanged", listing("one"));
    expect(told()).to.deep.equal([entry(1, 1_000_005)]);
    space.ask("repoChanged", listing("one"));
    expect(told()).to.deep.equal([]);
    space.now += 5;
    space.ask("release", { name: "one" });
    expect(told()).to.deep.equal([entry(0, 1_000_010)]);
    space.ask("remove", {});
    expect(told()).to.deep.equal([
      { message: "removed", key: OWNER.accountId, input: { name: "Space" } },
    ]);
  });
});
