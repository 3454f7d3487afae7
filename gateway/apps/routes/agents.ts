/** The routes that show an app's agents: list them, show one agent's state, and read rows of its tables. */
import type { z } from "zod";
import type { ActorClient } from "../../../actors/runtime/calls/actor-client.ts";
import { agent } from "../../../schemas/apps/agent.ts";
import type { AgentWork } from "../../../schemas/apps/agent-inspection.ts";
import { app } from "../../../schemas/apps/app.ts";
import { agentKey, appKey, readAgentKey } from "../../../schemas/apps/app-names.ts";
import {
  AgentsQuery,
  CallAgent,
  QueryAgent,
  WireAgent,
  WireAgentEntry,
  type WireAgentWork,
  WireCallResult,
  WireQueryRows,
} from "../../../schemas/apps/http/agents.ts";
import { AppPath } from "../../../schemas/apps/http/apps.ts";
import { AgentPath } from "../../../schemas/apps/http/deliveries.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { nothing } from "../../../schemas/http/nothing.ts";
import { CALL_DEADLINE_MS_MAX, JSON_BODY_BYTES_MAX } from "../../../schemas/limits.ts";
import { pageOf } from "../../http/listing.ts";
import { defineRoute, type Route, type RouteRequest } from "../../http/route.ts";
import { APPS_TAG } from "./apps.ts";

const AGENTS = "/accounts/{account_id}/apps/{app}/agents";
const AGENT = `${AGENTS}/{class_name}/{agent}`;

/** Knows which agents have a log. */
export interface AgentKeys {
  /** Returns the keys of an app's agents, or only of those of one class, in any order. */
  beneath(app: string, className?: string): Promise<string[]>;
  has(key: string): Promise<boolean>;
}

interface AgentRouteParts {
  actors: ActorClient;
  agents: AgentKeys;
}

const LIST_AGENTS = {
  tag: APPS_TAG,
  permissions: ["apps.read"],
  method: "get",
  path: AGENTS,
  id: "listAgents",
  summary:
    "List an app's agents by class and name: those that store something, and those in memory",
  parameters: AppPath,
  query: AgentsQuery,
  answer: { result: WireAgentEntry.array(), paged: "numbers" },
} as const;

const GET_AGENT = {
  tag: APPS_TAG,
  permissions: ["apps.read"],
  method: "get",
  path: AGENT,
  id: "getAgent",
  summary: "Get an agent's state, tables, timers, queue and connections",
  parameters: AgentPath,
  query: nothing,
  refusals: ["app_failed", "busy"],
  answer: { result: WireAgent },
} as const;

const QUERY_AGENT = {
  tag: APPS_TAG,
  permissions: ["apps.write"],
  method: "post",
  path: `${AGENT}/query`,
  id: "queryAgent",
  summary: "Query an agent's tables by SQL; the agent waits meanwhile",
  parameters: AgentPath,
  query: nothing,
  body: { schema: QueryAgent, bytesMax: JSON_BODY_BYTES_MAX },
  refusals: ["app_failed", "busy"],
  answer: { result: WireQueryRows },
} as const;

const CALL_AGENT = {
  tag: APPS_TAG,
  permissions: ["apps.write"],
  method: "post",
  path: `${AGENT}/call`,
  id: "callAgent",
  summary: "Call a public method of an agent, as the app's code does",
  parameters: AgentPath,
  query: nothing,
  body: { schema: CallAgent, bytesMax: JSON_BODY_BYTES_MAX },
  refusals: ["app_failed", "may_have_run", "object_too_large", "busy"],
  answer: { result: WireCallResult },
} as const;

/** The REST routes of an app's agents. */
export function agentRoutes(parts: AgentRouteParts): Route[] {
  return [
    defineRoute({ ...LIST_AGENTS, handle: listAgents(parts) }),
    defineRoute({ ...GET_AGENT, handle: getAgent(parts) }),
    defineRoute({ ...QUERY_AGENT, handle: queryAgent(parts) }),
    defineRoute({ ...CALL_AGENT, handle: callAgent(parts) }),
  ];
}

function listAgents({ actors, agents }: AgentRouteParts) {
  return async ({
    caller,
    parameters,
    query,
  }: RouteRequest<z.output<typeof AppPath>, AgentsQuery>) => {
    const of = appKey(caller.accountId, parameters.app);
    await actors.call(app, of, "get", {});
    const { class_name: className, contains = "" } = query;
    const entries = (await agents.beneath(of, className))
      .toSorted()
      .flatMap((key) => readAgentKey(key) ?? [])
      .filter(({ name }) => name.includes(contains))
      .map((found) => ({ class_name: found.className, name: found.name }));
    return pageOf(entries, { ...query, direction: "asc" });
  };
}

function getAgent(parts: AgentRouteParts) {
  return async ({ parameters }: RouteRequest<AgentPath>) => {
    const key = await keyOf(parts, parameters);
    const found = await parts.actors.call(agent, key, "inspect", {});
    const { state, nextWakeAt } = found;
    return {
      result: {
        class_name: parameters.class_name,
        name: parameters.agent,
        version: found.version,
        database_bytes: found.databaseBytes,
        connections: found.connections,
        next_wake_on: timeOrNull(nextWakeAt),
        state: state === undefined ? null : readJson(state),
        state_chars: found.stateChars ?? 0,
        tables: found.tables ?? [],
        timers: (found.timers ?? []).map(wireWork),
        queue: (found.queue ?? []).map(wireWork),
      },
    };
  };
}

function queryAgent(parts: AgentRouteParts) {
  return async ({ parameters, body: { sql } }: RouteRequest<AgentPath, unknown, QueryAgent>) => {
    const key = await keyOf(parts, parameters);
    const { columns, rows, isCut } = await parts.actors.call(agent, key, "query", { sql });
    return { result: { columns, rows, is_cut: isCut } };
  };
}

function callAgent(parts: AgentRouteParts) {
  return async ({ parameters, body, signal }: RouteRequest<AgentPath, unknown, CallAgent>) => {
    const key = await keyOf(parts, parameters);
    const args = Buffer.from(JSON.stringify(body.arguments)).toString("base64");
    const asked = { method: body.method, args, isJson: true };
    const { result } = await parts.actors.call(agent, key, "invoke", asked, {
      ...{ signal, deadlineMs: CALL_DEADLINE_MS_MAX },
    });
    return { result: { result: readJson(Buffer.from(result, "base64").toString()) } };
  };
}

/** Returns the key of an agent. Refuses an agent without a log, because a call to it would create it. */
async function keyOf(
  { actors, agents }: AgentRouteParts,
  { account_id: accountId, app: name, class_name: className, agent: agentName }: AgentPath,
): Promise<string> {
  await actors.call(app, appKey(accountId, name), "get", {});
  const key = agentKey({ accountId, app: name, className, name: agentName });
  if (await agents.has(key)) return key;
  const text = `Cannot show the agent: class ${className} has no agent named "${agentName}"`;
  throw new ActorError("not_found", text);
}

/** Parses JSON from an app's process. The app could write any text, so it may be invalid. */
function readJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

const timeOrNull = (at: number | undefined) =>
  at === undefined ? null : new Date(at).toISOString();

const wireWork = (work: AgentWork): z.input<typeof WireAgentWork> => ({
  id: work.id,
  method: work.method,
  type: work.type,
  due_on: timeOrNull(work.dueAt),
  attempts: work.attempts,
  error: work.error ?? null,
});
