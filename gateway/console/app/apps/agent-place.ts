/** The paths of an agent in the REST API and in the console. Agents' names may contain any characters. */

export interface AgentPlace {
  app: string;
  className: string;
  name: string;
}

/** A path below the account. */
export const agentPath = ({ app, className, name }: AgentPlace) =>
  `/apps/${app}/agents/${className}/${encodeURIComponent(name)}`;

export const agentPlace = ({ app, className, name }: AgentPlace) =>
  `apps/${app}/agents/${className}/${encodeURIComponent(name)}`;

export const webhooksPlace = ({ app, className, name }: AgentPlace) =>
  `webhooks/${app}/${className}/${encodeURIComponent(name)}`;
