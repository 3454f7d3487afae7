/** An agent without an app: handles the deliveries of its inbox as the host of a real agent does. */
import { type AgentDelivery, agent } from "../../../../schemas/apps/agent.ts";
import { agentInbox } from "../../../../schemas/apps/agent-inbox.ts";
import { ActorError } from "../../../../schemas/errors.ts";
import type { ActorClient } from "../../../runtime/calls/actor-client.ts";
import { type AnyHostedDefinition, defineHosted } from "../../../runtime/kinds/define-hosted.ts";

/** Number of deliveries of one round that the agent handles. The inbox must offer the rest again. */
const TAKEN_MAX = 3;
/** After this number of rounds, the inbox must send another mail for the remaining deliveries. */
const ROUNDS_MAX = 4;
const IDLE_MS = 60_000;

export interface AnsweringAgent {
  /** Returns the status with which the agent answers a delivery. */
  answer(key: string, delivery: AgentDelivery): number | Promise<number>;
  /** Returns the agent's answer to an `invoke`. */
  invoke?(key: string): Promise<string>;
}

export function answeringAgent(
  actors: Pick<ActorClient, "call">,
  { answer, invoke }: AnsweringAgent,
): AnyHostedDefinition {
  return defineHosted({
    contract: agent,
    idleMs: IDLE_MS,
    open: async (key) => ({
      isBusy: false,
      close: async () => {},
      async receive({ message }) {
        if (message === "deliver") return deliver(key);
        if (message === "invoke" && invoke) return { result: await invoke(key) };
        throw new ActorError("invalid_request", `Cannot handle ${message}`);
      },
    }),
  });

  async function deliver(key: string): Promise<void> {
    for (let round = 1; ; round++) {
      const { deliveries } = await actors.call(agentInbox, key, "current", {});
      const statuses: number[] = [];
      for (const delivery of deliveries.slice(0, TAKEN_MAX)) {
        statuses.push(await answer(key, delivery));
      }
      const [first] = deliveries;
      if (!first) return;
      const [status, ...next] = statuses.map((one) => ({ status: one }));
      const { id, attempt } = first;
      const told = { id, attempt, ...status, next, takesNext: round < ROUNDS_MAX };
      const { hasNext } = await actors.call(agentInbox, key, "settle", told);
      if (!hasNext) return;
    }
  }
}
