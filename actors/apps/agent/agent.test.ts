import { readFileSync, readlinkSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect } from "chai";
import { agent, agentAlarm, appEntry } from "../../../schemas/apps/agent.ts";
import { app as appContract } from "../../../schemas/apps/app.ts";
import type { AppAnswer, AppRequest } from "../../../schemas/apps/app-exchange.ts";
import { APP_ANSWER_BYTES_MAX } from "../../../schemas/apps/limits.ts";
import { blobSubjects } from "../../../schemas/subjects.ts";
import { AGENT_APP, AGENT_APP_CONFIG } from "../../../scripts/testing/agent-app.ts";
import {
  type AgentHost,
  type AgentWorld,
  keyOf,
  startAgentWorld,
} from "../../../scripts/testing/agent-world.ts";
import { childrenOf, isOfApp } from "../../../scripts/testing/process-children.ts";
import { refusalOf } from "../../../scripts/testing/refusal.ts";
import { until } from "../../../scripts/testing/until.ts";
import { systemClock } from "../../runtime/lib/clock.ts";
import { BlobStore } from "../../runtime/store/blob-store.ts";
import { whyOneUser } from "../lib/app-host/app-user.ts";
import { APP_ARRIVING_BYTES_MAX } from "../lib/app-process/arriving.ts";

const request = (what: string, body?: unknown): AppRequest => ({
  method: body === undefined ? "GET" : "POST",
  url: `http://app/agents/counter/one/${what}`,
  headers: [["content-type", "application/json"]],
  ...(body !== undefined && { body: { text: JSON.stringify(body) } }),
});

async function textOf(world: AgentWorld, { body }: AppAnswer): Promise<string> {
  if (!body) return "";
  if ("text" in body) return body.text;
  if ("base64" in body) return Buffer.from(body.base64, "base64").toString();
  const blobs = new BlobStore(world.world.bus, systemClock);
  return Buffer.concat(await Array.fromAsync(blobs.get(body.blob))).toString();
}

describe("agents on hosts", function () {
  this.timeout(240_000);
  let world: AgentWorld;
  let host: AgentHost;
  let app: string;
  const key = (name: string) => keyOf("hooks", "Counter", name);
  const ask = async (name: string, what: string, body?: unknown) => {
    const answer = await world.client.call(agent, key(name), "request", request(what, body), {
      deadlineMs: 60_000,
    });
    return textOf(world, answer);
  };
  const stateOf = async (name: string) => JSON.parse(await ask(name, "state"));
  before(async () => {
    world = await startAgentWorld();
    host = await world.host("first");
    app = await world.deploy("hooks", AGENT_APP, AGENT_APP_CONFIG);
  });
  after(() => world[Symbol.asyncDispose]());

  it("answer requests, by themselves and by their app's entry", async () => {
    const version = { ...request(""), url: "http://app/version" };
    const entry = await world.client.call(appEntry, app, "request", version);
    expect(await textOf(world, entry)).to.equal("version hello");
    expect(JSON.parse(await ask("one", "event", { id: "a" }))).to.deep.include({
      count: 1,
      events: [{ id: "a", times: 1 }],
    });
    const routed = await world.client.call(appEntry, app, "request", request("event", { id: "b" }));
    expect(JSON.parse(await textOf(world, routed))).to.include({ count: 2 });
    expect((await stateOf("two")).count).to.equal(0);
  });

  it("refuse what they do not have, and say what failed", async () => {
    const codes = [];
    for (const wrong of [keyOf("hooks", "Nobody", "x"), keyOf("none", "Counter", "x"), "x"]) {
      codes.push((await refusalOf(world.client.call(agent, wrong, "request", request("")))).code);
    }
    expect(codes).to.deep.equal(["not_found", "not_found", "invalid_request"]);
    const failed = await refusalOf(
      world.client.call(agent, key("one"), "request", request("fail")),
    );
    expect(failed).to.include({ code: "app_failed", message: "failed as asked" });
  });

  it("call each other, with large answers and with errors", async () => {
    const { sum, bytes, thrown } = JSON.parse(await ask("one", "invoke", {}));
    expect({ sum, bytes, thrown }).to.deep.equal({
      sum: 5,
      bytes: 2_000_000,
      thrown: "refused as asked",
    });
  });

  it("leave no body of a call between them in the store", async () => {
    const code = `import { Agent } from "trunkline/agents";
export class Mirror extends Agent {
  async onRequest(request) {
    if (request.method === "POST") return new Response(await request.bytes());
    const other = this.env.Mirror.getByName("other");
    const answer = await other.fetch(new Request("http://app/", { method: "POST", body: "x".repeat(700_000) }));
    const seen = [(await answer.text()).length];
    for (const bytes of [700_000, ${APP_ANSWER_BYTES_MAX - 1_000}, ${APP_ANSWER_BYTES_MAX}]) {
      const given = other.mirror(Buffer.alloc(bytes, "é"));
      seen.push(await given.then((back) => back.equals(Buffer.alloc(bytes, "é")), String));
      seen.push(await other.make(bytes).then((made) => made.length, String));
    }
    return Response.json(seen);
  }
  mirror(bytes) { return Buffer.from(bytes); }
  make(chars) { return "x".repeat(chars); }
}
export default { fetch: () => new Response("x".repeat(700_000), { status: 403 }) };`;
    const agents = [{ binding: "Mirror", class_name: "Mirror" }];
    const mirrors = await world.deploy("mirrors", code, { agents });
    const one = keyOf("mirrors", "Mirror", "one");
    const answer = await world.client.call(agent, one, "request", request(""));
    const most = APP_ANSWER_BYTES_MAX;
    expect(JSON.parse(await textOf(world, answer))).to.deep.equal([
      ...[700_000, true, 700_000, true, most - 1_000],
      `AgentRefusal: Cannot call mirror: its arguments have more than ${most} bytes`,
      `AgentRefusal: Cannot pass on what make gave: it has more than ${most} bytes`,
    ]);
    const upgraded = await world.client.call(appEntry, mirrors, "upgrade", request(""));
    expect(upgraded).to.deep.include({
      answer: { status: 403, headers: [["content-type", "text/plain;charset=UTF-8"]] },
    });
    const { stream, beneath } = blobSubjects(`app.${mirrors}.body`);
    const { streams } = world.world.bus.jetstream;
    await until("nothing is stored", async () => {
      const { state } = await streams.info(stream, { subjects_filter: beneath });
      return Object.keys(state.subjects ?? {}).length === 0;
    });
  });

  it("get the errors of each other with name, message and place, as deliveries get their place", async () => {
    const code = `import { Agent } from "trunkline/agents";
class NotEnough extends Error {}
export class Kinds extends Agent {
  fail(type) { throw type ? new RangeError("too far") : new NotEnough("3 left"); }
  onRequest() { return this.tell(); }
  async tell() {
    const other = this.env.Kinds.getByName("other");
    const told = [];
    for (const type of [false, true]) {
      await other.fail(type).catch((error) => told.push([error.name, error.message, error instanceof RangeError, error.stack]));
    }
    return Response.json(told);
  }
}
export default {};`;
    const agents = [{ binding: "Kinds", class_name: "Kinds" }];
    await world.deploy("kinds", code, { agents });
    const key = keyOf("kinds", "Kinds", "a");
    const answer = await world.client.call(agent, key, "request", request(""));
    const told = JSON.parse(await textOf(world, answer)) as [string, string, boolean, string][];
    expect(told.map(([name, message, isRange]) => [name, message, isRange])).to.deep.equal([
      ["NotEnough", "3 left", false],
      ["RangeError", "too far", true],
    ]);
    for (const [, , , stack] of told) {
      expect(stack).to.match(
        /at Kinds\.fail \(bundle\.js:4:\d+\)[\s\S]*Kinds\.tell \(bundle\.js:10:\d+\)/,
      );
      expect(stack).to.not.include("file://");
    }
  });

  it("tell nothing that was done as refused, however much is on its way", async () => {
    await ask("one", "state");
    const { process: running } = await host.agents.processes.of(app);
    const bytes = APP_ARRIVING_BYTES_MAX - 100_000;
    running.arriving.add(bytes);
    expect(JSON.parse(await ask("one", "invoke", {}))).to.include({ bytes: 2_000_000 });
    running.arriving.remove(bytes);
  });

  it("take bodies of blobs and bytes that are no text", async () => {
    const blobs = new BlobStore(world.world.bus, systemClock);
    const bytes = Buffer.alloc(900_000, "é");
    await blobs.put(`app.${app}.body.test`, bytes, { ttlS: 60 });
    const large = { ...request("echo", {}), body: { blob: `app.${app}.body.test` } };
    const answer = await world.client.call(agent, key("one"), "request", large);
    expect(answer.body).to.have.property("blob");
    expect(await textOf(world, answer)).to.equal(bytes.toString());
    const odd = Buffer.from([0, 255, 1, 254]).toString("base64");
    const echoed = await world.client.call(agent, key("one"), "request", {
      ...request("echo", {}),
      body: { base64: odd },
    });
    expect(echoed.body).to.deep.equal({ base64: odd });
  });

  it("run under a user of their app's own, in folders closed to all others", async function () {
    if ((await whyOneUser([process.execPath])) !== undefined) this.skip();
    await ask("one", "state");
    const child = childrenOf(process.pid).find(isOfApp);
    const status = readFileSync(`/proc/${child}/status`, "utf8");
    const [, ...users] = (/^Uid:(.*)$/m.exec(status)?.[0] ?? "").split(/\s+/);
    expect(new Set(users).size).to.equal(1);
    expect(Number(users[0])).to.be.greaterThan(1_000_000_000);
    expect(status).to.match(/^Groups:\s*$/m);
    expect(readFileSync(`/proc/${child}/environ`, "utf8")).to.not.contain("PATH=");
    const folder = readlinkSync(`/proc/${child}/cwd`);
    for (const path of [folder, dirname(folder), join(dirname(folder), "bundle")]) {
      expect(statSync(path).mode & 0o777, path).to.equal(0o700);
      expect(statSync(path).uid).to.equal(Number(users[0]));
    }
  });

  it("fetch through the guard", async () => {
    const inside = JSON.parse(await ask("one", "fetch", { url: "http://169.254.169.254/" }));
    expect(inside.cause).to.match(/^Cannot fetch from 169.254.169.254: its address is not one/);
  });

  it("wake when their next timer is due, wherever they are by then", async () => {
    await ask("timer", "later?s=1");
    await world.client.call(agent, key("timer"), "reload", {});
    await until("it rang", async () => (await stateOf("timer")).count === 1);
    expect((await world.client.call(agent, key("timer"), "inspect", {})).nextWakeAt).to.equal(
      undefined,
    );
    await world.client.call(agentAlarm, key("timer"), "set", { at: Date.now() });
    expect((await stateOf("timer")).events).to.deep.equal([{ id: "rung", times: 1 }]);
  });

  it("move to another version or other secrets with their data", async () => {
    await ask("mover", "event", { id: "a" });
    const [accountId = ""] = app.split(".");
    const sealed = world.secrets.seal("s3cret", { accountId, app: "hooks", name: "SECRET" });
    await world.client.call(appContract, app, "putSecret", { name: "SECRET", sealed });
    await until("it has the secret", async () => {
      const { env, count } = await stateOf("mover");
      expect(count).to.equal(1);
      return env.secret === "s3cret";
    });
    const config = { ...AGENT_APP_CONFIG, vars: { GREETING: "good day" } };
    await world.deploy("hooks", AGENT_APP, config);
    await until("the new version serves", async () => {
      const { env } = await stateOf("mover");
      return env.greeting === "good day";
    });
    const version = { ...request(""), url: "http://app/version" };
    const entry = await world.client.call(appEntry, app, "request", version);
    expect(await textOf(world, entry)).to.equal("version good day");
  });

  it("are checked before they serve: a bundle that does not start is refused", async () => {
    const stage = (code: string) => world.check("hooks", code, AGENT_APP_CONFIG);
    expect(await stage(AGENT_APP)).to.deep.equal({ classes: ["Counter"], hasDefault: true });
    const classes = AGENT_APP.replace("export default", "export const other =");
    expect(await stage(classes)).to.deep.equal({ classes: ["Counter"], hasDefault: false });
    for (const code of ["throw new Error('not today')", "syntax error", "export default {}"]) {
      const error = await refusalOf(stage(code));
      expect(error.code, code).to.equal("app_broken");
    }
  });
});
