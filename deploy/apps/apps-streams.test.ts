/**
 * Tests streamed responses of apps: the client receives each part when the app writes it, and each side notices when
 * the other stops.
 */

import { expect } from "chai";
import { APP_DRAIN_MS } from "../../actors/apps/agent/until-at-rest.ts";
import { AppPlatform } from "../../scripts/testing/app-platform.ts";
import { until } from "../../scripts/testing/until.ts";

const BUNDLE = `
import { Agent, routeAgentRequest } from "trunkline/agents";

export class Teller extends Agent {
  initialState = { left: 0 };
  told = [];
  wake = () => {};
  goOn = () => {};
  slow = 0;
  async onRequest(request) {
    const { pathname, searchParams } = new URL(request.url);
    if (pathname.endsWith("/left")) return Response.json(this.state.left);
    if (pathname.endsWith("/slow-ones")) return Response.json(this.slow);
    if (pathname.endsWith("/go-on")) { this.goOn(); return Response.json(true); }
    if (pathname.endsWith("/slow")) {
      this.slow += 1;
      await new Promise((resolve) => { this.goOn = resolve; });
    }
    // Reads the body, because the process keeps an unread body until the end of the body's request.
    if (pathname.endsWith("/takes")) await request.arrayBuffer();
    else if (request.method === "POST") {
      this.told.push(searchParams.get("text"));
      this.wake();
      return new Response("said");
    }
    const events = new ReadableStream({
      pull: async (controller) => {
        while (this.told.length === 0) await new Promise((resolve) => { this.wake = resolve; });
        const text = this.told.shift();
        if (text === "throw") throw new Error("inside of the app");
        if (text === "end") controller.close();
        else controller.enqueue(new TextEncoder().encode("data: " + text + "\\n\\n"));
      },
      cancel: () => this.setState({ left: this.state.left + 1 }),
    });
    return new Response(events, { headers: { "content-type": "text/event-stream" } });
  }
}
export default {
  async fetch(request, env) {
    return (await routeAgentRequest(request, env)) ?? new Response("not here", { status: 404 });
  },
};
`;

describe("streaming responses of apps", function () {
  this.timeout(600_000);
  let platform: AppPlatform;
  let url: string;
  let agents = 0;
  before(async () => {
    platform = await AppPlatform.start();
    const agents = [{ binding: "Teller", class_name: "Teller" }];
    const { body } = await platform.deploy("tells", BUNDLE, { agents });
    expect(body.errors).to.deep.equal([]);
  });
  beforeEach(() => {
    url = `${platform.url}/apps/${platform.accountId}/tells/agents/teller/${++agents}`;
  });
  after(async () => {
    await platform[Symbol.asyncDispose]();
    const faults = platform.instance.lines.filter((line) => line.includes("request failed"));
    expect(faults, "a client that leaves is nobody's fault").to.deep.equal([]);
  });

  async function listen(signal?: AbortSignal) {
    const answer = await fetch(url, signal ? { signal } : {});
    expect(answer.status).to.equal(200);
    expect(answer.headers.get("content-type")).to.equal("text/event-stream");
    const reader = answer.body?.getReader();
    const next = async () => {
      const read = await reader?.read();
      return read?.done ? "(end)" : Buffer.from(read?.value ?? []).toString();
    };
    return { next };
  }
  const say = async (text: string) => {
    const { status } = await fetch(`${url}?text=${text}`, { method: "POST" });
    expect(status).to.equal(200);
  };
  const told = async (what: string) => (await fetch(`${url}/${what}`)).json();
  const failureOf = (promise: Promise<unknown>) =>
    promise.then(
      () => "none",
      (error: Error) => error.message,
    );

  it("an event arrives when it is sent, and so does the end", async () => {
    const { next } = await listen();
    for (const text of ["one", "two"]) {
      await say(text);
      expect(await next()).to.equal(`data: ${text}\n\n`);
    }
    await say("end");
    expect(await next()).to.equal("(end)");
  });

  it("the app is notified that its client has disconnected", async () => {
    const leaving = new AbortController();
    const { next } = await listen(leaving.signal);
    await say("one");
    expect(await next()).to.equal("data: one\n\n");
    leaving.abort();
    await until("it knows", async () => (await told("left")) === 1);
  });

  it("a response that breaks off does not look complete", async () => {
    const thrown = await listen();
    await say("throw");
    expect(await failureOf(thrown.next())).to.equal("terminated");
  });

  it("a client that disconnects before the head leaves nothing open either", async () => {
    const leaving = new AbortController();
    const answer = failureOf(fetch(`${url}/slow`, { signal: leaving.signal }));
    await until("it is under way", async () => (await told("slow-ones")) === 1);
    leaving.abort();
    expect(await answer).to.equal("This operation was aborted");
    await told("go-on");
    await until("it knows", async () => (await told("left")) === 1);
  });

  it("a new version of an app serves at once although a response continues", async () => {
    const open = await listen();
    await say("one");
    expect(await open.next()).to.equal("data: one\n\n");
    const next = failureOf(open.next());
    const agents = [{ binding: "Teller", class_name: "Teller" }];
    await platform.deploy("tells", `${BUNDLE}\n// Another version.`, { agents });
    expect(await next).to.equal("terminated");
    const answer = await fetch(`${url}/left`, {
      signal: AbortSignal.timeout(APP_DRAIN_MS - 1_000),
    });
    expect(answer.status).to.equal(200);
  });

  it("HEAD returns the head only", async () => {
    const answer = await fetch(url, { method: "HEAD" });
    expect(answer.headers.get("content-type")).to.equal("text/event-stream");
    expect(await answer.text()).to.equal("");
    await until("the app hears that nobody reads on", async () => (await told("left")) === 1);
  });

  it("a response of a stopping platform does not look complete", async () => {
    const stopped = await listen();
    await say("one");
    expect(await stopped.next()).to.equal("data: one\n\n");
    const next = failureOf(stopped.next());
    await platform[Symbol.asyncDispose]();
    expect(await next).to.equal("terminated");
  });
});
