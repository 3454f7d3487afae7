import { createHmac, randomUUID } from "node:crypto";
import { expect } from "chai";
import { until } from "../../scripts/testing/until.ts";
import { ConsoleWorld } from "./testing/console-world.ts";

const BUNDLE = `
import { Agent, routeAgentRequest } from "trunkline/agents";
export class Repo extends Agent {
  initialState = { events: 0, note: "" };
  onStart() { this.sql\`CREATE TABLE IF NOT EXISTS events (id TEXT PRIMARY KEY, body TEXT)\`; }
  async onRequest(request) {
    const { searchParams } = new URL(request.url);
    const note = searchParams.get("note");
    if (note !== null) {
      console.log("noted " + note);
      console.error("fails " + note);
      this.sql\`INSERT OR REPLACE INTO events VALUES (\${note}, \${note})\`;
      this.setState({ ...this.state, note });
      return new Response("ok");
    }
    const text = await request.text();
    if (text.includes("fail me")) return new Response("no", { status: 500 });
    this.sql\`INSERT OR REPLACE INTO events VALUES (\${request.headers.get("x-github-delivery")}, \${text})\`;
    this.setState({ ...this.state, events: this.state.events + 1 });
    await this.schedule(3600, "remind", {});
    return new Response("ok");
  }
  remind() {}
  sum(one, other) { return { is: one + other }; }
}
export default { fetch: async (request, env) => (await routeAgentRequest(request, env)) ?? new Response("no", { status: 404 }) };
`;
const SECRET = "the provider's secret";
const CONFIG = {
  agents: [{ binding: "REPO", class_name: "Repo" }],
  webhooks: [
    {
      ...{ path: "/in/github", provider: "github" as const, secret: "HOOK", agent: "REPO" },
      entity: { body: "/repository/full_name" },
    },
  ],
};
const ENTITY = "acme/tools";
const AGENT = "acme-tools";

describe("apps, agents and webhooks in the console", function () {
  this.timeout(900_000);
  let world: ConsoleWorld;
  before(async () => {
    world = await ConsoleWorld.start();
  });
  after(() => world?.[Symbol.asyncDispose]());
  afterEach(() => world.checkFaults());

  const deploy = async () => {
    const deployed = await world.platform.deploy("hooks", BUNDLE, CONFIG);
    expect(deployed.status, JSON.stringify(deployed.body)).to.equal(200);
  };
  const deliver = (body: string, headers: Record<string, string> = {}) =>
    world.platform.ask("hooks", "/in/github", {
      method: "POST",
      headers: {
        "content-type": "application/json",
        "x-github-event": "push",
        "x-github-delivery": randomUUID(),
        "x-hub-signature-256": `sha256=${createHmac("sha256", SECRET).update(body).digest("hex")}`,
        ...headers,
      },
      body,
    });
  const note = (agent: string, text: string) =>
    world.platform.ask(
      "hooks",
      `/agents/repo/${encodeURIComponent(agent)}?note=${encodeURIComponent(text)}`,
    );

  it("says what to do where there is no app", async () => {
    await world.open("apps", "Apps and agents");
    await world.says("npx trunkline deploy");
    await world.audit("apps-empty");
    await world.open("webhooks", "Webhooks");
    await world.says("There is no app yet");
    await world.audit("webhooks-empty");
  });

  it("tries webhooks and agents with an example app, without a terminal", async () => {
    await world.follow("Try an example");
    await world.audit("app-example");
    await world.press("Deploy the example");
    await world.says("github-events is deployed");
    const secret = await world.secret();
    await world.audit("app-example-deployed");
    await world.follow("Send it a test event");
    await world.fill("Signing secret", secret);
    await world.press("Send the test");
    await world.follow(`Show the deliveries of ${AGENT}`);
    await world.says("delivered");
    await world.press("Replay #1");
    await world.says("1 replay");
    await world.follow("Show the agent's state");
    await world.says("1 commits to refs/heads/main, by octocat");
    expect((await world.platform.rest("DELETE", "/apps/github-events")).status).to.equal(200);
  });

  it("shows versions, has an earlier one serve, and puts a secret", async () => {
    await deploy();
    await deploy();
    await world.open("apps", "Apps and agents");
    await world.says("version 2");
    await world.audit("apps");
    await world.follow("hooks");
    await world.openDialog("Serve version 1");
    await world.confirm("Serve version 1");
    await world.says("Serve version 2");
    await world.page.waitForSelector('aria/Open the app[role="link"]');
    await world.audit("app");
    await world.follow("Secrets");
    await world.says("There is no secret yet");
    await world.fill("Name", "HOOK");
    await world.fill("Value", SECRET);
    await world.press("Put");
    await world.says("HOOK is put");
    await world.says("1 secret");
    expect(await world.text()).to.not.contain(SECRET);
    await world.audit("app-secrets");
  });

  it("sends a test that is signed as GitHub signs, and shows and replays what came", async () => {
    await world.open("webhooks", "Webhooks");
    await world.follow("Send a test");
    await world.heading("Send a test");
    await world.fill("Entity", ENTITY);
    await world.fill("Signing secret", "another");
    await world.press("Send the test");
    await world.says("signature");
    await world.fill("Signing secret", SECRET);
    await world.audit("webhook-test");
    await world.press("Send the test");
    await world.says("The endpoint took it");
    await world.follow(`Show the deliveries of ${AGENT}`);
    await world.heading(AGENT);
    await world.says("delivered");
    await world.press("Replay #1");
    await world.says("1 replay");
    await world.openDialog("Replay many");
    await world.page.select("dialog select", "delivered");
    await world.audit("deliveries-replay");
    await world.confirm("Replay");
    await world.says("1 event replayed");
    await world.says("2 replays");
    const failing = { repository: { full_name: ENTITY }, text: "fail me" };
    expect((await deliver(JSON.stringify(failing))).status).to.equal(202);
    await world.says("push #2");
    await world.says("answered 500");
    await world.audit("deliveries");
    await world.page.select("select", "delivered");
    await world.page.waitForFunction(
      'document.querySelector("table")?.innerText.includes("#2") === false',
    );
    await world.follow("push #1");
    await world.heading("push #1");
    await world.says("x-hub-signature-256");
    await world.says("octocat");
    await world.audit("delivery");
    await world.open("webhooks", "Webhooks");
    await world.says(AGENT);
    await world.audit("webhooks");
  });

  it("sends a test webhook out, and shows its tries", async () => {
    await world.open(`webhooks/hooks/Repo/${encodeURIComponent(AGENT)}/sent`, AGENT);
    await world.says("The agent has sent none yet");
    await world.fill("Address", "https://receiver.invalid/hook");
    await world.press("Send a test");
    await world.says("Test #1 is on its way");
    await world.audit("sent");
    await world.follow("https://receiver.invalid/hook");
    await world.heading("Webhook #1");
    await world.says("No answer");
    await world.audit("sent-webhook");
  });

  it("shows an agent's state as it changes, its timers and its tables", async () => {
    await world.open("apps/hooks/agents", "hooks");
    await world.audit("agents");
    await world.follow(AGENT);
    await world.heading(AGENT);
    await world.says('"note": ""');
    await note(AGENT, "seen at once");
    await world.says("seen at once");
    await world.says("remind");
    await world.press("events");
    await world.press("Run");
    await world.says("octocat");
    await world.audit("agent");
    await world.page.evaluate(
      "navigator.clipboard.writeText = async (text) => { window.copied = text; }",
    );
    await world.press("Copy as CSV");
    await world.page.waitForFunction("window.copied");
    expect(await world.page.evaluate("window.copied")).to.match(/^id,body\r\n.*"\{""/);
    await world.fill("Method", "sum");
    await world.fill("Arguments", "[40, 2");
    await world.press("Call");
    await world.says("Expected a list in JSON");
    await world.fill("Arguments", "[40, 2]");
    await world.press("Call");
    await world.says('"is": 42');
    await world.audit("agent-call");
    await world.fill("Method", "remove");
    await world.press("Call");
    await world.says("Method remove does not exist");
    await world.fill("SQL", "DELETE FROM events");
    await world.press("Run");
    await world.says("a query only reads");
  });

  it("follows the log, and filters it", async () => {
    await world.open("apps/hooks/log", "hooks");
    await world.says("noted seen at once");
    await note(AGENT, "a later line");
    await world.says("noted a later line");
    await world.audit("app-log");
    await world.page.type('[type="search"]', "fails a later");
    await world.page.waitForFunction('!document.body.innerText.includes("noted a later line")');
    await world.says("fails a later line");
    await world.press("Pause");
    await world.says("Paused");
  });

  it("deletes an app when its name is typed", async () => {
    await world.open("apps/hooks", "hooks");
    await world.openDialog("Delete the app");
    await world.fill('Type "hooks" to confirm', "hooks");
    await world.audit("app-delete");
    await world.confirm("Delete the app");
    await world.heading("Apps and agents");
    await until("it is gone", async () => {
      return (await world.platform.rest("GET", "/apps/hooks")).status === 404;
    });
  });
});
