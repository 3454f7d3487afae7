import { join } from "node:path";
import { expect } from "chai";
import { declareStreams } from "../../../deploy/streams.ts";
import { agent } from "../../../schemas/apps/agent.ts";
import { agentInbox } from "../../../schemas/apps/agent-inbox.ts";
import { webhookPost } from "../../../schemas/apps/outgoing-webhook.ts";
import { FIRST_LAYOUT } from "../../../schemas/data-layout.ts";
import { ActorProcess } from "../../../scripts/testing/actor-process.ts";
import { startNats } from "../../../scripts/testing/nats-server.ts";
import { until } from "../../../scripts/testing/until.ts";
import { Bus } from "../../runtime/bus/bus.ts";
import { BusActorClient } from "../../runtime/calls/actor-client.ts";
import { systemClock as clock } from "../../runtime/lib/clock.ts";
import { eventOf } from "./testing/inbox.ts";

const MAIN = join(import.meta.dirname, "testing", "inbox-process-main.ts");
const AGENTS = 4;
const EVENTS = 60;
const KILL_AT = [15, 35];

describe("agent-inbox on the bus", () => {
  it("receive() that was answered is with the agent once and in order, though hosts are killed meanwhile", async function () {
    this.timeout(120_000);
    const nats = await startNats();
    const bus = await Bus.connect({ url: nats.url, name: "client" });
    const running: ActorProcess[] = [];
    const start = async (name: string) => {
      const program = { main: MAIN, parameters: [] };
      const host = new ActorProcess({ url: nats.url, name, program });
      running.push(host);
      await host.ready;
    };
    try {
      await declareStreams(bus.jetstream, {
        replicas: 1,
        layout: FIRST_LAYOUT,
        tasks: [webhookPost],
      });
      await Promise.all([start("one"), start("two")]);
      const actors = new BusActorClient(bus, clock);
      const keys = Array.from({ length: AGENTS }, (_, i) => `${"a".repeat(32)}.hooks.A.agent-${i}`);
      const nameOf = (index: number) => `event ${index}`;
      let reached = 0;
      const storms = keys.map(async (key) => {
        for (let index = 0; index < EVENTS; index++) {
          reached = Math.max(reached, index);
          const event = eventOf(nameOf(index));
          const options = { deadlineMs: 60_000 };
          const first = await actors.call(agentInbox, key, "receive", event, options);
          expect(first).to.include({ isNew: true, number: index + 1 });
          // The sender did not receive the answer and repeats the event.
          if (index % 5 !== 0) continue;
          const repeat = await actors.call(agentInbox, key, "receive", event, options);
          expect(repeat).to.include({ isNew: false, number: index + 1 });
        }
      });
      const kills = (async () => {
        for (const [index, at] of KILL_AT.entries()) {
          await until(`event ${at}`, () => reached >= at, 60_000);
          await running[index]?.kill();
          await start(`next-${index}`);
        }
      })();
      await Promise.all([...storms, kills]);
      const expected = Array.from({ length: EVENTS }, (_, index) =>
        JSON.stringify({ eventId: nameOf(index) }),
      );
      for (const key of keys) {
        const got = await until(
          `${key} has all`,
          async () => {
            const { result } = await actors.call(agent, key, "invoke", { method: "", args: "" });
            const bodies: string[] = JSON.parse(result);
            return bodies.length >= EVENTS && bodies;
          },
          30_000,
        );
        expect(got).to.deep.equal(expected);
        const settled = await until(
          `${key} has settled`,
          async () => {
            const listed = await actors.call(agentInbox, key, "list", { limit: 100 });
            return listed.waiting === 0 && listed;
          },
          30_000,
        );
        expect(settled.deliveries).to.have.length(EVENTS);
        expect(settled.deliveries.every(({ status }) => status === "delivered")).to.equal(true);
      }
    } finally {
      await Promise.all(running.map((host) => host.kill()));
      await bus.close();
      await nats.stop();
    }
  });
});
