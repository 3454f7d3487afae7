/**
 * Agents: user code for one entity each. An agent runs on one host at a time. A host that ran the
 * agent before cannot write to the log of its database.
 */
import { agent } from "../../../schemas/apps/agent.ts";
import { agentInbox } from "../../../schemas/apps/agent-inbox.ts";
import { appKey, isAddress, readAgentKey } from "../../../schemas/apps/app-names.ts";
import type { AgentLimits } from "../../../schemas/apps/app-usage.ts";
import { AGENT_IDLE_MS } from "../../../schemas/apps/limits.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { defineHosted, type HostedDefinition } from "../../runtime/kinds/define-hosted.ts";
import { lineOf } from "../lib/app-process/process-error.ts";
import { AgentInstance, type AgentMessages } from "./agent-instance.ts";
import { AgentLog, type AgentLogParts } from "./agent-log.ts";
import type { AgentParts } from "./agent-parts.ts";
import { AgentRoom } from "./agent-room.ts";
import { answerDeliveries } from "./delivered.ts";

type AgentKindParts = AgentParts &
  AgentLogParts & {
    /** Limits of the agents of one account. */
    limits: AgentLimits;
  };

export function agentKind(parts: AgentKindParts): HostedDefinition<AgentMessages> {
  return defineHosted({
    contract: agent,
    idleMs: parts.idleMs ?? AGENT_IDLE_MS,
    async open(key, context) {
      const address = readAgentKey(key);
      if (!address) {
        const text = "Cannot open the agent: expected <account>.<app>.<class>.<name> as its key";
        throw new ActorError("invalid_request", text);
      }
      if (!isAddress(key)) {
        throw new ActorError("invalid_request", "Cannot open the agent: its name is too long");
      }
      const app = appKey(address.accountId, address.app);
      const running = await parts.processes.of(app);
      if (!running.process.exported.classes.includes(address.className)) {
        const text = `Cannot open the agent: the app has no class "${address.className}"`;
        throw new ActorError("not_found", text);
      }
      const { accountId } = address;
      const { id: appId } = running.process.serving;
      const room = new AgentRoom(parts.actors, parts.limits, { key, accountId, appId });
      const loaded = await AgentLog.open(parts, { key, app, room });
      const opening = AgentInstance.open(parts, { key, address }, { running, loaded, context });
      return opening.catch(async (error: unknown) => {
        await loaded.log.leave();
        throw error;
      });
    },
    async refused(key, { message }, error) {
      // Needs no dead letter, because the alarm repeats until the agent has handled it.
      if (message === "wake") return true;
      if (message !== "deliver") return false;
      const { deliveries } = await parts.actors.call(agentInbox, key, "current", {});
      const [delivery] = deliveries;
      const isRefusal = error instanceof ActorError;
      const outcome = { error: isRefusal ? lineOf(error) : "The platform failed to deliver it" };
      // Only the first delivery gets a result. The inbox offers the other deliveries of the round again.
      if (delivery) await answerDeliveries(parts.actors, key, delivery, [outcome]);
      return isRefusal;
    },
  });
}
