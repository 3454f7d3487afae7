import { expect } from "chai";
import { SeededRandom } from "../../../scripts/testing/seeded-random.ts";
import { until } from "../../../scripts/testing/until.ts";
import { MemoryHost } from "../package/testing/memory-host.ts";

const CODE = `
import { Agent } from "trunkline/agents";
export class Account extends Agent<any, { count: number }> {
  initialState = { count: 0 };
  onStart() {
    this.sql\`CREATE TABLE IF NOT EXISTS entries (id TEXT NOT NULL, body TEXT)\`;
    this.sql\`CREATE TABLE IF NOT EXISTS queued (id TEXT NOT NULL)\`;
    this.sql\`CREATE TABLE IF NOT EXISTS submitted (id TEXT NOT NULL)\`;
  }
  async take(id, size) {
    this.sql\`INSERT INTO entries VALUES (\${id}, \${"x".repeat(size)})\`;
    this.setState({ count: this.state.count + 1 });
    await this.queue("fromQueue", id, { retry: { maxAttempts: 100 } });
    await this.submit("fromSubmission", id, { idempotencyKey: id, retry: { maxAttempts: 100 } });
    return this.state.count;
  }
  fromQueue(id) { this.sql\`INSERT INTO queued VALUES (\${id})\`; }
  fromSubmission(id) { this.sql\`INSERT INTO submitted VALUES (\${id})\`; }
  ids(table) { return this.ctx.storage.sql.exec("SELECT id FROM " + table + " ORDER BY rowid").toArray().map(({ id }) => id); }
  told() { return this.state.count; }
  left() { return [this.getQueue().length, this.ctx.storage.sql.exec("PRAGMA integrity_check").one().integrity_check]; }
}
`;

const KEYS = ["Account/a", "Account/b"];
const LIVES = 5;
const CALLS = 40;

describe("an app's process that is killed at any moment", function () {
  this.timeout(120_000);
  const seed = Number(process.env.SEED ?? SeededRandom.newSeed());

  it(`each call has its effect once, and every answered effect is stored (seed ${seed})`, async () => {
    const seeded = new SeededRandom(seed);
    const random = () => seeded.next();
    const options = {
      code: CODE,
      agents: [{ binding: "Account", className: "Account" }],
      beforeCommit: async () => {
        if (random() < 0.3) await new Promise((resolve) => setTimeout(resolve, random() * 8));
      },
    };
    let host = await MemoryHost.start(options);
    const answered = new Map(KEYS.map((key) => [key, new Set<string>()]));
    const shown = new Map<string, number>();
    try {
      for (const life of Array.from({ length: LIVES }).keys()) {
        const killAfter = 1 + Math.floor(random() * KEYS.length * CALLS);
        let settled = 0;
        const reached = Promise.withResolvers<void>();
        const calls = KEYS.flatMap((key) =>
          Array.from({ length: CALLS }, async (_, index) => {
            const id = `${life}-${index}`;
            const size = Math.floor(random() * 3_000);
            const begun = host;
            await new Promise((resolve) => setTimeout(resolve, random() * 60));
            try {
              await invoke(begun, key, id, size);
              answered.get(key)?.add(id);
            } catch {
              // The call failed because the process was killed. It is repeated below, as a caller without an answer
              // would do.
            }
            settled += 1;
            if (settled === killAfter) reached.resolve();
          }),
        );
        if (life < LIVES - 1) {
          await reached.promise;
          await host.kill();
        }
        await Promise.all(calls);
        for (const key of KEYS) {
          const log = host.logs.get(key);
          expect((log?.commits ?? 0) >= (shown.get(key) ?? 0)).to.equal(true);
          shown.set(key, log?.commits ?? 0);
        }
        host = await host.restart();
        const missing = KEYS.flatMap((key) =>
          Array.from({ length: CALLS }, (_, index) => ({ key, id: `${life}-${index}` })),
        ).filter(({ key, id }) => answered.get(key)?.has(id) !== true);
        for (const { key, id } of missing) await invoke(host, key, id, 10);
      }
      const all = Array.from(
        { length: LIVES * CALLS },
        (_, index) => `${Math.floor(index / CALLS)}-${index % CALLS}`,
      ).sort();
      for (const key of KEYS) {
        await until(
          "the queue is empty",
          async () => ((await host.invoke(key, "left")) as unknown[])[0] === 0,
        );
        const ids = async (table: string) =>
          ((await host.invoke(key, "ids", table)) as string[]).sort();
        await until(
          "all submissions ran",
          async () => (await ids("submitted")).length >= all.length,
        );
        expect(await ids("entries")).to.deep.equal(all);
        expect(await ids("queued")).to.deep.equal(all);
        expect(await ids("submitted")).to.deep.equal(all);
        expect(await host.invoke(key, "told")).to.equal(all.length);
        expect(await host.invoke(key, "left")).to.deep.equal([0, "ok"]);
      }
    } finally {
      await host.stop();
    }
  });
});

async function invoke(host: MemoryHost, key: string, id: string, size: number): Promise<unknown> {
  const { serialize } = await import("node:v8");
  const args = new Uint8Array(serialize({ args: [id, size] }));
  return host.turn(key, { type: "invoke", method: "take", args }, id);
}
