import { expect } from "chai";
import { agentAlarm } from "../../../../schemas/apps/agent.ts";
import { agentInbox } from "../../../../schemas/apps/agent-inbox.ts";
import { app } from "../../../../schemas/apps/app.ts";
import { AppConfig } from "../../../../schemas/apps/app-config.ts";
import { appList } from "../../../../schemas/apps/app-list.ts";
import { agentKey, appKey } from "../../../../schemas/apps/app-names.ts";
import { appPurge } from "../../../../schemas/apps/app-purge.ts";
import { type Envelope, envelope } from "../../../../schemas/contract.ts";
import { agentLogsOf, mailIn } from "../../../../schemas/split-streams.ts";
import { addressOf, appLogSubject, STREAMS, shardOf } from "../../../../schemas/subjects.ts";
import { startWorld, type World } from "../../../../scripts/testing/actor-world.ts";
import { until } from "../../../../scripts/testing/until.ts";
import { systemClock } from "../../../runtime/lib/clock.ts";
import { BlobStore } from "../../../runtime/store/blob-store.ts";
import { queueTask } from "../../../runtime/tasks/queue-task.ts";
import type { TaskContext } from "../../../runtime/workers/define-worker.ts";
import { agentAlarmActor } from "../../agent-alarm/agent-alarm.ts";
import { agentInboxActor } from "../../agent-inbox/agent-inbox.ts";
import { eventOf } from "../../agent-inbox/testing/inbox.ts";
import { appActor } from "../../app/app.ts";
import { appListActor } from "../../app-list/app-list.ts";
import { appPortsActor } from "../../app-ports/app-ports.ts";
import { appUsageActor } from "../../app-usage/app-usage.ts";
import { outgoingWebhookActor } from "../../outgoing-webhook/outgoing-webhook.ts";
import { appPurgeWorker } from "./app-purge.ts";

const ACCOUNT = "a".repeat(32);
const NAME = "hooks";
const KEY = appKey(ACCOUNT, NAME);
const AGENT = agentKey({ accountId: ACCOUNT, app: NAME, className: "A", name: "one" });
const BUNDLE = `app.${KEY}.bundle.1`;

describe("app-purge", function () {
  this.timeout(120_000);
  let world: World;
  let blobs: BlobStore;
  /** Keys of the alarms that the latest purge of a test has cleared. */
  let clearedAlarms: string[];
  /** Whether the next `clear` of an inbox fails. */
  let isInboxBroken = false;
  const inbox = {
    ...agentInboxActor,
    handlers: {
      ...agentInboxActor.handlers,
      clear(...given: Parameters<typeof agentInboxActor.handlers.clear>) {
        if (!isInboxBroken) return agentInboxActor.handlers.clear(...given);
        isInboxBroken = false;
        throw new Error("broken");
      },
    },
  };
  beforeEach(async () => {
    const apps = [appActor, appListActor, appPortsActor, appUsageActor];
    const agents = [agentAlarmActor, inbox, outgoingWebhookActor];
    world = await startWorld({ definitions: [...apps, ...agents], tasks: [appPurge] });
    blobs = new BlobStore(world.bus, systemClock);
    await world.host();
  });
  afterEach(() => world[Symbol.asyncDispose]());

  const worker = () => appPurgeWorker({ bus: world.bus, blobs, buckets: 1 });

  /** Creates the app, with data of each sort. Returns its id. */
  async function create(): Promise<string> {
    const config = AppConfig.parse({ name: NAME, compatibility_date: "2026-11-20" });
    await world.client.call(appList, ACCOUNT, "admit", { name: NAME });
    await blobs.put(BUNDLE, Buffer.from("code"));
    const staged = { config, bundle: BUNDLE, bundleBytes: 4 };
    const { version } = await world.client.call(app, KEY, "stage", staged);
    const { id } = await world.client.call(app, KEY, "activate", { version });
    await world.client.call(agentInbox, AGENT, "receive", eventOf("first"));
    for (const { subject } of logs())
      await world.bus.jetstream.jetstream().publish(subject, "record");
    return id;
  }

  function logs() {
    const agents = agentLogsOf(world.bus.layout, AGENT);
    return [
      { stream: agents.stream, subject: agents.log(AGENT) },
      { stream: STREAMS.appLogs, subject: appLogSubject(KEY) },
    ];
  }

  /** Returns the number of the app's stored events, log records and bundles. */
  async function stored() {
    const { deliveries } = await world.client.call(agentInbox, AGENT, "list", { limit: 10 });
    const records = await Promise.all(
      logs().map(({ stream, subject }) => world.count(stream, subject)),
    );
    const bundles = (await blobs.names("app")).size;
    return { events: deliveries.length, records, bundles };
  }

  const deleteApp = () => world.client.call(app, KEY, "delete", {});
  const isFree = async () => {
    const { apps } = await world.client.call(appList, ACCOUNT, "list", {});
    return apps.length === 0;
  };

  /** Runs a task in the test. `checked` is called after each check that the app is being deleted. */
  async function purge(
    id: string,
    checked: (times: number) => Promise<void> = async () => {},
    isSure = () => true,
  ): Promise<{ send?: unknown }> {
    const { client } = world;
    let times = 0;
    clearedAlarms = [];
    const context = {
      async call(...called: Parameters<TaskContext["call"]>) {
        const reply = await client.call(...called);
        if (called[0].kind === agentAlarm.kind) clearedAlarms.push(called[1]);
        if (called[2] === "getDeleting") await checked(++times);
        return reply;
      },
      async tellByCall({ kind, key, message, input }: Envelope) {
        await client.call({ kind, messages: {} }, key, message as never, input as never);
      },
      isSure,
    };
    return worker().handlers.purge({ app: KEY, id }, context as unknown as TaskContext);
  }

  /** Does what another worker does with the same task, and creates the app anew. */
  async function finishAndCreate(id: string): Promise<void> {
    await purge(id);
    await world.client.send(app, KEY, "purged", { id });
    await until("the name is free", isFree);
    await create();
  }

  it("purge removes everything and frees the name", async () => {
    const first = await create();
    expect(await stored()).to.deep.equal(EVERYTHING);
    await deleteApp();
    await world.worker([worker()]);
    await until("the name is free", isFree);
    expect(await stored()).to.deep.equal(NOTHING);
    expect(await create()).to.not.equal(first);
  });

  it("purge removes the alarm that an agent sets while its app is purged", async () => {
    const id = await create();
    await deleteApp();
    // At the fourth check, the alarms that were there at the beginning have been cleared.
    await purge(id, async (times) => {
      if (times !== 4) return;
      expect(clearedAlarms).to.deep.equal([]);
      await world.client.call(agentAlarm, AGENT, "set", { at: 9_000_000_000_000, record: 500 });
    });
    expect(clearedAlarms).to.deep.equal([AGENT]);
  });

  it("purge leaves no mail for the next app of the name if an inbox fails", async () => {
    await create();
    const address = addressOf(agentInbox.kind, AGENT);
    const subject = mailIn(0).to(shardOf(address), address);
    const mail = world.bus.connection.subscribe(subject);
    isInboxBroken = true;
    await deleteApp();
    await world.worker([worker()]);
    await until("the name is free", isFree);
    expect(isInboxBroken).to.equal(false);
    expect(mail.getReceived()).to.equal(0);
    expect(await stored()).to.deep.equal(NOTHING);
    mail.unsubscribe();
  });

  it("a second task leaves the app that was created anew under its name", async () => {
    const id = await create();
    await deleteApp();
    await world.worker([worker()]);
    await until("the name is free", isFree);
    await create();
    const { kind, lane = "", ...task } = envelope(appPurge, KEY, "purge", { app: KEY });
    // Tasks of earlier versions have no id.
    for (const [taskId, input] of Object.entries({ one: { app: KEY }, two: { app: KEY, id } })) {
      const queue = { kind, lane, inTurns: false };
      await queueTask(world.bus, queue, { ...task, input, id: taskId, from: "test" });
    }
    await until("the tasks have ended", async () => (await world.count(STREAMS.tasks)) === 0);
    expect(await stored()).to.deep.equal(EVERYTHING);
    expect(await isFree()).to.equal(false);
  });

  it("the task of an earlier version, which has no id, removes everything too", async () => {
    await create();
    await deleteApp();
    const { kind, lane = "", ...task } = envelope(appPurge, KEY, "purge", { app: KEY });
    await world.bus.jetstream.streams.purge(STREAMS.tasks);
    const queue = { kind, lane, inTurns: false };
    await queueTask(world.bus, queue, { ...task, id: "early", from: "test" });
    await world.worker([worker()]);
    await until("the name is free", isFree);
    expect(await stored()).to.deep.equal(NOTHING);
  });

  it("a task that stood still while another worker finished it removes nothing newer", async () => {
    for (const passed of [2, 4, 6]) {
      const id = await create();
      await deleteApp();
      let checks = 0;
      const outcome = await purge(id, async (times) => {
        checks = times;
        if (times === passed) await finishAndCreate(id);
      });
      expect(outcome, `check ${passed}`).to.deep.equal({});
      expect(checks).to.equal(passed + 1);
      expect(await stored(), `check ${passed}`).to.deep.equal(EVERYTHING);
      const { id: next } = await world.client.call(app, KEY, "get", {});
      await deleteApp();
      await purge(next);
      await world.client.send(app, KEY, "purged", { id: next });
      await until("the name is free", isFree);
    }
  });

  it("a task that another worker may have clears no inbox", async () => {
    const id = await create();
    await deleteApp();
    let isSure = true;
    const standStill = async () => {
      await finishAndCreate(id);
      isSure = false;
    };
    const failed = await purge(id, standStill, () => isSure).catch(String);
    expect(failed).to.include("the task was lost");
    expect(await stored()).to.deep.equal(EVERYTHING);
  });
});

const EVERYTHING = { events: 1, records: [1, 1], bundles: 1 };
const NOTHING = { events: 0, records: [0, 0], bundles: 0 };
