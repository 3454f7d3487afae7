import { expect } from "chai";
import { type AppConfig, AppConfig as Config } from "../../../schemas/apps/app-config.ts";
import { EVENT_INLINE_BYTES_MAX } from "../../../schemas/apps/limits.ts";
import type { RepoEventEnvelope } from "../../../schemas/repositories/repo-event-envelope.ts";
import { runHandler } from "../../../scripts/testing/run-handler.ts";
import { appActor } from "./app.ts";
import type { AppRow, AppState } from "./app-state.ts";

const ACCOUNT = "a".repeat(32);
const KEY = `${ACCOUNT}.hooks`;
const AGENTS = [
  { binding: "REPOS", class_name: "RepoAgent" },
  { binding: "OTHERS", class_name: "OtherAgent" },
];
const PUSHES = { source: "artifacts" as const, types: ["pushed" as const], agent: "REPOS" };

const event = (type = "cloned", repoName = "Repo", payload: object = {}) =>
  ({
    type: `artifacts.repo.${type}`,
    source: { type: "artifacts.repo", namespace: "Space", repoName },
    payload,
    metadata: {
      accountId: ACCOUNT,
      eventSubscriptionId: "app.hooks",
      eventSchemaVersion: 1,
      eventTimestamp: "2026-11-22T00:00:00.000Z",
    },
  }) as RepoEventEnvelope;
const commit = (id: string) => ({
  id,
  message: "x".repeat(500),
  messageTruncated: false,
  timestamp: "2026-11-22T00:00:00.000Z",
  author: { name: "A", email: "a@example.com" },
  committer: { name: "A", email: "a@example.com" },
  parents: [],
});
const push = (commits: number, repoName?: string) =>
  event("pushed", repoName, {
    ref: "refs/heads/main",
    before: "0".repeat(40),
    after: "1".repeat(40),
    commits: Array.from({ length: commits }, (_, index) => commit(`${index}`)),
    totalCommitsCount: commits,
    commitsTruncated: false,
  });

class App {
  state: AppState = appActor.initial;
  readonly #rows = new Map<string, AppRow>();

  // biome-ignore lint/suspicious/noExplicitAny: one door for all messages.
  run(message: keyof typeof appActor.handlers, input: any = {}) {
    const context = { key: KEY, now: 0, rows: this.#rows };
    const handled = runHandler(appActor, message, this.state, input as never, context);
    this.state = handled.state as AppState;
    for (const [name, row] of Object.entries(handled.rows)) this.#rows.set(name, row as AppRow);
    return handled;
  }

  deploy(events: AppConfig["events"]) {
    const date = { compatibility_date: "2026-11-20" };
    const config = Config.parse({ name: "hooks", ...date, agents: AGENTS, events });
    const { version } = this.run("stage", { config, bundle: "b", bundleBytes: 1 }).reply as {
      version: number;
    };
    return follows(this.run("activate", { version }));
  }

  told(...events: RepoEventEnvelope[]) {
    const numbers = events.map((_, index) => index + 7);
    return this.run("repoHappened", { events, numbers }).send;
  }
}

const follows = ({ send }: ReturnType<App["run"]>) =>
  send.filter(({ message }) => message === "follow").map(({ input }) => input);

interface Received {
  source: string;
  eventId: string;
  eventType: string;
  bodyBytes: number;
  request: { body: { text: string } };
}
/** Of the first that is sent. */
const inputOf = ([first]: readonly { input: unknown }[]) => first?.input as Received;

describe("events of an app", () => {
  it("activate(), rollBack() and delete() report the event rules of the app, and nothing for an app that never had any", () => {
    const app = new App();
    const subscriber = { kind: "app", key: KEY };
    const of = (filter: object | null) => [{ id: "app.hooks", subscriber, filter }];
    expect(app.deploy([])).to.deep.equal([]);
    expect(app.deploy([{ ...PUSHES, namespace: "space" }])).to.deep.equal(
      of({ types: ["pushed"], namespace: "space" }),
    );
    const mixed = [
      { ...PUSHES, namespace: "space" },
      { ...PUSHES, types: ["cloned" as const], namespace: "other" },
    ];
    expect(app.deploy(mixed)).to.deep.equal(of({ types: ["pushed", "cloned"] }));
    expect(follows(app.run("rollBack", { version: 1 }))).to.deep.equal(of(null));
    expect(follows(app.run("rollBack", { version: 2 }))).to.have.length(1);
    expect(follows(app.run("activate", { version: 1 })), "twice").to.deep.equal([]);
    expect(follows(app.run("delete"))).to.deep.equal(of(null));
  });

  it("repoHappened() gives each event to the agent of its repository, by the first rule that fits", () => {
    const app = new App();
    app.deploy([
      { ...PUSHES, repo: "repo" },
      { ...PUSHES, types: ["pushed", "cloned"], agent: "OTHERS" },
    ]);
    const sent = app.told(push(1), push(1, "else"), event("cloned"), event("fetched"));
    expect(sent.map(({ kind, key, message }) => [kind, key, message])).to.deep.equal([
      ["agent-inbox", `${KEY}.RepoAgent.space-repo`, "happened"],
      ["agent-inbox", `${KEY}.OtherAgent.space-else`, "happened"],
      ["agent-inbox", `${KEY}.OtherAgent.space-repo`, "happened"],
    ]);
    const { source, eventId, eventType, request } = inputOf(sent);
    expect([source, eventId, eventType]).to.deep.equal(["artifacts", "7", "artifacts.repo.pushed"]);
    expect(JSON.parse(request.body.text)).to.deep.equal(push(1));
  });

  it("repoHappened() twice says the same again, which an inbox knows; too late it says nothing", () => {
    const app = new App();
    app.deploy([PUSHES]);
    expect(app.told(push(1))).to.deep.equal(app.told(push(1)));
    app.deploy([]);
    expect(app.told(push(1))).to.deep.equal([]);
    app.deploy([PUSHES]);
    app.run("delete");
    expect(app.told(push(1))).to.deep.equal([]);
    expect(new App().told(push(1))).to.deep.equal([]);
  });

  it("repoHappened() passes on the newest commits of a large push", () => {
    const app = new App();
    app.deploy([PUSHES]);
    const { request, bodyBytes } = inputOf(app.told(push(20)));
    expect(bodyBytes).to.be.within(EVENT_INLINE_BYTES_MAX - 1_000, EVENT_INLINE_BYTES_MAX);
    const { payload } = JSON.parse(request.body.text);
    expect(payload.commits.at(-1).id).to.equal("19");
    expect([payload.commitsTruncated, payload.totalCommitsCount]).to.deep.equal([true, 20]);
  });
});
