/**
 * The bundle of an app for tests of agent hosts. The app counts events, and misbehaves when the request's path says
 * so, for example `spin` or `fail`.
 */

export const AGENT_APP = `
import { Agent, getAgentByName, routeAgentRequest } from "trunkline/agents";
export class Counter extends Agent {
  initialState = { count: 0 };
  onStart() { this.sql\`CREATE TABLE IF NOT EXISTS events (id TEXT PRIMARY KEY, times INTEGER)\`; }
  async onRequest(request) {
    const url = new URL(request.url);
    const what = url.pathname.split("/").at(-1);
    if (what === "event") {
      const { id } = await request.json();
      this.sql\`INSERT INTO events VALUES (\${id}, 1) ON CONFLICT (id) DO UPDATE SET times = times + 1\`;
      this.setState({ count: this.state.count + 1 });
    }
    if (what === "spin") for (;;);
    if (what === "eat") { const all = []; for (;;) { all.push(Buffer.alloc(8_000_000, 1)); await 0; } }
    if (what === "fail") throw new Error("failed as asked");
    if (what === "fetch") {
      const { url: target, ...init } = await request.json();
      try {
        const answer = await fetch(target, init);
        return Response.json({ status: answer.status, url: answer.url, text: await answer.text() });
      } catch (error) {
        return Response.json({ error: error.message, cause: error.cause?.message });
      }
    }
    if (what === "invoke") {
      const other = await getAgentByName(this.env.Counter, "other");
      const asked = await other.fetch(new Request("http://app/large"));
      let thrown = "";
      try { await other.refuse(); } catch (error) { thrown = error.message; }
      return Response.json({ sum: await other.add(2, 3), bytes: (await asked.text()).length, thrown });
    }
    if (what === "large") return new Response("x".repeat(2_000_000));
    if (what === "echo") return new Response(await request.bytes());
    if (what === "later") {
      await this.schedule(Number(url.searchParams.get("s")), "ring", { id: "rung" });
      return new Response("set");
    }
    if (what === "say") this.broadcast(await request.text());
    const events = this.sql\`SELECT id, times FROM events ORDER BY id\`;
    return Response.json({ count: this.state.count, events, env: { greeting: this.env.GREETING, secret: this.env.SECRET } });
  }
  async ring({ id }) { this.sql\`INSERT INTO events VALUES (\${id}, 1)\`; this.setState({ count: this.state.count + 1 }); }
  add(a, b) { return a + b; }
  refuse() { throw new Error("refused as asked"); }
}
export default {
  async fetch(request, env) {
    const url = new URL(request.url);
    if (url.pathname === "/version") return new Response("version " + env.GREETING);
    if (url.pathname === "/slow") await new Promise((resolve) => setTimeout(resolve, 500));
    return (await routeAgentRequest(request, env)) ?? new Response("not here", { status: 404 });
  },
};
`;

export const AGENT_APP_CONFIG = {
  agents: [{ binding: "Counter", class_name: "Counter" }],
  vars: { GREETING: "hello" },
};
