import { expect } from "chai";
import { MemoryHost } from "../package/testing/memory-host.ts";
import { DELIVERIES_UNRECORDED_BYTES_MAX } from "./delivery-chain.ts";

const CODE = `
import { Agent } from "trunkline/agents";
export class Ledger extends Agent {
  initialState = { count: 0 };
  onStart() { this.sql\`CREATE TABLE IF NOT EXISTS entries (what TEXT, bytes BLOB)\`; }
  async onRequest(request) {
    const { pathname } = new URL(request.url);
    const bytes = pathname.startsWith("/large") ? ${DELIVERIES_UNRECORDED_BYTES_MAX} : 1;
    this.sql\`INSERT INTO entries VALUES (\${pathname}, randomblob(\${bytes}))\`;
    if (pathname === "/fail") return new Response("no", { status: 503 });
    if (pathname === "/throw") throw new Error("it broke");
    if (pathname === "/outside") {
      await fetch("https://elsewhere.example/");
      this.sql\`INSERT INTO entries VALUES ('back', NULL)\`;
    }
    this.setState({ count: this.state.count + 1 });
    return new Response("OK");
  }
  all() { return this.sql\`SELECT what FROM entries ORDER BY rowid\`.map(({ what }) => what); }
}
export default {};
`;

describe("deliveries in an agent's process", function () {
  this.timeout(60_000);
  let host: MemoryHost;
  let fresh = 0;
  const options = {
    code: CODE,
    agents: [{ binding: "Ledger", className: "Ledger" }],
    operate: async () => ({ type: "answer" as const, answer: { status: 200, headers: [] } }),
  };
  before(async () => {
    host = await MemoryHost.start(options);
  });
  after(() => host.stop());

  /**
   * Runs the deliveries. Returns their outcomes in the order of their ids, and the number of records that they took.
   */
  async function delivered(paths: readonly string[], key = `Ledger/a${fresh++}`) {
    await host.invoke(key, "all");
    const before = host.logs.get(key)?.commits ?? 0;
    const results = await host.deliver(
      key,
      paths.map((path, index) => [`${index}`, path]),
    );
    const outcomes = results.map((result) => {
      if (result.status === "rejected") return "refused";
      const { value } = result;
      return value.type === "answer" ? value.answer.status : value.type;
    });
    const records = (host.logs.get(key)?.commits ?? 0) - before;
    return { outcomes, records, all: await host.invoke(key, "all") };
  }

  const letters = ["/a", "/b", "/c", "/d", "/e"];

  it("that arrive together run in order, and are one record", async () => {
    const { outcomes, records, all } = await delivered(letters);
    expect(outcomes).to.deep.equal(letters.map(() => 200));
    expect(all).to.deep.equal(letters);
    expect(records).to.equal(1);
  });

  for (const bad of ["/fail", "/throw"]) {
    it(`do not begin after one that answers ${bad}`, async () => {
      const { outcomes, records, all } = await delivered(["/a", bad, "/c", "/d"]);
      const [first, second, ...others] = outcomes;
      expect([first, second]).to.deep.equal([200, bad === "/fail" ? 503 : "refused"]);
      expect(others).to.deep.equal(["nothing", "nothing"]);
      expect(all).to.deep.equal(["/a", bad]);
      expect(records).to.equal(1);
    });
  }

  for (const [what, path, written] of [
    ["goes outside", "/outside", ["/outside", "back"]],
    ["writes DELIVERIES_UNRECORDED_BYTES_MAX", "/large", ["/large"]],
  ] as const) {
    it(`do not begin after one that ${what} before its record is stored`, async () => {
      const { outcomes, all } = await delivered(["/a", path, "/c", "/d"]);
      expect(outcomes).to.deep.equal([200, 200, "nothing", "nothing"]);
      expect(all).to.deep.equal(["/a", ...written]);
    });
  }

  it("do not begin after one whose state is watched, before its record is stored", async () => {
    const key = `Ledger/a${fresh++}`;
    await host.connect(key, { id: "one", number: 1, gateway: "g" });
    const { outcomes, records } = await delivered(["/a", "/b"], key);
    expect(outcomes).to.deep.equal([200, "nothing"]);
    expect(records).to.equal(1);
  });

  it("do not begin after one that took longer than all may together", async () => {
    const slow = await MemoryHost.start({ ...options, limits: { togetherMs: 0 } });
    try {
      const results = await slow.deliver("Ledger/a", [
        ["0", "/a"],
        ["1", "/b"],
      ]);
      expect(results.map((one) => one.status === "fulfilled" && one.value.type)).to.deep.equal([
        "answer",
        "nothing",
      ]);
    } finally {
      await slow.stop();
    }
  });

  it("run again if their process ends before their record is stored, and none has two effects", async () => {
    const key = "Ledger/crashed";
    let isDown = false;
    const first = await MemoryHost.start({
      ...options,
      beforeCommit: async () => {
        if (isDown) await first.kill();
      },
    });
    let next: MemoryHost | undefined;
    try {
      await first.deliver(key, [["0", "/a"]]);
      isDown = true;
      const lost = await first.deliver(key, [
        ["1", "/b"],
        ["2", "/c"],
      ]);
      expect(lost.map(({ status }) => status)).to.deep.equal(["rejected", "rejected"]);
      next = await first.restart({ beforeCommit: () => {} });
      for (let time = 0; time < 2; time++) {
        for (const [index, path] of ["/a", "/b", "/c"].entries()) {
          await next.deliver(key, [[`${index}`, path]]);
        }
      }
      expect(await next.invoke(key, "all")).to.deep.equal(["/a", "/b", "/c"]);
    } finally {
      await first.stop();
      await next?.stop();
    }
  });
});
