import { serialize } from "node:v8";
import { expect } from "chai";
import { MemoryHost, RefusedTurn } from "../package/testing/memory-host.ts";

import { AGENT_CLIENTS_MAX } from "./replies.ts";

const CODE = `
import { Agent } from "trunkline/agents";
export class Ledger extends Agent<any> {
  onStart() { this.sql\`CREATE TABLE IF NOT EXISTS entries (id INTEGER PRIMARY KEY, what TEXT NOT NULL)\`; }
  add(what) { this.sql\`INSERT INTO entries (what) VALUES (\${what})\`; return this.all().length; }
  all() { return this.sql\`SELECT what FROM entries ORDER BY id\`.map(({ what }) => what); }
  fill() {
    this.sql\`CREATE TABLE full (bytes BLOB)\`;
    this.sql\`CREATE TABLE ran (times INTEGER)\`;
    this.sql\`INSERT INTO ran VALUES (0)\`;
    for (const bytes of [500_000, 5_000]) {
      try { for (;;) this.sql\`INSERT INTO full VALUES (randomblob(\${bytes}))\`; } catch {}
    }
  }
  give(bytes) {
    this.sql\`UPDATE ran SET times = times + 1\`;
    return this.sql\`SELECT randomblob(\${bytes}) AS bytes\`[0].bytes;
  }
  onRequest() { return new Response(this.give(6_000_000)); }
  ran() { return this.sql\`SELECT times FROM ran\`[0].times; }
}
export default { fetch: () => new Response() };
`;
const AGENTS = [{ binding: "Ledger", className: "Ledger" }];

describe("the replies of an agent", function () {
  this.timeout(120_000);

  it("keeps the replies of calls that its clients have yet to settle, also in another process", async () => {
    const own = await MemoryHost.start({
      code: CODE,
      agents: AGENTS,
    });
    const args = new Uint8Array(serialize({ args: ["x"] }));
    const input = { type: "invoke", method: "add", args } as const;
    const add = (host: MemoryHost, client: string, number: number, settled: number) =>
      host.turn("Ledger/a", input, `${client}.${number}`, { client, number, settled });
    const count = async (host: MemoryHost) =>
      ((await host.invoke("Ledger/a", "all")) as string[]).length;
    try {
      // The client `waits` never gets the reply to its third call. The client `settles` has received the replies to
      // all earlier calls.
      for (let number = 1; number <= 40; number += 1) {
        await add(own, "waits", number, Math.min(number, 3));
        await add(own, "settles", number, number);
      }
      expect(await count(own)).to.equal(80);
      const next = await own.restart();
      try {
        await add(next, "waits", 3, 3);
        await add(next, "waits", 40, 3);
        await add(next, "settles", 40, 40);
        expect(await count(next)).to.equal(80);
        for (let number = 41; number <= 57; number += 1) await add(next, "waits", number, number);
        expect(await count(next)).to.equal(80 + 17);
        await add(next, "waits", 57, 57);
        expect(await count(next)).to.equal(80 + 17);
      } finally {
        await next.stop();
      }
    } finally {
      await own.stop();
    }
  });

  it("runs no copy of a call that its client has settled, also in another process", async () => {
    const own = await MemoryHost.start({ code: CODE, agents: AGENTS });
    const args = new Uint8Array(serialize({ args: ["x"] }));
    const input = { type: "invoke", method: "add", args } as const;
    const add = (host: MemoryHost, client: string, number: number, settled: number) =>
      host.turn("Ledger/a", input, `${client}.${number}`, { client, number, settled });
    const copy = (host: MemoryHost, number: number) =>
      add(host, "gateway", number, number).then(() => "run", String);
    const count = async (host: MemoryHost) =>
      ((await host.invoke("Ledger/a", "all")) as string[]).length;
    try {
      for (let number = 1; number <= 40; number += 1) await add(own, "gateway", number, number);
      expect(await copy(own, 1)).to.include("has settled it");
      const next = await own.restart();
      try {
        // A server that was suspended delivers these calls late. Each has its effect once, whether its reply is kept
        // or evicted.
        for (const number of [1, 2, 16])
          expect(await copy(next, number)).to.include("has settled it");
        for (const number of [39, 40]) await add(next, "gateway", number, number);
        expect(await count(next)).to.equal(40);
        // Each client has separate call numbers. When there is one client past the limit, the client that settled
        // longest ago is evicted.
        for (let client = 0; client < AGENT_CLIENTS_MAX; client += 1) {
          for (let number = 1; number <= 17; number += 1) {
            await add(next, `c${client}`, number, number);
          }
          if (client === AGENT_CLIENTS_MAX - 2)
            expect(await copy(next, 1)).to.include("has settled it");
        }
        await add(next, "gateway", 1, 1);
        expect(await count(next)).to.equal(40 + 17 * AGENT_CLIENTS_MAX + 1);
      } finally {
        await next.stop();
      }
    } finally {
      await own.stop();
    }
  });

  it("keeps replies up to the limit, and no more", async () => {
    const own = await MemoryHost.start({
      code: CODE,
      agents: AGENTS,
    });
    try {
      const add = (id: number) =>
        own.turn(
          "Ledger/a",
          { type: "invoke", method: "add", args: new Uint8Array(serialize({ args: ["x"] })) },
          `${id}`,
        );
      for (let id = 0; id <= 1_000; id += 100) {
        await Promise.all(Array.from({ length: 100 }, (_, index) => add(id + index)));
      }
      const before = ((await own.invoke("Ledger/a", "all")) as string[]).length;
      expect(before).to.equal(1_100);
      await add(1_099);
      await add(150);
      expect(await own.invoke("Ledger/a", "all")).to.have.length(before);
      await add(1);
      expect(await own.invoke("Ledger/a", "all")).to.have.length(before + 1);
    } finally {
      await own.stop();
    }
  });

  it("removes settled replies first, and none that may be asked for again", async () => {
    const own = await MemoryHost.start({ code: CODE, agents: AGENTS });
    const args = new Uint8Array(serialize({ args: ["x"] }));
    const input = { type: "invoke", method: "add", args } as const;
    const add = (client: string, number: number, settled: number) =>
      own.turn("Ledger/a", input, `${client}.${number}`, { client, number, settled });
    try {
      for (let from = 1; from <= 984; from += 82) {
        await Promise.all(Array.from({ length: 82 }, (_, index) => add("waits", from + index, 1)));
      }
      for (let number = 1; number <= 17; number += 1) await add("settles", number, number);
      await add("waits", 1, 1);
      expect(await own.invoke("Ledger/a", "all")).to.have.length(1_001);
      // A call whose reply was evicted does not run again.
      expect(await add("settles", 1, 17).catch(String)).to.include("has settled it");
      expect(await own.invoke("Ledger/a", "all")).to.have.length(1_001);
    } finally {
      await own.stop();
    }
  });

  describe("of an agent whose database is full", () => {
    const LIMIT = 8 * 1024 ** 2;
    let own: MemoryHost;
    before(async () => {
      own = await MemoryHost.start({
        code: CODE,
        agents: AGENTS,
        limits: { databaseBytes: LIMIT },
      });
    });
    after(() => own.stop());
    const give = (key: string, id: string, bytes: number) => {
      const args = new Uint8Array(serialize({ args: [bytes] }));
      return own.turn(key, { type: "invoke", method: "give", args }, id);
    };
    const ran = (key: string) => own.invoke(key, "ran");

    it("answers with a reply that it cannot keep, and refuses to run the call again", async () => {
      const key = "Ledger/large";
      await own.invoke(key, "fill");
      const first = await give(key, "same", 6_000_000);
      expect(first.type === "invoked" && first.result.length).to.be.greaterThan(6_000_000);
      const again = await give(key, "same", 6_000_000).catch((error: unknown) => error);
      expect(again).to.be.instanceOf(RefusedTurn);
      expect((again as RefusedTurn).error.refusal).to.equal("may_have_run");
      expect(await ran(key)).to.equal(1);
    });

    it("keeps the newest replies in the room of older ones", async () => {
      const key = "Ledger/many";
      await own.invoke(key, "fill");
      for (let id = 1; id <= 8; id += 1) {
        const reply = await give(key, `${id}`, 1_000_000);
        expect(await give(key, `${id}`, 1_000_000)).to.deep.equal(reply);
        expect(await ran(key)).to.equal(id);
      }
    });

    it("keeps the status of a delivery, and goes on with the next one", async () => {
      const key = "Ledger/events";
      await own.invoke(key, "fill");
      for (const _ of [1, 2]) {
        const results = await own.deliver(key, [
          ["a", "/"],
          ["b", "/"],
        ]);
        for (const result of results) expect(result.status).to.equal("fulfilled");
      }
      // The second event may have been left out the first time, but none was handled twice.
      expect(await ran(key)).to.equal(2);
    });
  });
});
