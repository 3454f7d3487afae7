/**
 * Sends signed webhooks, some of them duplicated, and watches their effects over sockets, while a test injects faults
 * into the platform.
 */
import { createHmac } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { systemClock as clock } from "../../actors/runtime/lib/clock.ts";
import type { Watcher } from "./app-platform.ts";
import type { SeededRandom } from "./seeded-random.ts";
import { until } from "./until.ts";

export const STORM_APP = "storm";
export const STORM_SECRET = "secret of the storm";
const AGENTS = 6;
const SENDERS_OF_EACH = 2;
/** Maximum time until sockets show a state. Sockets receive updates last, and a process may have to start first. */
const SHOWN_MS_MAX = 240_000;
const AGAIN_MS = 50;

/**
 * The app's code. Agents with an even number get their events through the declared endpoint, agents with an odd
 * number through the app's own code.
 */
export const STORM_CODE = `
import { createHmac, timingSafeEqual } from "node:crypto";
import { Agent, getAgentByName, routeAgentRequest } from "trunkline/agents";

export class Repo extends Agent {
  initialState = { count: 0, last: null };
  onStart() {
    this.sql\`CREATE TABLE IF NOT EXISTS delivered (id TEXT)\`;
    this.sql\`CREATE TABLE IF NOT EXISTS taken (id TEXT PRIMARY KEY)\`;
  }
  async onRequest(request) {
    if (request.method === "GET") {
      const ids = [...this.sql\`SELECT id FROM delivered UNION ALL SELECT id FROM taken\`];
      return Response.json({ state: this.state, ids: ids.map(({ id }) => id) });
    }
    const id = request.headers.get("x-github-delivery");
    await request.text();
    if (request.headers.has("x-by-code")) {
      const known = [...this.sql\`SELECT id FROM taken WHERE id = \${id}\`].length > 0;
      if (known) return new Response("known", { status: 202 });
      this.sql\`INSERT OR IGNORE INTO taken VALUES (\${id})\`;
    } else this.sql\`INSERT INTO delivered VALUES (\${id})\`;
    const count = this.state.count + 1;
    this.broadcast(JSON.stringify({ type: "event", count, id }));
    this.setState({ count, last: id });
    return new Response("taken", { status: 202 });
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
    const headers = new Headers(request.headers);
    headers.set("x-by-code", "1");
    return agent.fetch(new Request(request.url, { method: "POST", headers, body }));
  },
};
`;

export const STORM_CONFIG = {
  agents: [{ binding: "Repo", class_name: "Repo" }],
  webhooks: [
    {
      path: "/declared",
      provider: "github" as const,
      secret: "HOOK",
      agent: "Repo",
      entity: { body: "/repository/full_name" },
    },
  ],
};

/** The part of a scene that the storm needs. */
export interface StormScene {
  readonly livingGateways: readonly StormGateway[];
  readonly platform: { accountId: string };
  post(
    gateway: StormGateway,
    path: string,
    request: { headers: Record<string, string>; body: string },
  ): Promise<{ status: number; text: string } | undefined>;
  watch(gateway: StormGateway, path: string): Promise<Watcher>;
}

export interface StormGateway {
  readonly name: string;
  readonly url: string;
}

interface StormOptions {
  sockets?: number;
  /**
   * Maximum pause between two events of a sender, in ms. An event that the gateway accepts immediately may still wait
   * for its agent.
   */
  pauseMsMax?: number;
  /** Whether a client reopens a closed socket, as browsers do. If false, each unexpected close is a fault. */
  reopens?: boolean;
}

interface Shown {
  count: number;
  last: string | null;
}

interface Socket {
  watcher: Watcher;
  agent: number;
  gateway: StormGateway;
  /** The socket's gateway was killed. */
  isLost: boolean;
}

const agentPath = (agent: number) => `/${STORM_APP}/agents/repo/agent-${agent}`;

export class AppStorm {
  readonly faults: string[] = [];
  /** Number of a sender's requests that were not answered with 202: without a response, or with another status. */
  again = 0;
  repeats = 0;
  /** Number of closed sockets that were reopened. */
  reopened = 0;
  /** Number of accepted events that had not reached their agents when the last event was accepted. */
  waited = 0;
  readonly #scene: StormScene;
  readonly #random: SeededRandom;
  readonly #options: Required<StormOptions>;
  readonly #reopening = new Set<Promise<unknown>>();
  /** For each agent, the ids of the events that were answered with 202. */
  readonly #taken = Array.from({ length: AGENTS }, () => new Set<string>());
  readonly #sockets: Socket[] = [];
  #isSending = true;
  #isOver = false;
  #senders: Promise<unknown> = Promise.resolve();

  constructor(scene: StormScene, random: SeededRandom, options: StormOptions = {}) {
    this.#scene = scene;
    this.#random = random;
    this.#options = { sockets: 100, pauseMsMax: 100, reopens: false, ...options };
  }

  get taken(): number {
    return this.#taken.reduce((sum, { size }) => sum + size, 0);
  }

  /** Opens the sockets, then starts the senders. */
  async start(): Promise<void> {
    const { sockets } = this.#options;
    for (let first = 0; first < sockets; first += AGENTS) {
      const agents = Array.from({ length: Math.min(AGENTS, sockets - first) }, (_, at) => at);
      await Promise.all(agents.map((agent) => this.watch(agent)));
    }
    const senders = Array.from({ length: AGENTS * SENDERS_OF_EACH }, (_, number) =>
      this.#send(number, this.#random.fork()),
    );
    this.#senders = Promise.all(senders);
  }

  /** Resolves when `count` more events have been accepted. */
  more(count: number): Promise<unknown> {
    const goal = this.taken + count;
    return until(`${goal} events are taken`, () => this.taken >= goal, SHOWN_MS_MAX);
  }

  async watch(agent: number): Promise<void> {
    const gateway = await this.#livingGateway(this.#random);
    const watcher = await this.#scene.watch(gateway, agentPath(agent));
    const socket: Socket = { watcher, agent, gateway, isLost: false };
    this.#sockets.push(socket);
    void watcher.closed.then(({ code, reason }) => {
      if (this.#isOver || socket.isLost) return;
      socket.isLost = true;
      if (this.#options.reopens) this.#reopen(agent);
      else this.faults.push(`a socket of agent ${agent} was closed: ${code} ${reason}`);
    });
  }

  /** Waits until a gateway lives, because faults may kill all of them at the same time. */
  #livingGateway(random: SeededRandom): Promise<StormGateway> {
    const look = () => {
      const { livingGateways } = this.#scene;
      return livingGateways.length > 0 ? random.pick(livingGateways) : undefined;
    };
    return until("a gateway lives", look, SHOWN_MS_MAX);
  }

  /**
   * Marks the sockets of a gateway as lost, before the test kills the gateway. Returns the agents of these sockets.
   */
  lose(gateway: StormGateway): number[] {
    const lost = this.#sockets.filter((one) => one.gateway === gateway && !one.isLost);
    for (const socket of lost) socket.isLost = true;
    return lost.map(({ agent }) => agent);
  }

  /** Stops the senders. Resolves when each event that was sent has been answered. */
  async stop(): Promise<void> {
    this.#isSending = false;
    await this.#senders;
  }

  /** Checks that the accepted events, the stored state and the state that the sockets show are equal. */
  async compare(): Promise<void> {
    await Promise.all(this.#reopening);
    const began = await Promise.all(this.#taken.map((_, agent) => this.#read(agent)));
    this.waited = this.taken - began.reduce((sum, one) => sum + (one?.ids.length ?? 0), 0);
    for (const [agent, taken] of this.#taken.entries()) {
      let stored: { state: Shown; ids: string[] } = { state: { count: 0, last: null }, ids: [] };
      const all = async () => {
        stored = (await this.#read(agent)) ?? stored;
        return stored.ids.length >= taken.size;
      };
      await until(`agent ${agent} has its ${taken.size} events`, all, SHOWN_MS_MAX).catch(
        ({ message }) => this.faults.push(`${message}, but ${stored.ids.length}`),
      );
      this.#compare(agent, [...taken], stored);
      await this.#compareShown(agent, stored.state);
    }
    for (const socket of this.#sockets) this.#checkOrder(socket);
  }

  close(): void {
    this.#isSending = false;
    this.#isOver = true;
    for (const { watcher } of this.#sockets) watcher.socket.terminate();
  }

  /** Opens a new socket to the agent as soon as a gateway accepts it. */
  #reopen(agent: number): void {
    const isOpen = async () => {
      if (this.#isOver) return true;
      const opened = await this.watch(agent).then(
        () => true,
        () => false, // No gateway is ready.
      );
      if (!opened) await clock.wait(AGAIN_MS);
      return opened;
    };
    const reopening = until(`a socket of agent ${agent} opens again`, isOpen, SHOWN_MS_MAX)
      .catch(({ message }) => this.faults.push(message))
      .finally(() => this.#reopening.delete(reopening));
    this.#reopening.add(reopening);
    this.reopened += 1;
  }

  #compare(agent: number, taken: string[], { ids, state }: { ids: string[]; state: Shown }): void {
    const stored = new Set(ids);
    const missing = taken.filter((id) => !stored.has(id));
    const twice = ids.filter((id, at) => ids.indexOf(id) !== at);
    const sent = new Set(taken);
    const strange = ids.filter((id) => !sent.has(id));
    if (missing.length > 0) this.faults.push(`agent ${agent} has lost ${missing}`);
    if (twice.length > 0) this.faults.push(`agent ${agent} has twice ${twice}`);
    if (strange.length > 0) this.faults.push(`agent ${agent} has what nobody heard of ${strange}`);
    if (state.count !== ids.length) {
      this.faults.push(`agent ${agent} counts ${state.count} events and has ${ids.length}`);
    }
  }

  async #compareShown(agent: number, state: Shown): Promise<void> {
    const open = this.#sockets.filter((one) => one.agent === agent && !one.isLost);
    for (const [at, { watcher, gateway }] of open.entries()) {
      const isShown = () => isDeepStrictEqual(watcher.states.at(-1), state);
      await until("the last state is shown", isShown, SHOWN_MS_MAX).catch(() => {
        const last = JSON.stringify(watcher.states.at(-1));
        const { readyState } = watcher.socket;
        const which = `socket ${at} of ${open.length} at ${gateway.name} (${readyState})`;
        this.faults.push(
          `agent ${agent}, ${which} shows ${last}, stored is ${JSON.stringify(state)}`,
        );
      });
    }
  }

  /**
   * Checks the order of a socket's frames: the first state, then each event exactly once, each followed by the state
   * after that event.
   */
  #checkOrder({ watcher, agent, gateway }: Socket): void {
    let wanted: { type: string; count: number } | undefined;
    for (const text of watcher.frames) {
      const frame = JSON.parse(text) as { type: string; count: number; state: Shown };
      const isState = frame.type === "cf_agent_state";
      if (!isState && frame.type !== "event") continue;
      const count = isState ? frame.state.count : frame.count;
      if (wanted && (wanted.type !== frame.type || wanted.count !== count)) {
        const got = `${frame.type} ${count} where ${wanted.type} ${wanted.count} was due`;
        this.faults.push(`a socket of agent ${agent} at ${gateway.name} was shown ${got}`);
        return;
      }
      wanted = isState ? { type: "event", count: count + 1 } : { type: "cf_agent_state", count };
    }
  }

  async #send(number: number, random: SeededRandom): Promise<void> {
    const agent = number % AGENTS;
    for (let count = 0; this.#isSending; count++) {
      const id = `${number}.${count}`;
      await clock.wait(random.next() * this.#options.pauseMsMax);
      const first = this.#deliver(agent, id, random);
      // Senders repeat events that they believe lost, either while the first request is in flight or afterwards.
      const isDouble = random.chance(0.15);
      await Promise.all([first, isDouble && this.#deliver(agent, id, random)]);
      const isLate = random.chance(0.15);
      if (isLate) await this.#deliver(agent, id, random);
      this.repeats += Number(isDouble) + Number(isLate);
    }
  }

  /** Sends an event, and repeats it until a gateway answers 202 or refuses it. */
  async #deliver(agent: number, id: string, random: SeededRandom): Promise<void> {
    const path = `/${STORM_APP}/${agent % 2 === 0 ? "declared" : "by-code"}`;
    const body = JSON.stringify({ repository: { full_name: `agent-${agent}` }, id });
    const signature = createHmac("sha256", STORM_SECRET).update(body).digest("hex");
    const headers = {
      "content-type": "application/json",
      "x-github-event": "push",
      "x-github-delivery": id,
      "x-hub-signature-256": `sha256=${signature}`,
    };
    const isAnswered = async () => {
      const gateway = await this.#livingGateway(random);
      const answer = await this.#scene.post(gateway, path, { headers, body });
      if (answer?.status === 202) return true;
      this.again += 1;
      if (answer && answer.status < 500) {
        this.faults.push(`event ${id} was answered ${answer.status} ${answer.text}`);
        return true;
      }
      await clock.wait(AGAIN_MS);
      return false;
    };
    await until(`event ${id} is answered`, isAnswered, SHOWN_MS_MAX).catch(({ message }) =>
      this.faults.push(message),
    );
    this.#taken[agent]?.add(id);
  }

  async #read(agent: number): Promise<{ state: Shown; ids: string[] } | undefined> {
    const [gateway] = this.#scene.livingGateways;
    const url = `${gateway?.url}/apps/${this.#scene.platform.accountId}${agentPath(agent)}`;
    const response = await fetch(url);
    return response.ok ? ((await response.json()) as { state: Shown; ids: string[] }) : undefined;
  }
}
