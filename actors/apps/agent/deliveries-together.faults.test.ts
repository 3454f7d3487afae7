import { once } from "node:events";
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { expect } from "chai";
import { agent } from "../../../schemas/apps/agent.ts";
import { agentInbox, type Delivery } from "../../../schemas/apps/agent-inbox.ts";
import { mailIn } from "../../../schemas/split-streams.ts";
import { addressOf, shardOf } from "../../../schemas/subjects.ts";
import {
  type AgentHost,
  type AgentWorld,
  keyOf,
  startAgentWorld,
} from "../../../scripts/testing/agent-world.ts";
import { until } from "../../../scripts/testing/until.ts";
import { type Clock, systemClock } from "../../runtime/lib/clock.ts";
import { DELIVERIES_OF_MAIL_MS_MAX, DELIVERIES_TOGETHER_MS_MAX } from "./deliveries.ts";

/** The code writes nothing to its database, so only the server outside the agent can observe a second run. */
const CODE = `
import { Agent } from "trunkline/agents";
export class Hooks extends Agent {
  async onRequest(request) {
    const { status } = await fetch(this.env.OUTSIDE + "/" + (await request.text()));
    return new Response(null, { status });
  }
}
export default {};
`;
/** These four events arrive while the agent handles the first event. Then they are delivered together. */
const TOGETHER = ["1", "2", "3", "4"];
const ALL = ["0", ...TOGETHER];

describe("deliveries that come together", function () {
  this.timeout(240_000);
  let world: AgentWorld;
  let host: AgentHost;
  let outside: Server;
  let app: string;
  let runs: string[] = [];
  let answer: (response: ServerResponse, event: string) => void = () => {};
  let agents = 0;
  let key: string;
  /** The clock stands still unless a test moves it forward, so the machine's speed does not matter. */
  let monotonicMs = systemClock.monotonic();
  const clock: Clock = {
    now: () => systemClock.now(),
    monotonic: () => monotonicMs,
    wait: (ms, signal) => systemClock.wait(ms, signal),
  };
  before(async () => {
    outside = createServer(({ url = "" }, response) => {
      runs.push(url.slice(1));
      answer(response, url.slice(1));
    });
    await once(outside.listen(0, "127.0.0.1"), "listening");
    world = await startAgentWorld();
    host = await world.host("first", { clock });
    app = await world.deploy("hooks", CODE, {
      agents: [{ binding: "Hooks", class_name: "Hooks" }],
      vars: { OUTSIDE: `http://127.0.0.1:${(outside.address() as AddressInfo).port}` },
    });
  });
  after(async () => {
    await world[Symbol.asyncDispose]();
    await new Promise((resolve) => outside.close(resolve));
  });
  beforeEach(() => {
    runs = [];
    key = keyOf("hooks", "Hooks", `a${agents++}`);
  });

  /** Returns all deliveries when none waits any more. `others` answers the deliveries that were sent together. */
  async function delivered(
    others: typeof answer,
    meanwhile: () => Promise<void> = async () => {},
  ): Promise<Delivery[]> {
    const first = Promise.withResolvers<ServerResponse>();
    answer = (response, event) =>
      event === "0" ? first.resolve(response) : others(response, event);
    for (const text of ALL) {
      await world.client.call(agentInbox, key, "receive", {
        ...{ source: "test", eventId: text, bodyBytes: text.length },
        request: { method: "POST", url: "http://app/in", headers: [], body: { text } },
        keep: { days: 1, count: 10 },
      });
    }
    const held = await first.promise;
    await meanwhile();
    held.end();
    return until(
      "nothing waits",
      async () => {
        const listed = await world.client.call(agentInbox, key, "list", { limit: 10 });
        return listed.waiting === 0 && listed.deliveries.reverse();
      },
      90_000,
    );
  }

  /** Subscribes to the mail that is sent to the agent from now on. */
  const mailHeard = () => {
    const address = addressOf(agent.kind, key);
    return world.world.bus.connection.subscribe(mailIn(0).to(shardOf(address), address));
  };
  const fine = (response: ServerResponse) => response.end();
  const attemptsOf = (entries: Delivery[]) => entries.map(({ attempts }) => attempts);
  const kill = async () => {
    const { process: running } = await host.agents.processes.of(app);
    process.kill(running.pid, "SIGKILL");
  };

  it("run once each, in order, all for one mail", async () => {
    const mail = mailHeard();
    const entries = await delivered(fine);
    expect(mail.getReceived()).to.equal(1);
    mail.unsubscribe();
    expect(runs).to.deep.equal(ALL);
    expect(attemptsOf(entries)).to.deep.equal(ALL.map(() => 1));
    const [, ...together] = entries.map(({ lastAttemptAt }) => lastAttemptAt);
    expect(new Set(together).size).to.equal(1);
  });

  it("need no more mail when one arrives too many", async () => {
    const mail = mailHeard();
    await delivered(fine, () => world.client.send(agent, key, "deliver", {}));
    expect(runs).to.deep.equal(ALL);
    expect(mail.getReceived()).to.equal(2);
    mail.unsubscribe();
  });

  it("are taken for one mail until DELIVERIES_OF_MAIL_MS_MAX, and then for another mail", async () => {
    const mail = mailHeard();
    const entries = await delivered((response, event) => {
      if (event === TOGETHER[0]) monotonicMs += DELIVERIES_OF_MAIL_MS_MAX;
      response.end();
    });
    expect(runs).to.deep.equal(ALL);
    expect(attemptsOf(entries)).to.deep.equal(ALL.map(() => 1));
    expect(mail.getReceived()).to.equal(2);
    mail.unsubscribe();
  });

  it("do not begin after DELIVERIES_TOGETHER_MS_MAX", async () => {
    const entries = await delivered((response, event) => {
      if (event === "2") monotonicMs += DELIVERIES_TOGETHER_MS_MAX;
      response.end();
    });
    expect(runs).to.deep.equal(ALL);
    const [, one, two, three, four] = entries.map(({ lastAttemptAt }) => lastAttemptAt);
    expect(two).to.equal(one);
    expect(three).to.be.above(two ?? 0);
    expect(four).to.equal(three);
  });

  for (const bad of TOGETHER) {
    const place = `number ${bad}`;
    const runsWith = (times: number) =>
      ALL.flatMap((event) => Array.from({ length: event === bad ? times : 1 }, () => event));
    const attemptsWith = (times: number) => ALL.map((event) => (event === bad ? times : 1));

    it(`wait if ${place} fails, and only that one runs again`, async () => {
      const entries = await delivered((response, event) => {
        const isFirst = runs.filter((run) => run === event).length === 1;
        response.writeHead(event === bad && isFirst ? 500 : 200).end();
      });
      expect(runs).to.deep.equal(runsWith(2));
      expect(attemptsOf(entries)).to.deep.equal(attemptsWith(2));
    });

    it(`that ends its process once at ${place} counts as a failure of none, and no other runs again`, async () => {
      const entries = await delivered((response, event) => {
        const isFirst = runs.filter((run) => run === event).length === 1;
        if (event === bad && isFirst) void kill();
        else response.end();
      });
      expect(runs).to.deep.equal(runsWith(2));
      expect(attemptsOf(entries)).to.deep.equal(attemptsWith(1));
    });

    it(`that ends its process each time at ${place} counts as a failure of that one alone`, async () => {
      const entries = await delivered((response, event) => {
        const isEarly = runs.filter((run) => run === event).length <= 2;
        if (event === bad && isEarly) void kill();
        else response.end();
      });
      expect(runs).to.deep.equal(runsWith(3));
      expect(attemptsOf(entries)).to.deep.equal(attemptsWith(2));
    });
  }
});
