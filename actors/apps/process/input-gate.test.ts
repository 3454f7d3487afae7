import { expect } from "chai";
import { SeededRandom } from "../../../scripts/testing/seeded-random.ts";
import { MemoryHost } from "../package/testing/memory-host.ts";

const CODE = `
import { Agent, callable } from "trunkline/agents";
import { setTimeout as slept } from "node:timers/promises";

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export class Counter extends Agent {
  /**
   * Each step waits for another kind of event, then reads a value and writes it back. Between the read and the write,
   * it awaits only storage operations.
   */
  steps = {
    plain: () => this.add(),
    timer: async (ms) => { await sleep(ms); return this.add(); },
    promised: async (ms) => { await slept(ms); return this.add(); },
    immediate: async () => { await new Promise((resolve) => setImmediate(resolve)); return this.add(); },
    interval: (ms) => new Promise((resolve) => {
      const timer = setInterval(() => { clearInterval(timer); resolve(this.add()); }, ms);
    }),
    fetched: async () => { await fetch("https://elsewhere.example/"); return this.add(); },
    synced: async () => {
      const before = (await this.ctx.storage.get("n")) ?? 0;
      await this.ctx.storage.sync();
      await this.ctx.storage.put("n", before + 1);
      return before + 1;
    },
    block: (ms) => this.ctx.blockConcurrencyWhile(() => this.slowly(() => sleep(ms))),
    fetchingBlock: () => this.ctx.blockConcurrencyWhile(() => this.slowly(() => fetch("https://elsewhere.example/"))),
    nested: (ms) => this.ctx.blockConcurrencyWhile(async () => {
      await sleep(ms);
      return this.ctx.blockConcurrencyWhile(() => this.slowly(() => slept(ms)));
    }),
  };
  async add() {
    const before = (await this.ctx.storage.get("n")) ?? 0;
    await this.ctx.storage.list();
    await this.ctx.storage.put("n", before + 1);
    return before + 1;
  }
  async slowly(wait) {
    const before = (await this.ctx.storage.get("n")) ?? 0;
    await wait();
    await this.ctx.storage.put("n", before + 1);
    return before + 1;
  }
  async onRequest(request) {
    const { step, ms } = await request.json();
    return Response.json(await this.steps[step](ms));
  }
  async onMessage(connection, text) {
    const { step, ms } = JSON.parse(text);
    await this.steps[step](ms);
  }
  call(step, ms) { return this.steps[step](ms); }
  async later(step, times) { for (let i = 0; i < times; i += 1) await this.schedule(0, "scheduled", step); }
  async scheduled(step) { await this.steps[step](1); }
  count() { return this.ctx.storage.get("n"); }
  async failing() {
    const failed = await this.ctx.blockConcurrencyWhile(async () => { await sleep(1); throw new Error("broken"); }).catch(({ message }) => message);
    return [failed, await this.add()];
  }
  cleared() {
    return this.ctx.blockConcurrencyWhile(async () => {
      this.fired = 0;
      const timers = await this.started;
      await sleep(30);
      for (const timer of timers) clearTimeout(timer);
    });
  }
  async startTimers() {
    const { promise, resolve } = Promise.withResolvers();
    this.started = promise;
    const block = this.cleared();
    // These timers are set outside of the block. They fire while it is active, and are held until it ends.
    resolve([setTimeout(() => { this.fired += 1; }, 1), setTimeout(() => { this.fired += 1; }, 2)]);
    const kept = new Promise((resolve) => setTimeout(resolve, 3, "an argument"));
    await block;
    return [await kept, this.fired];
  }
  endless() { return this.ctx.blockConcurrencyWhile(() => new Promise(() => {})); }
}
`;

const STEPS = ["plain", "timer", "promised", "immediate", "interval", "fetched", "synced"];
const BLOCKS = ["block", "fetchingBlock", "nested"];

describe("an app's process: events of one agent", function () {
  this.timeout(120_000);
  const nothing = { type: "answer" as const, answer: { status: 204, headers: [] } };
  const seed = Number(process.env.SEED ?? SeededRandom.newSeed());
  let host: MemoryHost;
  before(async () => {
    host = await MemoryHost.start({ code: CODE, operate: async () => nothing });
  });
  after(() => host.stop());

  const post = (key: string, step: string, ms = 1) =>
    host.request(key, "/", { method: "POST", body: JSON.stringify({ step, ms }) });

  for (const step of [...STEPS, ...BLOCKS]) {
    it(`ten requests at once that read, wait and write lose nothing: ${step}`, async () => {
      const key = `Counter/${step}`;
      const answers = await Promise.all(Array.from({ length: 10 }, () => post(key, step)));
      const counts = (await Promise.all(answers.map((answer) => answer.json()))) as number[];
      expect(counts.toSorted((one, other) => one - other)).to.deep.equal(
        Array.from({ length: 10 }, (_, index) => index + 1),
      );
    });
  }

  it(`random mixtures count as if each came alone (SEED=${seed})`, async () => {
    const random = new SeededRandom(seed);
    const all = [...STEPS, ...BLOCKS];
    for (let round = 0; round < 10; round += 1) {
      const key = `Counter/random-${round}`;
      const socket = { gateway: "g".repeat(32), number: round + 1, id: `socket-${round}` };
      await host.connect(key, socket);
      const done: Promise<unknown>[] = [];
      let frames = 0;
      for (let call = 0; call < 25; call += 1) {
        const step = random.pick(all);
        const ms = random.integer(0, 3);
        const way = random.integer(0, 2);
        if (way === 0) done.push(post(key, step, ms));
        else if (way === 1) done.push(host.invoke(key, "call", step, ms));
        else {
          const texts = [0, 1].map(() => JSON.stringify({ step, ms }));
          const input = {
            type: "frames" as const,
            connection: socket,
            first: frames + 1,
            frames: texts,
          };
          frames += texts.length;
          done.push(host.turn(key, input));
        }
      }
      await Promise.all(done);
      expect(await host.invoke(key, "count")).to.equal(25 + frames / 2);
    }
  });

  it("a block that fails lets the others go on, and an ended one a timer that fired in it", async () => {
    const key = "Counter/failing";
    expect(await host.invoke(key, "failing")).to.deep.equal(["broken", 1]);
    expect(await host.invoke(key, "startTimers")).to.deep.equal(["an argument", 0]);
  });

  it("a block that does not end is given up after a turn's time, and its agent goes on", async () => {
    await using brief = {
      host: await MemoryHost.start({ code: CODE, limits: { turnMs: 300 } }),
      [Symbol.asyncDispose]: () => brief.host.stop(),
    };
    const key = "Counter/endless";
    const failed = await brief.host.invoke(key, "endless").catch((error: Error) => error.message);
    expect(failed).to.contain("300 ms");
    expect(await brief.host.invoke(key, "call", "plain")).to.equal(1);
  });
});
