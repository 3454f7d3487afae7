/**
 * Sends events to agents in three ways: through an app's own code, by calls of an agent's method, and through a
 * declared endpoint. Checks that each event had exactly one turn.
 */
import { createHmac } from "node:crypto";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { systemClock as clock } from "../../actors/runtime/lib/clock.ts";
import type { AppScene } from "./app-scene.ts";
import type { SeededRandom } from "./seeded-random.ts";
import { until } from "./until.ts";

const APP = "turns";
const SECRET = "secret of the turns";
const AGENTS = 6;
const PAUSE_MS_MAX = 30;
const AGAIN_MS = 50;
/** Maximum time until the last events have reached their agents. */
const SETTLED_MS_MAX = 240_000;

/** Each turn stores its event with a new token. Its queue then posts the event and the token to the test. */
const CODE = `
import { createHmac, timingSafeEqual } from "node:crypto";
import { Agent, getAgentByName, routeAgentRequest } from "trunkline/agents";

export class Turns extends Agent {
  initialState = { count: 0 };
  onStart() { this.sql\`CREATE TABLE IF NOT EXISTS turns (id TEXT, token TEXT)\`; }
  take(id) {
    const token = crypto.randomUUID();
    this.sql\`INSERT INTO turns VALUES (\${id}, \${token})\`;
    this.setState({ count: this.state.count + 1 });
    this.queue("report", { id, token });
  }
  async report(turn) {
    await fetch(this.env.OUTSIDE, { method: "POST", body: JSON.stringify(turn) });
  }
  async onRequest(request) {
    if (request.method === "GET") return Response.json([...this.sql\`SELECT id, token FROM turns\`]);
    await request.text();
    this.take(request.headers.get("x-event") ?? request.headers.get("x-github-delivery"));
    return new Response("taken", { status: 202 });
  }
}

export default {
  async fetch(request, env) {
    const { pathname } = new URL(request.url);
    if (!pathname.startsWith("/by-")) {
      return (await routeAgentRequest(request, env)) ?? new Response("not here", { status: 404 });
    }
    const body = await request.clone().text();
    const signed = Buffer.from(request.headers.get("x-hub-signature-256") ?? "");
    const wanted = Buffer.from("sha256=" + createHmac("sha256", env.HOOK).update(body).digest("hex"));
    if (signed.length !== wanted.length || !timingSafeEqual(signed, wanted)) {
      return new Response("not signed", { status: 401 });
    }
    const { agent, id } = JSON.parse(body);
    const stub = await getAgentByName(env.Turns, agent);
    if (pathname === "/by-code") return stub.fetch(request);
    await stub.take(id);
    return new Response("taken", { status: 202 });
  },
};
`;

const CONFIG = {
  agents: [{ binding: "Turns", class_name: "Turns" }],
  webhooks: [
    {
      path: "/declared",
      provider: "github" as const,
      secret: "HOOK",
      agent: "Turns",
      entity: { body: "/agent" },
    },
  ],
};

/**
 * The ways in which an event reaches its agent. Only events of the way "declared" are repeated until they are
 * answered.
 */
const WAYS = ["by-code", "by-call", "declared"] as const;

interface SentEvent {
  agent: string;
  isAnswered: boolean;
}

export class TurnLoad implements AsyncDisposable {
  readonly faults: string[] = [];
  readonly #scene: AppScene;
  readonly #random: SeededRandom;
  readonly #sent = new Map<string, SentEvent>();
  /** For each event, the tokens of the turns that posted it to the test. */
  readonly #reported = new Map<string, Set<string>>();
  readonly #receiver: Server;
  #isSending = true;
  #senders: Promise<unknown> = Promise.resolve();

  static async start(scene: AppScene, random: SeededRandom): Promise<TurnLoad> {
    const receiver = createServer().listen(0, "127.0.0.1");
    await once(receiver, "listening");
    const load = new TurnLoad(scene, random, receiver);
    await load.#deploy();
    load.#senders = Promise.all(
      Array.from({ length: AGENTS * WAYS.length }, (_, number) =>
        load.#send(number, random.fork()),
      ),
    );
    return load;
  }

  constructor(scene: AppScene, random: SeededRandom, receiver: Server) {
    this.#scene = scene;
    this.#random = random;
    this.#receiver = receiver;
    receiver.on("request", async (request, response) => {
      const { id, token } = JSON.parse(Buffer.concat(await request.toArray()).toString());
      const tokens = this.#reported.get(id) ?? new Set();
      this.#reported.set(id, tokens.add(token));
      response.end();
    });
  }

  get sent(): number {
    return this.#sent.size;
  }

  get answered(): number {
    return this.#sent
      .values()
      .filter(({ isAnswered }) => isAnswered)
      .toArray().length;
  }

  get reported(): number {
    return this.#reported.size;
  }

  /** Resolves when `count` more events have been answered. */
  more(count: number): Promise<unknown> {
    const goal = this.answered + count;
    return until(`${goal} events are answered`, () => this.answered >= goal, SETTLED_MS_MAX);
  }

  /**
   * Stops the load. Records a fault for each answered event that had no turn, and for each event that had several
   * turns.
   */
  async compare(): Promise<void> {
    this.#isSending = false;
    await this.#senders;
    for (let number = 0; number < AGENTS; number++) await this.#compare(`agent-${number}`);
    const isReported = () => this.#reported.size > 0;
    await until("an event is sent on", isReported, SETTLED_MS_MAX).catch(({ message }) =>
      this.faults.push(message),
    );
    for (const [id, tokens] of this.#reported) {
      if (tokens.size > 1) this.faults.push(`${id} was sent by ${tokens.size} turns`);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isSending = false;
    this.#receiver.closeAllConnections();
    await new Promise((resolve) => this.#receiver.close(resolve));
  }

  async #deploy(): Promise<void> {
    const { platform } = this.#scene;
    await platform.rest("PUT", `/apps/${APP}/secrets/HOOK`, { value: SECRET });
    const { port } = this.#receiver.address() as AddressInfo;
    const vars = { OUTSIDE: `http://127.0.0.1:${port}` };
    const { status, body } = await platform.deploy(APP, CODE, { ...CONFIG, vars });
    if (status !== 200) throw new Error(`Cannot deploy: ${JSON.stringify(body)}`);
  }

  async #compare(agent: string): Promise<void> {
    const of = [...this.#sent].filter(([, sent]) => sent.agent === agent);
    let turns = new Map<string, number>();
    const settled = async () => {
      turns = (await this.#turnsOf(agent)) ?? turns;
      return of.every(([id, { isAnswered }]) => !isAnswered || turns.has(id));
    };
    await until(`${agent} has its events`, settled, SETTLED_MS_MAX).catch(() => {
      const lost = of.filter(([id, { isAnswered }]) => isAnswered && !turns.has(id));
      this.faults.push(`${agent} has lost ${lost.map(([id]) => id)}`);
    });
    for (const [id, count] of turns) {
      const answered = this.#sent.get(id)?.isAnswered ? "was answered" : "was not answered";
      if (count > 1) this.faults.push(`${id} had ${count} turns and ${answered}`);
    }
  }

  /** The number of turns by event. */
  async #turnsOf(agent: string): Promise<Map<string, number> | undefined> {
    const [gateway] = this.#scene.livingGateways;
    const { accountId } = this.#scene.platform;
    const url = `${gateway?.url}/apps/${accountId}/${APP}/agents/turns/${agent}`;
    const response = await fetch(url);
    if (!response.ok) return undefined;
    const rows = (await response.json()) as { id: string }[];
    const turns = new Map<string, number>();
    for (const { id } of rows) turns.set(id, (turns.get(id) ?? 0) + 1);
    return turns;
  }

  async #send(number: number, random: SeededRandom): Promise<void> {
    const agent = `agent-${number % AGENTS}`;
    const way = WAYS[Math.floor(number / AGENTS)] ?? "by-code";
    for (let count = 0; this.#isSending; count++) {
      await clock.wait(random.next() * PAUSE_MS_MAX);
      const id = `${way}.${number}.${count}`;
      const sent = { agent, isAnswered: false };
      this.#sent.set(id, sent);
      const post = async () => {
        sent.isAnswered = await this.#post(way, agent, id);
        if (!sent.isAnswered) await clock.wait(AGAIN_MS);
        return sent.isAnswered;
      };
      // The app's own code has no event ids to detect duplicates, so a sender must not repeat an event: the first
      // request may have had its turn.
      if (way !== "declared") await post();
      else await until(`${id} is answered`, post, SETTLED_MS_MAX);
    }
  }

  async #post(way: string, agent: string, id: string): Promise<boolean> {
    const body = JSON.stringify({ agent, id });
    const signature = createHmac("sha256", SECRET).update(body).digest("hex");
    const headers = {
      "content-type": "application/json",
      "x-github-event": "push",
      "x-github-delivery": id,
      "x-event": id,
      "x-hub-signature-256": `sha256=${signature}`,
    };
    const gateway = this.#random.pick(this.#scene.livingGateways);
    const answer = await this.#scene.post(gateway, `/${APP}/${way}`, { headers, body });
    if (answer && answer.status < 500 && answer.status !== 202) {
      this.faults.push(`${id} was answered ${answer.status} ${answer.text}`);
    }
    return answer?.status === 202;
  }
}
