/**
 * A process that hosts inboxes, and agents that remember what they were given: `node inbox-process-main.ts <url>
 * <name>`. Prints "ready" when every shard has an owner.
 */
import { once } from "node:events";
import pino from "pino";
import { z } from "zod";
import { defineContract } from "../../../../schemas/contract.ts";
import { ActorHost } from "../../../runtime/actor-host.ts";
import { Bus } from "../../../runtime/bus/bus.ts";
import { BusActorClient } from "../../../runtime/calls/actor-client.ts";
import { defineActor } from "../../../runtime/kinds/define-actor.ts";
import { systemClock as clock } from "../../../runtime/lib/clock.ts";
import { ServiceCounts } from "../../../runtime/observe/service-counts.ts";
import { agentInboxActor } from "../agent-inbox.ts";
import { answeringAgent } from "./answering-agent.ts";

const READY_POLL_MS = 5;
/** The events that an agent has received; stands in for its database. */
const Memory = z.object({ ids: z.array(z.string()), bodies: z.array(z.string()) });
const memory = defineContract({
  kind: "memory",
  messages: {
    keep: { input: z.object({ id: z.string(), body: z.string() }), reply: z.object({}) },
    get: { input: z.object({}), reply: Memory },
  },
});
/** The agent ignores an event whose id it has already received. */
const memoryActor = defineActor(memory, {
  state: Memory,
  initial: { ids: [], bodies: [] },
  handlers: {
    keep: (state, { id, body }) => {
      if (state.ids.includes(id)) return { state, reply: {} };
      return { state: { ids: [...state.ids, id], bodies: [...state.bodies, body] }, reply: {} };
    },
    get: (state) => ({ state, reply: state }),
  },
});

const [url = "", hostName = ""] = process.argv.slice(2);
const asked = once(process, "SIGTERM");
const bus = await Bus.connect({ url, name: hostName });
const actors = new BusActorClient(bus, clock);
const rememberingAgent = answeringAgent(actors, {
  async answer(key, { id, request: { body } }) {
    const text = body && "text" in body ? body.text : "";
    await actors.call(memory, key, "keep", { id, body: text });
    return 200;
  },
  invoke: async (key) => JSON.stringify((await actors.call(memory, key, "get", {})).bodies),
});
const host = new ActorHost({
  ...{ bus, clock, hostName, buckets: 1 },
  definitions: [agentInboxActor, memoryActor],
  hosted: [rememberingAgent],
  logger: pino({ level: "debug" }, pino.destination({ dest: 2, sync: true })),
  counts: new ServiceCounts(new Map()),
});
await host.start();
void (async () => {
  while (!host.placement.isComplete) await clock.wait(READY_POLL_MS);
  console.log("ready");
})();
await asked;
await host.stop();
await bus.close();
process.exit();
