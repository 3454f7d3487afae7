import { setImmediate as turn } from "node:timers/promises";
import {
  connect,
  type NatsConnection,
  nkeyAuthenticator,
  PermissionViolationError,
} from "@nats-io/transport-node";
import { expect } from "chai";
import { ACTORS, TASKS } from "../../actors/main.ts";
import { Bus } from "../../actors/runtime/bus/bus.ts";
import { declareStreams } from "../../deploy/streams.ts";
import { FIRST_LAYOUT } from "../../schemas/data-layout.ts";
import {
  inboxesOf,
  STREAMS,
  stateBucket,
  stateSubjects,
  taskConsumer,
  taskSubject,
} from "../../schemas/subjects.ts";
import { SecuredNats } from "../testing/secured-nats.ts";
import { BUS_USERS, type BusUserName } from "./users.ts";

type Operation = "publish" | "subscribe";
type Act = readonly [user: BusUserName, operation: Operation, subject: string];

const API = "$JS.API";
const STATE = stateSubjects(stateBucket(0));
const ROLES = ["gateway", "actors", "browser"] as const;
/** The role that handles the tasks of each kind. */
const TAKES: Record<string, (typeof ROLES)[number]> = {
  "app-purge": "actors",
  "crawl-page": "browser",
  "dns-check": "browser",
  "git-upkeep": "gateway",
  "logo-fetch": "browser",
  render: "browser",
  "repo-import": "gateway",
  "webhook-post": "actors",
};
const LANES = TASKS.flatMap(({ kind, lanes }) => lanes.map((lane) => ({ kind, lane })));

/** The kinds to which the role `browser` sends messages: by call, or by mail. */
const BROWSER_CALLS = ["browser-time", "crawl-job", "devtools-sessions", "render-jobs", "site"];
const BROWSER_MAILS = ["client-logo", "oauth-client"].concat(
  BROWSER_CALLS.filter((kind) => kind !== "devtools-sessions"),
);

/** Requests that a user must not be able to make, grouped by the reason. */
const FORBIDDEN: Record<string, readonly Act[]> = {
  "a browser worker writes no state": [
    ["browser", "publish", STATE.value("account.a")],
    ["browser", "publish", STATE.epoch(0)],
    ["browser", "publish", STATE.lease("other")],
    ["browser", "publish", STATE.journal("other")],
    ["browser", "publish", "mail.0.app.a.hooks"],
    ["browser", "publish", "mail-3.0.app.a.hooks"],
    ["browser", "publish", "sent-3.0"],
    ["browser", "publish", "agentlog-3.a.hooks.Agent.one"],
    ["gateway", "publish", "agentlog-3.a.hooks.Agent.one"],
    ["actors", "publish", "blob.git-3.a.b.=.head"],
    ["browser", "publish", "task-3.webhook-post.post"],
    ["browser", "publish", `${API}.CONSUMER.MSG.NEXT.TASKS-3.webhook-post-post`],
    ["gateway", "publish", "$JS.ACK.TASKS-3.webhook-post-post.1.1.1.1.0"],
    ["browser", "publish", "sent.0"],
    ["browser", "publish", "agentlog.a.hooks.Agent.one"],
    ["browser", "publish", `${API}.STREAM.PURGE.${STATE.stream}`],
    ["browser", "publish", `${API}.STREAM.MSG.DELETE.${STATE.stream}`],
    ["browser", "publish", `${API}.STREAM.DELETE.${STATE.stream}`],
    ["browser", "publish", `${API}.STREAM.RESTORE.${STATE.stream}`],
  ],
  "a browser worker reads no secrets": [
    ["browser", "publish", `${API}.STREAM.MSG.GET.${STATE.stream}`],
    ["browser", "publish", `${API}.DIRECT.GET.${STATE.stream}`],
    ["browser", "publish", `${API}.DIRECT.GET.${STATE.stream}.${STATE.value("oauth-keys.main")}`],
    ["browser", "publish", `${API}.CONSUMER.CREATE.${STATE.stream}`],
    ["browser", "publish", `${API}.CONSUMER.CREATE.${STATE.stream}.x.${STATE.value("app.>")}`],
    ["browser", "publish", `${API}.STREAM.SNAPSHOT.${STATE.stream}`],
    ["browser", "publish", `${API}.STREAM.MSG.GET.${STREAMS.apps}`],
    ["browser", "publish", `${API}.STREAM.MSG.GET.${STREAMS.packs}`],
    ["browser", "publish", `${API}.STREAM.MSG.GET.${STREAMS.agents}`],
    ["browser", "publish", `${API}.STREAM.MSG.GET.${STREAMS.tasks}`],
    ["browser", "publish", `${API}.STREAM.MSG.GET.${STREAMS.mail}`],
    ["browser", "publish", `${API}.DIRECT.GET.${STREAMS.dead}`],
    ["browser", "subscribe", STATE.all],
    ["browser", "subscribe", "mail.>"],
    ["browser", "subscribe", "agentlog.>"],
    ["browser", "subscribe", "applog.>"],
    ["browser", "subscribe", "blob.>"],
    ["browser", "subscribe", ">"],
  ],
  "a browser worker publishes to no actor but those of its tasks": [
    ["browser", "publish", "shard.0.account.a"],
    ["browser", "publish", "mail.0.account.a"],
    ["browser", "publish", "mail-3.0.account.a"],
    ["browser", "publish", "shard.0.user.a@example=2Ecom"],
    ["browser", "publish", "shard.0.api-token.a"],
    ["browser", "publish", "shard.0.app.a.hooks"],
    ["browser", "publish", "shard.0.oauth-keys.main"],
    ["browser", "publish", "shard.0.session.a"],
    ["browser", "publish", "shard.0.repo.a"],
    ["browser", "publish", "shard.0.agent.a"],
    ["browser", "publish", "mail.0.repo.a"],
    ["browser", "publish", "opened.0"],
    ["browser", "publish", "live.account.a"],
    ["browser", "publish", "app-rest"],
    ["browser", "publish", "app-token"],
    ["browser", "subscribe", "shard.>"],
    ["browser", "subscribe", "app-rest"],
  ],
  "a browser worker queues tasks of no other role": [
    ["browser", "publish", taskSubject("webhook-post", "post")],
    ["browser", "publish", taskSubject("git-upkeep", "upkeep")],
    ["browser", "publish", "dead.webhook-post.a"],
    ["browser", "publish", `${API}.STREAM.MSG.DELETE.${STREAMS.tasks}`],
    ["browser", "publish", `${API}.STREAM.PURGE.${STREAMS.tasks}`],
    ["browser", "publish", `${API}.CONSUMER.CREATE.${STREAMS.tasks}`],
    ["browser", "publish", `${API}.CONSUMER.CREATE.${STREAMS.tasks}.x.task.webhook-post.post`],
    ["browser", "publish", `${API}.CONSUMER.DURABLE.CREATE.${STREAMS.tasks}.x`],
    ["browser", "publish", `${API}.CONSUMER.DELETE.${STREAMS.tasks}.render-interactive`],
  ],
  "a gateway writes no state and takes no place of a host": [
    ["gateway", "publish", STATE.value("account.a")],
    ["gateway", "publish", STATE.epoch(0)],
    ["gateway", "publish", `${API}.STREAM.PURGE.${STATE.stream}`],
    ["gateway", "publish", `${API}.STREAM.MSG.DELETE.${STATE.stream}`],
    ["gateway", "publish", `${API}.CONSUMER.CREATE.${STATE.stream}`],
    ["gateway", "publish", "agentlog.a.hooks.Agent.one"],
    ["gateway", "publish", "opened.0"],
    ["gateway", "publish", "live.account.a"],
    ["gateway", "subscribe", "shard.>"],
    ["gateway", "subscribe", "present.*"],
    ["gateway", "publish", "$SYS.REQ.ACCOUNT.PING.CONNZ"],
    ["browser", "publish", "$SYS.REQ.ACCOUNT.PING.CONNZ"],
    ["gateway", "subscribe", STATE.all],
    ["gateway", "subscribe", "queued.render.*"],
  ],
  "an actors process reads no packs and no crawled pages": [
    ["actors", "publish", `${API}.STREAM.MSG.GET.${STREAMS.packs}`],
    ["actors", "publish", `${API}.STREAM.PURGE.${STREAMS.packs}`],
    ["actors", "publish", `${API}.DIRECT.GET.${STREAMS.crawl}.blob.crawl.a.=.head`],
    ["actors", "publish", "blob.git.a.b.=.head"],
    ["actors", "publish", "blob.crawl.a.b.=.head"],
  ],
  "only the role actors makes streams, and none deletes one": [
    ["gateway", "publish", `${API}.STREAM.CREATE.NEW`],
    ["browser", "publish", `${API}.STREAM.CREATE.NEW`],
    ["gateway", "publish", `${API}.STREAM.UPDATE.${STREAMS.tasks}`],
    ["browser", "publish", `${API}.STREAM.UPDATE.${STREAMS.tasks}`],
    ...ROLES.map((role) => [role, "publish", `${API}.STREAM.DELETE.${STREAMS.cache}`] as const),
  ],
  "an operator reads no state and changes nothing": [
    ["operator", "publish", STATE.value("account.a")],
    ["operator", "publish", "shard.0.account.a"],
    ["operator", "publish", "mail.0.account.a"],
    ["operator", "publish", taskSubject("render", "batch")],
    ["operator", "publish", `${API}.STREAM.MSG.GET.${STATE.stream}`],
    ["operator", "publish", `${API}.DIRECT.GET.${STATE.stream}`],
    ["operator", "publish", `${API}.DIRECT.GET.${STATE.stream}.${STATE.value("user.a")}`],
    ["operator", "publish", `${API}.STREAM.MSG.GET.${STREAMS.mail}`],
    ["operator", "publish", `${API}.STREAM.MSG.DELETE.${STREAMS.dead}`],
    ["operator", "publish", `${API}.STREAM.PURGE.${STREAMS.dead}`],
    ["operator", "publish", `${API}.STREAM.UPDATE.${STREAMS.dead}`],
    ["operator", "publish", `${API}.STREAM.CREATE.NEW`],
    ["operator", "publish", `${API}.CONSUMER.CREATE.${STATE.stream}`],
    ["operator", "publish", `${API}.CONSUMER.MSG.NEXT.${STREAMS.tasks}.render-batch`],
    ["operator", "publish", `${API}.CONSUMER.PAUSE.${STREAMS.tasks}.render-batch`],
    ["operator", "publish", "cancel.a"],
    ["operator", "subscribe", STATE.all],
    ["operator", "subscribe", "shard.>"],
    ["operator", "subscribe", "live.>"],
  ],
};

/**
 * Requests that each user needs for its work. They prove that refusals do not come from a user that has no
 * permissions at all.
 */
const ALLOWED: readonly Act[] = [
  ["browser", "publish", "shard.0.browser-time.a"],
  ["browser", "publish", "mail.0.browser-time.a"],
  ["browser", "publish", "shard.0.site.example=2Ecom"],
  ["browser", "publish", "mail.0.crawl-job.a"],
  ["browser", "publish", "mail-15.0.crawl-job.a"],
  ["gateway", "publish", "mail-15.0.app.a"],
  ["gateway", "publish", "blob.git-15.a.b.=.head"],
  ["actors", "publish", "sent-15.0"],
  ["actors", "publish", "agentlog-15.a.hooks.Agent.one"],
  ["browser", "publish", "task-15.render.interactive"],
  ["browser", "publish", `${API}.CONSUMER.MSG.NEXT.TASKS-15.render-batch`],
  ["browser", "subscribe", "queued.render.interactive"],
  ["browser", "subscribe", "queued.crawl-page.fetch"],
  ["browser", "publish", "queued.crawl-page.purge"],
  [
    "browser",
    "publish",
    `${API}.CONSUMER.CREATE.TASKS-15.crawl-page-fetch-0.task-15.crawl-page.fetch.a`,
  ],
  ["gateway", "publish", "shard.0.account.a"],
  ["gateway", "publish", taskSubject("render", "interactive")],
  ["gateway", "subscribe", "live.account.a"],
  ["actors", "publish", STATE.value("zz.probe")],
  ["actors", "subscribe", "shard.0.>"],
  ["operator", "publish", `${API}.STREAM.INFO.${STREAMS.tasks}`],
  ["operator", "publish", `${API}.DIRECT.GET.${STATE.stream}.${STATE.epoch(0)}`],
  ["admin", "publish", STATE.value("zz.probe")],
  ["admin", "subscribe", ">"],
];

describe("users of the bus", function () {
  this.timeout(60_000);
  let nats: SecuredNats;
  let admin: Bus;
  const clients = new Map<BusUserName, NatsConnection>();
  const refused: string[] = [];

  before(async () => {
    nats = await SecuredNats.start();
    admin = await Bus.connect({ ...nats.login("admin"), name: "test" });
    await declareStreams(admin.jetstream, { replicas: 1, layout: FIRST_LAYOUT, tasks: TASKS });
    for (const user of BUS_USERS) {
      const client = await rawClient(user);
      clients.set(user, client);
      void collectRefusals(client); // Ends with the connection.
    }
  });
  after(async () => {
    for (const client of clients.values()) await client.close();
    await admin.close();
    await nats[Symbol.asyncDispose]();
  });

  /** Connects a plain NATS client, without any code of the platform. */
  async function rawClient(user: BusUserName): Promise<NatsConnection> {
    const { nkey = "" } = nats.login(user);
    return await connect({
      servers: `127.0.0.1:${nats.server.port}`,
      authenticator: nkeyAuthenticator(new TextEncoder().encode(nkey)),
      inboxPrefix: inboxesOf(user).answers,
    });
  }

  /**
   * Sends the requests of one user. Returns the requests that the server refused: it reports refusals before it
   * answers a later ping.
   */
  async function refusals(user: BusUserName, acts: readonly Act[]): Promise<string[]> {
    const client = clients.get(user);
    if (!client) throw new Error(`No client for ${user}`);
    const from = refused.length;
    // Sends a message without a body. If a stream or the server's API accepted it, it would answer an error or
    // execute the request.
    for (const [, operation, subject] of acts) {
      if (operation === "publish") client.publish(subject, "");
      else client.subscribe(subject, { callback: () => {} }).closed.catch(() => {});
    }
    await client.flush();
    await turn();
    return refused.slice(from);
  }

  async function collectRefusals(client: NatsConnection): Promise<void> {
    for await (const status of client.status()) {
      if (status.type !== "error" || !(status.error instanceof PermissionViolationError)) continue;
      const { operation, subject } = status.error;
      refused.push(`${operation === "publish" ? operation : "subscribe"} ${subject}`);
    }
  }
  const namesOf = (acts: readonly Act[]) =>
    acts.map(([, operation, subject]) => `${operation} ${subject}`);
  const usersOf = (acts: readonly Act[]) => [...new Set(acts.map(([user]) => user))];

  for (const [what, acts] of Object.entries(FORBIDDEN)) {
    it(what, async () => {
      const before = await countMessages();
      for (const user of usersOf(acts)) {
        const own = acts.filter(([one]) => one === user);
        expect(await refusals(user, own), user).to.have.members(namesOf(own));
      }
      expect(await countMessages()).to.deep.equal(before);
    });
  }

  it("each user may do what its work needs", async () => {
    for (const user of usersOf(ALLOWED)) {
      const own = ALLOWED.filter(([one]) => one === user);
      expect(await refusals(user, own), user).to.deep.equal([]);
    }
  });

  it("a browser worker sends to the kinds of its tasks, and to no other kind", async () => {
    for (const { contract } of ACTORS) {
      const { kind } = contract;
      const acts = [
        [`shard.0.${kind}.a`, BROWSER_CALLS],
        [`mail.0.${kind}.a`, BROWSER_MAILS],
      ] as const;
      for (const [subject, kinds] of acts) {
        const wanted = kinds.includes(kind) ? [] : [`publish ${subject}`];
        const found = await refusals("browser", [["browser", "publish", subject]]);
        expect(found, subject).to.deep.equal(wanted);
      }
    }
  });

  it("tasks of a lane are taken and acknowledged by one role alone", async () => {
    for (const { kind, lane } of LANES) {
      const name = taskConsumer(kind, lane);
      const subjects = [
        `${API}.CONSUMER.MSG.NEXT.${STREAMS.tasks}.${name}`,
        `$JS.ACK.${STREAMS.tasks}.${name}.1.1.1.1.0`,
      ];
      for (const role of ROLES) {
        const acts = subjects.map((subject) => [role, "publish", subject] as const);
        const wanted = role === TAKES[kind] ? [] : namesOf(acts);
        const advice = `${role}, ${name}: deploy/bus-permissions/${role}.yaml`;
        expect(await refusals(role, acts), advice).to.have.members(wanted);
      }
    }
  });

  it("nobody takes the queue of another role by a consumer of its name", async () => {
    const others = LANES.filter(({ kind }) => TAKES[kind] !== "browser");
    const acts = others.map(({ kind, lane }) => {
      const name = taskConsumer(kind, lane);
      return [
        "browser",
        "publish",
        `${API}.CONSUMER.CREATE.${STREAMS.tasks}.${name}.task.render.batch.a`,
      ] as const;
    });
    expect(await refusals("browser", acts)).to.have.members(namesOf(acts));
  });

  it("no role receives the answers of another", async () => {
    for (const user of ["gateway", "actors", "browser", "operator"] as const) {
      const others = BUS_USERS.filter((other) => other !== user);
      const subjects = others.flatMap((other) => Object.values(inboxesOf(other)));
      const acts = [...subjects, "_INBOX"].map(
        (inbox) => [user, "subscribe", `${inbox}.>`] as const,
      );
      expect(await refusals(user, acts)).to.have.members(namesOf(acts));
      const own = [[user, "subscribe", `${inboxesOf(user).answers}.>`]] as const;
      expect(await refusals(user, own)).to.deep.equal([]);
    }
  });

  it("a browser worker answers requests that it gets, once, and nothing else", async () => {
    const [gateway, browser] = [clients.get("gateway"), clients.get("browser")];
    let reply = "";
    browser?.subscribe("devtools.session.one", {
      callback: (_, message) => {
        reply = message.reply ?? "";
        message.respond("here");
      },
    });
    await browser?.flush();
    const answer = await gateway?.request("devtools.session.one", "", { timeout: 10_000 });
    expect(answer?.string()).to.equal("here");
    const acts = [["browser", "publish", reply]] as const;
    expect(await refusals("browser", acts)).to.deep.equal(namesOf(acts));
  });

  it("calls by the subjects of operators are those of their shards", async () => {
    for (const user of ["browser", "operator"] as const) {
      const [found = ""] = await refusals(user, [[user, "publish", "actor.user.a"]]);
      expect(found).to.match(/^publish (actor|shard\.\d+)\.user\.a$/);
    }
  });

  it("a client without a known key is refused", async () => {
    const stranger = connect({ servers: `127.0.0.1:${nats.server.port}`, reconnect: false });
    const error = await stranger.then(
      () => undefined,
      (thrown: Error) => thrown.message,
    );
    expect(error).to.match(/authorization/i);
  });

  async function countMessages(): Promise<number[]> {
    const names = [STATE.stream, ...Object.values(STREAMS)];
    const found = await Promise.all(names.map((name) => admin.jetstream.streams.info(name)));
    return found.map(({ state }) => state.last_seq);
  }
});
