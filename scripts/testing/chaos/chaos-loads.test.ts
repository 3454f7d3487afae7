import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { expect } from "chai";
import { SeededRandom } from "../seeded-random.ts";
import { until } from "../until.ts";
import { ChaosClient } from "./chaos-client.ts";
import { type ChaosLoad, Tally } from "./chaos-load.ts";
import { CrawlLoad } from "./crawls.ts";
import { gitOutcome } from "./pushes.ts";
import { RegisterLoad, repositories } from "./registers.ts";
import { apiTokens, TokenChurn } from "./token-churn.ts";

const REQUESTS = 20;

describe("loads of a chaos run", () => {
  let server: Server;
  let platform: Platform;
  let client: ChaosClient;
  beforeEach(async () => {
    platform = new Platform();
    server = createServer(async (request, response) => {
      const text = Buffer.concat(await request.toArray()).toString();
      const { status, result } = platform.answer(
        request.method ?? "",
        new URL(request.url ?? "", "http://localhost").pathname,
        text === "" ? {} : JSON.parse(text),
        request.headers.authorization?.slice("Bearer ".length) ?? "",
      );
      if (status === 0) return void request.socket.destroy();
      response.writeHead(status, { "Content-Type": "application/json" });
      response.end(JSON.stringify({ result }));
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const user = { email: "", password: "" };
    const credentials = { base_url: url, account_id: "a", api_token: "owner", user };
    const cluster = { livingGateways: [{ name: "one", url }], credentials };
    client = new ChaosClient(cluster, [], new SeededRandom(1));
  });
  afterEach(async () => {
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  });

  const registers = () => new RegisterLoad(client, new SeededRandom(2), repositories(client));
  const tokens = () => new TokenChurn(client, new SeededRandom(3), apiTokens(client));

  async function problemsOf(load: ChaosLoad): Promise<string[]> {
    await load.start();
    await until("it has worked", () => load.tally.acknowledged >= REQUESTS || platform.isDone);
    await load.stop();
    return await load.findProblems();
  }

  it("find nothing where every request has its effect, also without an answer", async () => {
    platform.drops = (count) => count % 7 === 0;
    const all = await Promise.all([registers(), tokens()].map(problemsOf));
    expect(all).to.deep.equal([[], []]);
  });

  it("RegisterLoad finds a write that was acknowledged and is lost", async () => {
    platform.loses = (count) => count % 4 === 0;
    const [problem] = await problemsOf(registers());
    expect(problem).to.match(/register-\d is not linearizable/);
  });

  it("TokenChurn finds a token that opens after its revocation", async () => {
    platform.forgetsRevocations = true;
    const problems = await problemsOf(tokens());
    expect(problems.join()).to.match(/opens after its revocation/);
  });

  it("TokenChurn finds an acknowledged token that does not open", async () => {
    platform.loses = (count) => count % 4 === 0;
    expect((await problemsOf(tokens())).join()).to.match(/401, not 200/);
  });

  it("CrawlLoad finds a crawl that was refused", async () => {
    platform.refuses = true;
    const crawls = new CrawlLoad(client);
    try {
      await crawls.start();
      const { tally } = crawls;
      await until("a request has failed", () => tally.refused.size + tally.unknown > 0);
      await crawls.stop();
      expect((await crawls.findProblems()).join()).to.match(/refused \d+ times: 400/);
    } finally {
      await crawls.dispose();
    }
  });

  it("a kind of client that never succeeds is a problem", () => {
    const tally = new Tally(["clones", "pushes"]);
    tally.acknowledge(1, "pushes");
    expect(tally.problems).to.deep.equal(["clones: no request has succeeded"]);
    tally.succeed("clones");
    expect(tally.problems).to.deep.equal([]);
  });

  it("gitOutcome() tells a refusal from a lost race and from a lost connection", () => {
    const url = "fatal: unable to access 'http://127.0.0.1/x.git/'";
    for (const [outcome, stderr] of [
      ["expected", " ! [rejected]        main -> main (fetch first)"],
      ["expected", " ! [remote rejected] main -> main (fetch first)"],
      ["expected", " ! [remote rejected] main -> main (the push took too long; push again)"],
      ["unknown", `${url}: The requested URL returned error: 503`],
      ["unknown", `${url}: Failed to connect to 127.0.0.1 port 1 after 0 ms`],
      ["unknown", "fatal: the remote end hung up unexpectedly"],
      ["refused", `${url}: The requested URL returned error: 403`],
      ["refused", " ! [remote rejected] main -> main (the repository is read-only)"],
      ["refused", "fatal: protocol error: bad line length character"],
    ] as const) {
      expect(gitOutcome(stderr), stderr).to.equal(outcome);
    }
  });
});

/** A platform that keeps repositories and tokens in memory, and can be told to break its guarantees. */
class Platform {
  drops = (_count: number) => false;
  loses = (_count: number) => false;
  forgetsRevocations = false;
  refuses = false;
  /** True when a revoked token was accepted, so that a client has found the fault. */
  isDone = false;
  readonly #descriptions = new Map<string, string>();
  readonly #tokens = new Map<string, string>();
  #writes = 0;

  answer(
    method: string,
    path: string,
    json: Record<string, string>,
    token: string,
  ): { status: number; result?: unknown } {
    if (this.refuses) return { status: 400 };
    if (path.endsWith("/verify")) {
      const opens = [...this.#tokens.values()].includes(token);
      if (opens && this.forgetsRevocations) this.isDone = true;
      return { status: opens ? 200 : 401 };
    }
    if (method === "GET") {
      if (path.endsWith("/tokens")) return { status: 200, result: [] };
      return { status: 200, result: { description: this.#descriptions.get(path) } };
    }
    const count = ++this.#writes;
    const isKept = !this.loses(count);
    // Requests that prepare a load always succeed, because a chaos run makes them before the first fault.
    const isFirst = method === "POST" && path.endsWith("/repos");
    const result = this.#write(method, path, json, isKept || isFirst);
    return this.drops(count) && !isFirst ? { status: 0 } : { status: 200, result };
  }

  #write(method: string, path: string, json: Record<string, string>, isKept: boolean): unknown {
    const { name = "", description = "" } = json;
    if (path.endsWith("/repos")) this.#descriptions.set(`${path}/${name}`, description);
    else if (method === "PATCH") {
      if (isKept) this.#descriptions.set(path, description);
    } else if (method === "POST") {
      const id = String(this.#writes);
      if (isKept) this.#tokens.set(id, `secret ${id}`);
      return { id, value: `secret ${id}` };
    } else if (!this.forgetsRevocations) this.#tokens.delete(path.split("/").at(-1) ?? "");
    return {};
  }
}
