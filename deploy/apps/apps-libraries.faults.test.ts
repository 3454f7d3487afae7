import type { IncomingMessage, ServerResponse } from "node:http";
import { json } from "node:stream/consumers";
import { expect } from "chai";
import { AppPlatform } from "../../scripts/testing/app-platform.ts";
import { InstalledPackages } from "../../scripts/testing/installed-app.ts";
import { type LoopbackServer, startHttpServer } from "../../scripts/testing/loopback-server.ts";

/** The newest version of each library when this test was written. */
const VERSIONS = {
  "@ai-sdk/openai": "3.0.141",
  "@anthropic-ai/sdk": "1.14.0",
  "@modelcontextprotocol/sdk": "1.32.2",
  ai: "6.0.326",
  hono: "4.13.19",
  openai: "6.49.0",
  stripe: "23.1.0",
  "web-push": "3.6.7",
  zod: "4.6.7",
};

/** One call of each library, in a separate app. `REMOTE` is replaced by the URL of the simulated API. */
const LIBRARIES: Record<string, { code: string; answers: unknown }> = {
  ai: {
    code: `import { generateText } from "ai"; import { createOpenAI } from "@ai-sdk/openai";
const openai = createOpenAI({ apiKey: "k", baseURL: REMOTE + "/v1" });
const run = async () => (await generateText({ model: openai.chat("gpt"), prompt: "Say hello", maxRetries: 0 })).text;`,
    answers: "Hello from the model",
  },
  openai: {
    code: `import OpenAI from "openai";
const client = new OpenAI({ apiKey: "k", baseURL: REMOTE + "/v1", maxRetries: 0 });
const run = async () => {
  const whole = await client.chat.completions.create({ model: "gpt", messages: [{ role: "user", content: "Say hello" }] });
  const missing = await client.models.retrieve("none").catch((error) => [error instanceof OpenAI.NotFoundError, error.status]);
  return [whole.choices[0].message.content, missing];
};`,
    answers: ["Hello from the model", [true, 404]],
  },
  anthropic: {
    code: `import Anthropic from "@anthropic-ai/sdk";
const client = new Anthropic({ apiKey: "k", baseURL: REMOTE, maxRetries: 0 });
const run = async () => {
  const message = await client.messages.create({ model: "m", max_tokens: 9, messages: [{ role: "user", content: "Say hello" }] });
  return message.content[0].text;
};`,
    answers: "Hello from the model",
  },
  hono: {
    code: `import { Hono } from "hono"; import { cors } from "hono/cors"; import { setCookie, getCookie } from "hono/cookie"; import { HTTPException } from "hono/http-exception";
const app = new Hono();
app.use(cors());
app.get("/greet/:name", (c) => { setCookie(c, "a", "1"); return c.json({ hello: c.req.param("name"), had: getCookie(c, "b") }); });
app.get("/no", () => { throw new HTTPException(403, { message: "no" }); });
const run = async () => {
  const answer = await app.request("/greet/ada", { headers: { cookie: "b=2" } });
  return [await answer.json(), answer.headers.get("set-cookie"), (await app.request("/no")).status];
};`,
    answers: [{ hello: "ada", had: "2" }, "a=1; Path=/", 403],
  },
  zod: {
    code: `import { z } from "zod";
const Person = z.object({ name: z.string().min(2), mail: z.email(), at: z.coerce.date() });
const run = async () => [Person.parse({ name: "Ada", mail: "ada@example.com", at: "2026-11-20" }).at.getUTCFullYear(), Person.safeParse({ name: "A" }).error.issues.length, z.toJSONSchema(z.object({ a: z.int() })).required];`,
    answers: [2026, 3, ["a"]],
  },
  stripe: {
    code: `import Stripe from "stripe";
const { protocol, hostname, port } = new URL(REMOTE);
const client = new Stripe("sk_test", { host: hostname, port, protocol: protocol.slice(0, -1), maxNetworkRetries: 0 });
const run = async () => {
  const customer = await client.customers.create({ name: "Ada", metadata: { a: "1" } });
  const payload = JSON.stringify({ id: "evt_1", object: "event" });
  const header = await client.webhooks.generateTestHeaderStringAsync({ payload, secret: "s" });
  return [customer.id, customer.name, (await client.webhooks.constructEventAsync(payload, header, "s")).id];
};`,
    answers: ["cus_1", "Ada", "evt_1"],
  },
  mcp: {
    code: `import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js"; import { WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js";
import { Client } from "@modelcontextprotocol/sdk/client/index.js"; import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { z } from "zod";
const serve = async (request) => {
  const server = new McpServer({ name: "adder", version: "1.0.0" });
  server.registerTool("add", { inputSchema: { a: z.number(), b: z.number() } }, async ({ a, b }) => ({ content: [{ type: "text", text: String(a + b) }] }));
  const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true });
  await server.connect(transport);
  return transport.handleRequest(request);
};
const run = async () => {
  const client = new Client({ name: "caller", version: "1.0.0" });
  await client.connect(new StreamableHTTPClientTransport(new URL(OWN + "/mcp")));
  const { tools } = await client.listTools();
  const { content } = await client.callTool({ name: "add", arguments: { a: 2, b: 3 } });
  await client.close();
  return [tools.map(({ name }) => name), content[0].text];
};`,
    answers: [["add"], "5"],
  },
  push: {
    code: `import webPush from "web-push";
const run = async () => {
  const keys = webPush.generateVAPIDKeys();
  const subscription = { endpoint: REMOTE + "/push", keys: { p256dh: keys.publicKey, auth: "AAAAAAAAAAAAAAAAAAAAAA" } };
  const vapidDetails = { subject: "mailto:me@example.com", ...keys };
  const { endpoint, method, headers, body } = webPush.generateRequestDetails(subscription, "Hello", { vapidDetails });
  const sent = await fetch(endpoint, { method, headers, body });
  // The library sends with node:https, which apps do not have.
  const refused = await webPush.sendNotification(subscription, "Hello", { vapidDetails }).catch((error) => error);
  return [sent.status, refused.message.split(":").slice(0, 2).join(":")];
};`,
    answers: [201, "Cannot use request of node:https, which web-push imports"],
  },
};

const CHAT = {
  ...{ id: "c", object: "chat.completion", created: 1, model: "gpt" },
  choices: [
    {
      ...{ index: 0, finish_reason: "stop" },
      message: { role: "assistant", content: "Hello from the model" },
    },
  ],
  usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
};
const MESSAGE = {
  ...{ id: "m", type: "message", role: "assistant", model: "m", stop_reason: "end_turn" },
  content: [{ type: "text", text: "Hello from the model" }],
  usage: { input_tokens: 1, output_tokens: 1 },
};

/** Simulates the APIs, and refuses requests that their clients would not send. */
async function answerAsRemote(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { headers, url } = request;
  const say = (status: number, body: unknown) =>
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
  if (url === "/push") {
    const isPush =
      headers["content-encoding"] === "aes128gcm" && headers.authorization?.startsWith("vapid t=");
    return void response.writeHead(isPush ? 201 : 400).end();
  }
  if (url === "/v1/customers") {
    const chunks = await request.toArray();
    const form = new URLSearchParams(Buffer.concat(chunks).toString());
    return void say(200, { id: "cus_1", object: "customer", name: form.get("name") });
  }
  if (request.method === "GET") return void say(404, { error: { message: "no such model" } });
  const { messages } = (await json(request)) as { messages: { content: unknown }[] };
  if (!JSON.stringify(messages).includes("Say hello")) return void say(400, { error: {} });
  say(200, url === "/v1/messages" ? MESSAGE : CHAT);
}

describe("libraries in apps", function () {
  this.timeout(900_000);
  let platform: AppPlatform;
  let packages: InstalledPackages;
  let remote: LoopbackServer;
  before(async () => {
    remote = await startHttpServer((request, response) => {
      answerAsRemote(request, response).catch((error) => response.destroy(error));
    });
    packages = await InstalledPackages.install(VERSIONS);
    platform = await AppPlatform.start({ TRUNKLINE_EGRESS_ALLOW: "127.0.0.0/8" });
  });
  after(async () => {
    await platform?.[Symbol.asyncDispose]();
    await packages?.[Symbol.asyncDispose]();
    await remote?.close();
  });

  for (const [name, { code, answers }] of Object.entries(LIBRARIES)) {
    it(`${name} is deployed and runs, in the app's own code and in an agent`, async () => {
      const given = {
        REMOTE: `http://${remote.address}:${remote.port}`,
        OWN: `${platform.url}/apps/${platform.accountId}/${name}`,
      };
      const whole = `import { Agent, getAgentByName } from "trunkline/agents";
const { REMOTE, OWN } = ${JSON.stringify(given)};
${code}
const told = async () => Response.json(await run().catch((error) => ({ error: error.stack })));
export class User extends Agent { onRequest() { return told(); } }
export default {
  async fetch(request, env) {
    const { pathname } = new URL(request.url);
    if (pathname === "/mcp") return serve(request);
    return pathname === "/agent" ? (await getAgentByName(env.User, "u")).fetch(request) : told();
  },
};`;
      const agents = [{ binding: "User", class_name: "User" }];
      await packages.deploy(platform, name, { code: whole, config: { agents } });
      for (const path of ["/", "/agent"]) {
        const answer = await platform.ask(name, path);
        expect(answer.status, answer.text).to.equal(200);
        expect(JSON.parse(answer.text), path).to.deep.equal(answers);
      }
    });
  }
});
