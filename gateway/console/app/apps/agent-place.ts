/**
 * The paths of apps and agents in the REST API and in the console. The name of an agent may contain any characters.
 */

import { useParameters } from "../lib/router.ts";

export interface AgentPlace {
  app: string;
  className: string;
  name: string;
}

/** The agent in the page's path. */
export function useAgentPlace(): AgentPlace {
  const { app = "", className = "", agent: name = "" } = useParameters();
  return { app, className, name };
}

const below = ({ className, name }: AgentPlace) =>
  `${encodeURIComponent(className)}/${encodeURIComponent(name)}`;

/** The path of an app. It is the same below the account in the REST API and in the console. */
export const appPath = (app: string) => `/apps/${encodeURIComponent(app)}`;

/** A path below the account. */
export const agentPath = (place: AgentPlace) => `${appPath(place.app)}/agents/${below(place)}`;

export const agentPlace = (place: AgentPlace) => agentPath(place).slice(1);

export const webhooksPlace = (place: AgentPlace) =>
  `webhooks/${encodeURIComponent(place.app)}/${below(place)}`;

const TABS = [
  ["", "Versions"],
  ["/agents", "Agents"],
  ["/log", "Log"],
  ["/secrets", "Secrets"],
] as const;

/** The heading and tabs that all pages of an app share. */
export const appFrame = (app: string, current: (typeof TABS)[number][0]) => ({
  title: app,
  above: ["Apps and agents", "apps"] as const,
  tabs: {
    label: `App ${app}`,
    pages: TABS.map(([tab, name]) => [`apps/${app}${tab}`, name] as const),
    current: `apps/${app}${current}`,
  },
});
