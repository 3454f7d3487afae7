/**
 * A list of an app's agents. Each name links to the agent's page, and its button to the agent's deliveries; or the
 * other way round.
 */
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { useAccount } from "../lib/account.tsx";
import { queryOf } from "../lib/query.ts";
import { Link } from "../lib/router.tsx";
import { useRest } from "../lib/use-rest.ts";
import type { WireAgentEntry } from "../lib/wire.ts";
import { List } from "../parts/list.tsx";
import { agentPlace, webhooksPlace } from "./agent-place.ts";

const REFRESH_MS = 15_000;

interface AgentsProps {
  app: string;
  className?: string;
  contains?: string;
  /** The names lead to deliveries, and the buttons to agents. */
  isOfWebhooks?: true;
  empty: ComponentChildren;
}

export function AgentsList({ app, className, contains, isOfWebhooks, empty }: AgentsProps) {
  const { restPath, placeOf } = useAccount();
  const [page, setPage] = useState(1);
  const query = queryOf({ page: String(page), class_name: className, contains });
  const agents = useRest<WireAgentEntry[]>(restPath(`/apps/${app}/agents${query}`), {
    everyMs: REFRESH_MS,
  });
  const places = isOfWebhooks ? [webhooksPlace, agentPlace] : [agentPlace, webhooksPlace];
  const [main, other] = places.map(
    (place) => (one: WireAgentEntry) =>
      placeOf(place({ app, className: one.class_name, name: one.name })),
  ) as [(one: WireAgentEntry) => string, (one: WireAgentEntry) => string];
  return (
    <List
      reading={agents}
      label="Agents"
      noun="agent"
      keyOf={(one) => `${one.class_name} ${one.name}`}
      onPage={setPage}
      empty={empty}
      columns={[
        {
          name: isOfWebhooks ? "Deliveries of" : "Name",
          cell: (one) => <Link to={main(one)}>{one.name}</Link>,
        },
        { name: "Class", cell: ({ class_name: of }) => <code>{of}</code> },
      ]}
      actions={(one) => (
        <Link class="button small second" to={other(one)}>
          {isOfWebhooks ? "State" : "Deliveries"}
        </Link>
      )}
    />
  );
}
