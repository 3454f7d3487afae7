import { expect } from "chai";
import { ZERO_ID } from "../../../schemas/repositories/git-names.ts";
import { gitUpkeep } from "../../../schemas/repositories/git-upkeep.ts";
import {
  EVENT_COMMITS_MAX,
  EVENT_OTHERS_MAX,
  EVENT_REFS_MAX,
} from "../../../schemas/repositories/limits.ts";
import type { RepoEventEnvelope } from "../../../schemas/repositories/repo-event-envelope.ts";
import { repoEvents } from "../../../schemas/repositories/repo-events.ts";
import { until } from "../../../scripts/testing/until.ts";
import { ACCOUNT, type GitGateway, GitWorld, type TestRepo } from "../testing/git-world.ts";
import {
  EVENT_MESSAGE_CHARS_MAX,
  EVENT_NAME_CHARS_MAX,
  EVENT_PARENTS_MAX,
} from "./describe-push.ts";

type Pushed = Extract<RepoEventEnvelope, { type: "artifacts.repo.pushed" }>;

describe("commits in push events", function () {
  this.timeout(180_000);
  let world: GitWorld;
  let gateway: GitGateway;
  before(async () => {
    world = await GitWorld.start();
    gateway = await world.gateway();
    await world.upkeep(gateway);
    await world.actors.call(repoEvents, ACCOUNT, "subscribe", {
      id: "test",
      filter: { types: ["pushed"] },
      // No actor of this kind exists. The test reads the events from the account's list instead.
      subscriber: { kind: "nobody", key: "x" },
    });
  });
  after(() => world[Symbol.asyncDispose]());

  async function pushesOf(repo: TestRepo, count: number): Promise<Pushed["payload"][]> {
    const told = async () => {
      const query = { after: 0, limit: 200 };
      const { events } = await world.actors.call(repoEvents, ACCOUNT, "list", query);
      const pushes = events
        .map(({ event }) => event)
        .filter((event) => event.type === "artifacts.repo.pushed")
        .filter(({ source }) => source.repoName === repo.name);
      return pushes.length === count && pushes.map(({ payload }) => payload);
    };
    return await until("all pushes are told", told, 60_000);
  }

  it("list the newest EVENT_COMMITS_MAX new commits of each ref, and their total", async () => {
    const repo = await world.repo();
    const work = await world.checkout();
    const heads: string[] = [];
    for (let i = 0; i <= EVENT_COMMITS_MAX; i++) heads.push(await work.commit(`c${i}`));
    const push = (...refs: string[]) => work.git("push", "-q", gateway.remote(repo), ...refs);
    await push("main~1:refs/heads/main");
    await push("main");
    await push("main:refs/heads/same", "main:refs/tags/v1");
    await work.git("checkout", "-q", "-b", "side", "main~2");
    const side = await work.commit("on the side");
    await push("side");
    await push("side:refs/heads/side2");
    await push(":side2");
    await push("+main~3:main");
    const told = await pushesOf(repo, 8);
    const [first, second, same, tag, made, again, gone, forced] = told.map((payload) => ({
      ...payload,
      commits: payload.commits.map(({ id }) => id),
    }));
    const tip = heads.at(-1);
    expect(first).to.deep.equal({
      ref: "refs/heads/main",
      before: ZERO_ID,
      after: heads.at(-2),
      commits: heads.slice(0, EVENT_COMMITS_MAX),
      totalCommitsCount: EVENT_COMMITS_MAX,
      commitsTruncated: false,
    });
    expect(second).to.deep.include({ after: tip, commits: [tip], totalCommitsCount: 1 });
    for (const nothing of [same, tag]) {
      expect(nothing).to.deep.include({
        commits: [],
        totalCommitsCount: 0,
        commitsTruncated: false,
      });
    }
    expect(made).to.deep.include({ ref: "refs/heads/side", commits: [side], totalCommitsCount: 1 });
    expect(again).to.deep.include({ ref: "refs/heads/side2", commits: [] });
    expect(gone).to.deep.include({ after: ZERO_ID, commits: [], totalCommitsCount: 0 });
    expect(forced).to.deep.include({ ref: "refs/heads/main", commits: [], totalCommitsCount: 0 });
    const whole = await world.repo();
    await work.git("push", "-q", gateway.remote(whole), "main");
    const [all] = await pushesOf(whole, 1);
    expect(all).to.deep.include({ totalCommitsCount: heads.length, commitsTruncated: true });
    expect(all?.commits.map(({ id }) => id)).to.deep.equal(heads.slice(1));
    const commit = told[1]?.commits[0];
    expect(commit).to.deep.include({
      message: `c${EVENT_COMMITS_MAX}`,
      messageTruncated: false,
      author: { name: "A", email: "a@example.com" },
      committer: { name: "A", email: "a@example.com" },
      parents: [heads.at(-2)],
    });
    expect(commit?.timestamp).to.match(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.000Z$/);
  });

  it("are truncated if too long, and empty for a ref to another type of object", async () => {
    const repo = await world.repo();
    const work = await world.checkout();
    const tree = await work.git("write-tree");
    const parents: string[] = [];
    for (let i = 0; i <= EVENT_PARENTS_MAX; i++) {
      parents.push(await work.git("commit-tree", tree, "-m", `p${i}`));
    }
    const name = "n".repeat(EVENT_NAME_CHARS_MAX);
    const person = (extra: string) => `${name}${extra} <x@example.com> 100000 +0000`;
    const object = (given: string[], author: string, message: string) =>
      work.object(
        "commit",
        `tree ${tree}\n${given.map((id) => `parent ${id}\n`).join("")}author ${person(author)}\ncommitter ${person("")}\n\n${message}`,
      );
    const atLimit = await object(
      parents.slice(0, EVENT_PARENTS_MAX),
      "",
      "m".repeat(EVENT_MESSAGE_CHARS_MAX),
    );
    const past = await object(parents, "n", "m".repeat(EVENT_MESSAGE_CHARS_MAX + 1));
    const blob = await work.object("blob", "x");
    await work.git("update-ref", "refs/heads/limit", atLimit);
    await work.git("update-ref", "refs/heads/past", past);
    await work.git("update-ref", "refs/tags/blob", blob);
    await work.git("push", "-q", gateway.remote(repo), "limit", "past", "refs/tags/blob");
    const told = await pushesOf(repo, 3);
    const lastOf = (ref: string) => told.find((payload) => payload.ref === ref)?.commits.at(-1);
    for (const [ref, truncated] of [
      ["refs/heads/limit", false],
      ["refs/heads/past", true],
    ] as const) {
      const commit = lastOf(ref);
      expect(commit?.messageTruncated).to.equal(truncated);
      expect(commit?.message).to.have.length(EVENT_MESSAGE_CHARS_MAX);
      expect(commit?.author.name).to.have.length(EVENT_NAME_CHARS_MAX);
      expect(commit?.parents).to.have.length(EVENT_PARENTS_MAX);
    }
    expect(told.find(({ ref }) => ref === "refs/tags/blob")?.commits).to.deep.equal([]);
  });

  it("are computed for EVENT_REFS_MAX refs at once, against EVENT_OTHERS_MAX other refs", () => {
    const { input } = gitUpkeep.messages.describe;
    const asked = (changes: number, others: number) =>
      input.safeParse({
        address: { accountId: ACCOUNT, namespace: "tests", name: "x" },
        changes: Array.from({ length: changes }, (_, i) => ({
          number: i + 1,
          ref: "refs/heads/x",
          before: ZERO_ID,
          after: ZERO_ID,
        })),
        others: Array.from({ length: others }, () => ZERO_ID),
      }).success;
    expect(asked(EVENT_REFS_MAX, EVENT_OTHERS_MAX)).to.equal(true);
    expect(asked(EVENT_REFS_MAX + 1, 0)).to.equal(false);
    expect(asked(1, EVENT_OTHERS_MAX + 1)).to.equal(false);
    expect(asked(0, 0)).to.equal(false);
  });
});
