/**
 * A process that hosts inboxes, and agents that remember what they were given: `node inbox-process-main.ts <url> <name>`.
 * Prints "ready" when every shard has an owner.
 */
import { once } from "node:events";
import pino from "pino";
import { z } from "zod";
import { type AgentDelivery, agent } from "../../../schemas/agent.ts";
import { agentInbox } from "../../../schemas/agent-inbox.ts";
import { envelope } from "../../../schemas/contract.ts";
import { ActorHost } from "../../runtime/actor-host.ts";
import { Bus } from "../../runtime/bus.ts";
import { systemClock as clock } from "../../runtime/clock.ts";
import type { AnyActorDefinition } from "../../runtime/define-actor.ts";
import { ServiceCounts } from "../../runtime/service-counts.ts";
import { agentInboxActor } from "../agent-inbox.ts";

const READY_POLL_MS = 5;
/** Of what comes together: the rest is to come again. */
const TAKEN_MAX = 3;
const State = z.object({ deliveries: z.array(z.string()), bodies: z.array(z.string()) });
type State = z.infer<typeof State>;

/** As an agent does: what it has had under an id it answers again. Of `invoke` it answers with what it was given. */
const rememberingAgent = {
  ...{ contract: agent, state: State, initial: { deliveries: [], bodies: [] }, durable: true },
  handlers: {
    deliver(
      state: State,
      { delivery, next = [] }: { delivery: AgentDelivery; next?: AgentDelivery[] },
      { key }: { key: string },
    ) {
      const { id, attempt } = delivery;
      const taken = [delivery, ...next].slice(0, TAKEN_MAX);
      const added = taken.filter((one) => !state.deliveries.includes(one.id));
      const bodies = added.map(({ request: { body } }) =>
        body && "text" in body ? body.text : "",
      );
      const [first, ...others] = taken.map(() => ({ status: 200 }));
      return {
        state: {
          deliveries: [...state.deliveries, ...added.map((one) => one.id)],
          bodies: [...state.bodies, ...bodies],
        },
        send: [envelope(agentInbox, key, "delivered", { id, attempt, ...first, next: others })],
      };
    },
    invoke: (state: State) => ({ state, reply: { result: JSON.stringify(state.bodies) } }),
  },
} as unknown as AnyActorDefinition;

const [url = "", hostName = ""] = process.argv.slice(2);
const asked = once(process, "SIGTERM");
const bus = await Bus.connect({ url, name: hostName });
const host = new ActorHost({
  ...{ bus, clock, hostName, replicas: 1, buckets: 1 },
  definitions: [agentInboxActor, rememberingAgent],
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
