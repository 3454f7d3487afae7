import { join } from "node:path";
import { expect } from "chai";
import { agent } from "../../../schemas/apps/agent.ts";
import { SocketBatch, socketsSubject } from "../../../schemas/apps/agent-sockets.ts";
import { ActorProcess } from "../../../scripts/testing/actor-process.ts";
import { AGENT_APP, AGENT_APP_CONFIG } from "../../../scripts/testing/agent-app.ts";
import {
  type AgentWorld,
  keyOf,
  SECRETS_KEY,
  startAgentWorld,
} from "../../../scripts/testing/agent-world.ts";
import { until } from "../../../scripts/testing/until.ts";

const MAIN = join(import.meta.dirname, "../../../scripts/testing/agent-host-main.ts");
const AGENTS = 8;
const GATEWAY = "test";

/** Applies batches as a gateway does with respect to order and loss: keeps the latest state of each socket. */
class Sockets {
  readonly states = new Map<string, number>();
  /** For each agent, the last commit whose actions were applied. */
  readonly #done = new Map<string, number>();
  readonly #batches = new Map<string, number>();
  readonly faults: string[] = [];

  constructor(world: AgentWorld) {
    world.world.bus.connection.subscribe(socketsSubject(GATEWAY), {
      callback: (error, msg) => {
        if (error) return;
        const batch = SocketBatch.parse(msg.json());
        this.#take(batch);
        msg.respond(JSON.stringify({ gone: [] }));
      },
    });
  }

  #take({ agent: key, owner, batch, commit, actions }: SocketBatch): void {
    const from = `${key} ${owner}`;
    const last = this.#batches.get(from) ?? 0;
    if (batch <= last) return;
    if (batch !== last + 1) this.faults.push(`${from}: batch ${batch} after ${last}`);
    this.#batches.set(from, batch);
    if (commit !== undefined) {
      if (commit <= (this.#done.get(key) ?? 0)) return;
      this.#done.set(key, commit);
    }
    for (const action of actions) {
      if (!("frame" in action) || !("text" in action.frame)) continue;
      const frame = JSON.parse(action.frame.text);
      if (frame.type !== "cf_agent_state") continue;
      const before = this.states.get(key) ?? -1;
      if (frame.state.count < before)
        this.faults.push(`${key}: ${frame.state.count} after ${before}`);
      this.states.set(key, frame.state.count);
    }
  }
}

describe("agents whose hosts, processes and bus are killed", function () {
  this.timeout(300_000);

  it("have each event that was answered exactly once, and show the state that is stored", async () => {
    await using world = await startAgentWorld();
    const { url } = world.world;
    const hosts: ActorProcess[] = [];
    const start = async (name: string) => {
      const host = new ActorProcess({
        url,
        name,
        program: { main: MAIN, parameters: [SECRETS_KEY] },
      });
      await host.ready;
      return host;
    };
    try {
      hosts.push(await start("one"), await start("two"));
      await world.deploy("hooks", AGENT_APP, AGENT_APP_CONFIG);
      const sockets = new Sockets(world);
      const keys = Array.from({ length: AGENTS }, (_, at) => keyOf("hooks", "Counter", `a${at}`));
      for (const [at, key] of keys.entries()) {
        await world.client.call(agent, key, "connect", {
          connection: { id: `c${at}`, number: at + 1, gateway: GATEWAY },
          request: { method: "GET", url: "http://app/agents/counter/x", headers: [] },
        });
      }
      let sending = true;
      const told = new Map<string, string[]>();
      const senders = keys.flatMap((key) => {
        const mine: string[] = [];
        told.set(key, mine);
        return [0, 1].map(async (lane) => {
          for (let count = 0; sending; count++) {
            const id = `${lane}.${count}`;
            await send(world, key, id);
            mine.push(id);
          }
        });
      });
      const more = (by: number) => {
        const goal = total(told) + by;
        return until("more events are answered", () => total(told) >= goal, 60_000);
      };
      await more(100);
      killAppProcess(hosts[0]);
      await more(100);
      await hosts.shift()?.kill();
      await more(100);
      hosts.push(await start("three"));
      await more(100);
      await world.world.nats?.restart();
      await more(100);
      await hosts.shift()?.stop();
      await more(100);
      sending = false;
      await Promise.all(senders);
      for (const [key, mine] of told) {
        const { count, events } = await read(world, key);
        const ids = events.map(({ id }) => id);
        expect(ids.toSorted(), key).to.deep.equal(mine.toSorted());
        expect(
          events.filter(({ times }) => times !== 1),
          key,
        ).to.deep.equal([]);
        expect(count).to.equal(mine.length);
        await until("its socket shows it", () => sockets.states.get(key) === count, 60_000);
      }
      expect(sockets.faults).to.deep.equal([]);
    } finally {
      for (const host of hosts) await host.kill();
    }
  });
});

async function send(world: AgentWorld, key: string, id: string): Promise<void> {
  await world.client.call(
    agent,
    key,
    "request",
    {
      method: "POST",
      url: "http://app/agents/counter/x/event",
      headers: [["content-type", "application/json"]],
      body: { text: JSON.stringify({ id }) },
    },
    { deadlineMs: 60_000 },
  );
}

async function read(world: AgentWorld, key: string) {
  const { body } = await world.client.call(agent, key, "request", {
    method: "GET",
    url: "http://app/agents/counter/x/state",
    headers: [],
  });
  return JSON.parse(body && "text" in body ? body.text : "") as {
    count: number;
    events: { id: string; times: number }[];
  };
}

/** Kills the app process of this host with SIGKILL. */
function killAppProcess(host: ActorProcess | undefined): void {
  const [pid] = host?.children() ?? [];
  if (pid !== undefined) process.kill(pid, "SIGKILL");
}

const total = (told: ReadonlyMap<string, readonly string[]>) =>
  [...told.values()].reduce((sum, { length }) => sum + length, 0);
