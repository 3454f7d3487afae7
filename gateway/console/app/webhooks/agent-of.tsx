/** The agent whose webhooks a page shows, and the way between them. */
import { type AgentPlace, webhooksPlace } from "../apps/agent-place.ts";
import type { PageParameters } from "../lib/pages.ts";
import { Tabs } from "../parts/tabs.tsx";

export const agentOf = ({ parameters }: PageParameters): AgentPlace => ({
  app: parameters.app ?? "",
  className: parameters.className ?? "",
  name: parameters.agent ?? "",
});

export function WebhookTabs({ agent, current }: { agent: AgentPlace; current: "" | "/sent" }) {
  const base = webhooksPlace(agent);
  return (
    <Tabs
      label={`Webhooks of ${agent.name}`}
      tabs={[
        [base, "Came in"],
        [`${base}/sent`, "Sent out"],
      ]}
      current={base + current}
    />
  );
}
