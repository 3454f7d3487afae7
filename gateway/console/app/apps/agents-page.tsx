/** The agents of one app. */
import { useAccount } from "../lib/account.tsx";
import { useParameters } from "../lib/router.ts";
import { useRest } from "../lib/use-rest.ts";
import type { WireAgentEntry, WireApp } from "../lib/wire.ts";
import type { Choice } from "../parts/form.tsx";
import { ButtonLink, Link } from "../parts/link.tsx";
import { ListCard, type ListOf, useList } from "../parts/list.tsx";
import { Page } from "../parts/page.tsx";
import { agentPlace, appFrame, appPath, webhooksPlace } from "./agent-place.ts";

export function AgentsPage() {
  const { app = "" } = useParameters();
  const { restPath } = useAccount();
  const found = useRest<WireApp>(restPath(appPath(app)));
  const classes = found.value?.config?.agents ?? [];
  const agents = useAgents(app, { contains: "", class_name: "" });
  return (
    <Page {...appFrame(app, "/agents")} request={agents}>
      <AgentsList
        app={app}
        list={agents}
        filters={[
          { name: "contains", label: "Name contains", type: "search" },
          {
            ...{ name: "class_name", label: "Class" },
            options: [
              ["", "All classes"],
              ...classes.map(({ class_name: name }): Choice => [name, name]),
            ],
          },
        ]}
        empty={["There is no agent yet", "The first message to a name creates its agent."]}
        none={["No agent fits", "Change the name or the class."]}
      />
    </Page>
  );
}

export const useAgents = (app: string, filters?: Record<string, string>) =>
  useList<WireAgentEntry>(useAccount().restPath(`${appPath(app)}/agents`), {
    everyMs: 15_000,
    ...(filters && { filters }),
  });

type AgentsProps = Pick<
  Parameters<typeof ListCard<WireAgentEntry>>[0],
  "title" | "filters" | "empty" | "none"
> & {
  app: string;
  list: ListOf<WireAgentEntry>;
  /** If true, the names link to deliveries, and the buttons link to agents. */
  isOfWebhooks?: true;
};

/**
 * A list of an app's agents. The name of each agent links to the agent's page, and a button links to the agent's
 * deliveries. With `isOfWebhooks`, the two links are exchanged.
 */
export function AgentsList({ app, isOfWebhooks, ...list }: AgentsProps) {
  const placeOf = ({ class_name: className, name }: WireAgentEntry) => ({ app, className, name });
  const [main, other] = isOfWebhooks ? [webhooksPlace, agentPlace] : [agentPlace, webhooksPlace];
  return (
    <ListCard
      {...list}
      label="Agents"
      noun="agent"
      keyOf={(one) => `${one.class_name} ${one.name}`}
      columns={{
        [isOfWebhooks ? "Deliveries of" : "Name"]: (one) => (
          <Link to={main(placeOf(one))}>{one.name}</Link>
        ),
        Class: ({ class_name: of }) => <code>{of}</code>,
      }}
      actions={(one) => (
        <ButtonLink to={other(placeOf(one))}>{isOfWebhooks ? "State" : "Deliveries"}</ButtonLink>
      )}
    />
  );
}
