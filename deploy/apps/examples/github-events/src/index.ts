/**
 * Receives events of GitHub. One agent per repository stores events in its table, and a page shows them when they
 * arrive.
 */
import { Agent, type AgentNamespace, getAgentByName, routeAgentRequest } from "trunkline/agents";
import { PAGE } from "./page.ts";

interface Env {
  readonly Repository: AgentNamespace<Repository>;
  readonly Overview: AgentNamespace<Overview>;
}

export interface RepositoryState {
  repository: string;
  events: number;
  /** The newest first. */
  latest: { id: string; type: string; text: string; at: string }[];
}

const LATEST = 20;

interface GitHubEvent {
  action?: string;
  ref?: string;
  commits?: unknown[];
  repository: { full_name: string };
  sender?: { login: string };
}

export class Repository extends Agent<Env, RepositoryState> {
  override initialState: RepositoryState = { repository: "", events: 0, latest: [] };

  override onStart(): void {
    this.sql`CREATE TABLE IF NOT EXISTS events (
      number INTEGER PRIMARY KEY, id TEXT UNIQUE, type TEXT, text TEXT, at TEXT, body TEXT)`;
  }

  /** Watching clients change nothing. */
  override shouldConnectionBeReadonly(): boolean {
    return true;
  }

  override async onRequest(request: Request): Promise<Response> {
    if (request.headers.get("x-trunkline-event-source") !== "github") {
      return Response.json(this.state);
    }
    const id = request.headers.get("x-trunkline-event-id") ?? "";
    const type = request.headers.get("x-trunkline-event-type") ?? "";
    const body = await request.text();
    const event = JSON.parse(body) as GitHubEvent;
    const repository = event.repository.full_name;
    // An event that is replayed from the delivery log is in the table already.
    this.sql`INSERT INTO events (id, type, text, at, body)
      VALUES (${id}, ${type}, ${wordsOf(type, event)}, ${new Date().toISOString()}, ${body})
      ON CONFLICT (id) DO NOTHING`;
    const [{ events } = { events: 0 }] = this.sql<{ events: number }>`
      SELECT count(*) AS events FROM events`;
    const latest = this.sql<RepositoryState["latest"][number]>`
      SELECT id, type, text, at FROM events ORDER BY number DESC LIMIT ${LATEST}`;
    this.setState({ repository, events, latest });
    const overview = await getAgentByName(this.env.Overview, "all");
    await overview.counted(this.name, { repository, events });
    return new Response(null, { status: 204 });
  }
}

export interface OverviewState {
  repositories: Record<string, { repository: string; events: number }>;
}

export class Overview extends Agent<Env, OverviewState> {
  override initialState: OverviewState = { repositories: {} };

  /** Stores the count of a repository. A repeated call with the same count changes nothing. */
  counted(name: string, counted: { repository: string; events: number }): void {
    const { repositories } = this.state;
    if ((repositories[name]?.events ?? 0) >= counted.events) return;
    this.setState({ repositories: { ...repositories, [name]: counted } });
  }

  override shouldConnectionBeReadonly(): boolean {
    return true;
  }
}

function wordsOf(type: string, { action, ref, commits, sender }: GitHubEvent): string {
  const what = type === "push" ? `${commits?.length ?? 0} commits to ${ref}` : (action ?? type);
  return sender ? `${what}, by ${sender.login}` : what;
}

export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    const { pathname } = new URL(request.url);
    if (pathname === "/") {
      return new Response(PAGE, { headers: { "content-type": "text/html; charset=utf-8" } });
    }
    // Sockets can only read the agents. Data arrives by signed webhooks.
    const routed = isSocket(request) ? await routeAgentRequest(request, env) : null;
    return routed ?? new Response("Not found", { status: 404 });
  },
};

const isSocket = (request: Request) =>
  request.headers.get("upgrade")?.toLowerCase() === "websocket";
