/**
 * The code of the measured app. It handles webhooks as a typical app does, and sends the same frames as the
 * references.
 */

export const BENCH_SECRET = "secret of the benchmark";
export const ENTITIES = 50;
/** The frame that a broadcast sends to each socket. */
export const FRAME = JSON.stringify({ type: "measured", text: "x".repeat(200) });

export const BENCH_CODE = `
import { createHmac, timingSafeEqual } from "node:crypto";
import { Agent, getAgentByName, routeAgentRequest } from "trunkline/agents";

export class Repo extends Agent {
  initialState = { count: 0, last: null };
  onStart() {
    this.sql\`CREATE TABLE IF NOT EXISTS events (id TEXT PRIMARY KEY, body TEXT)\`;
  }
  async onRequest(request) {
    if (request.method === "GET") return Response.json(this.state);
    const id = request.headers.get("x-github-delivery");
    const body = await request.text();
    this.sql\`INSERT OR IGNORE INTO events VALUES (\${id}, \${body})\`;
    this.setState({ count: this.state.count + 1, last: id });
    return new Response("OK");
  }
}

export class Room extends Agent {
  initialState = {};
  onRequest() {
    this.broadcast(${JSON.stringify(FRAME)});
    return new Response("OK");
  }
}

export default {
  async fetch(request, env) {
    if (new URL(request.url).pathname !== "/by-code") {
      return (await routeAgentRequest(request, env)) ?? new Response("not here", { status: 404 });
    }
    const body = await request.clone().text();
    const signed = Buffer.from(request.headers.get("x-hub-signature-256") ?? "");
    const wanted = Buffer.from("sha256=" + createHmac("sha256", env.HOOK).update(body).digest("hex"));
    if (signed.length !== wanted.length || !timingSafeEqual(signed, wanted)) {
      return new Response("not signed", { status: 401 });
    }
    const agent = await getAgentByName(env.Repo, JSON.parse(body).repository.full_name);
    return agent.fetch(request);
  },
};
`;

export const BENCH_CONFIG = {
  name: "bench",
  compatibility_date: "2026-11-20",
  agents: [
    { binding: "Repo", class_name: "Repo" },
    { binding: "Room", class_name: "Room" },
  ],
  webhooks: [
    {
      path: "/declared",
      provider: "github",
      secret: "HOOK",
      agent: "Repo",
      entity: { body: "/repository/full_name" },
    },
  ],
};
