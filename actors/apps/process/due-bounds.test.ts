import { expect } from "chai";
import { until } from "../../../scripts/testing/until.ts";
import { MemoryHost } from "../package/testing/memory-host.ts";

const MEGABYTES = 4;
const BOUND = /database would be larger than 4 MB|a value has at most 4 MB/;
const WORK_MS = 300;
const CODE = `
import { Agent } from "trunkline/agents";
const piece = "x".repeat(100_000);
const told = async (work) => {
  try { return await work(); } catch (error) { return { name: error.name, message: error.message }; }
};
const more = async (work) => { for (let index = 0; ; index++) await work(index); };
export class Full extends Agent {
  onStart() { this.sql\`CREATE TABLE IF NOT EXISTS t (v TEXT)\`; this.runs = 0; }
  noop() { this.runs += 1; }
  runsSoFar() { return this.runs; }
  fills = {
    queue: () => more(() => this.queue("noop", piece)),
    schedule: () => more((index) => this.schedule(3_600 + index, "noop", piece)),
    submit: () => more((index) => this.submit("noop", { piece, index })),
    storage: () => more((index) => this.ctx.storage.put("k" + index, piece)),
    state: () => more((index) => this.setState({ text: piece.repeat(index) })),
    sql: () => more(() => this.sql\`INSERT INTO t VALUES (\${piece})\`),
    transaction: () => more(() => this.ctx.storage.transactionSync(() => this.sql\`INSERT INTO t VALUES (\${piece})\`)),
  };
  fill(how) { return told(this.fills[how]); }
  async empty() {
    this.sql\`DELETE FROM t\`;
    this.dequeueAll();
    for (const { id } of this.getSchedules()) await this.cancelSchedule(id);
    for (const { submissionId } of await this.listSubmissions()) await this.deleteSubmission(submissionId);
    await this.ctx.storage.deleteAll();
    this.setState({});
    this.sql\`INSERT INTO t VALUES ('room')\`;
    return this.sql\`SELECT count(*) AS n FROM t\`[0].n;
  }
  /** Goes on after what was refused. */
  half() {
    const refused = [];
    const attempt = (work) => { try { work(); } catch (error) { refused.push(error.message); } };
    attempt(() => this.ctx.storage.transactionSync(() => {
      this.sql\`INSERT INTO t VALUES ('first')\`;
      attempt(() => { for (;;) this.sql\`INSERT INTO t VALUES (\${piece})\`; });
      attempt(() => this.sql\`INSERT INTO t VALUES ('last')\`);
    }));
    return { refused, rows: this.sql\`SELECT count(*) AS n FROM t\`[0].n };
  }
  never(payload, { signal } = {}) {
    signal?.addEventListener("abort", () => { this.heard = String(signal.reason); });
    return new Promise(() => {});
  }
  plan(count) {
    const before = process.memoryUsage().rss;
    for (let index = 0; index < count; index++) this.schedule(3_600 + index, "noop", { index });
    return new Promise((resolve) => setTimeout(() => resolve(process.memoryUsage().rss - before), 100));
  }
  heardOf() { return this.heard; }
  async result() { return "x".repeat(5_000_000); }
  start(method, options) { return this.submit(method, null, options); }
  put(method) { return this.queue(method, null, { retry: { maxAttempts: 1 } }); }
  items() { return this.getQueue(); }
  wait(id) { return this.waitForSubmission(id); }
}
`;

describe("an app's process: bounds of due work", function () {
  this.timeout(120_000);
  let host: MemoryHost;
  before(async () => {
    host = await MemoryHost.start({
      code: CODE,
      agents: [{ binding: "Full", className: "Full" }],
      limits: { databaseBytes: MEGABYTES * 1024 ** 2, workMs: WORK_MS },
    });
  });
  after(() => host.stop());
  const status = async (key: string, id: string, at = host) =>
    ((await at.invoke(key, "inspectSubmission", id)) as { status: string }).status;

  for (const how of ["queue", "schedule", "submit", "storage", "state", "sql", "transaction"]) {
    it(`a database that is full refuses more, names its bound, and can be emptied: ${how}`, async () => {
      const key = `Full/${how}`;
      const { message } = (await host.invoke(key, "fill", how)) as { message: string };
      expect(message).to.match(BOUND);
      expect(await host.invoke(key, "empty")).to.equal(1);
    });
  }

  it("plans of one turn do not pile up in its process", async () => {
    const own = await MemoryHost.start({
      code: CODE,
      agents: [{ binding: "Full", className: "Full" }],
    });
    try {
      const grown = (await own.invoke("Full/plans", "plan", 20_000)) as number;
      // SQLite writes ten times this number of bytes for these rows, so the limit shows that the process does not
      // keep them all in memory.
      expect(grown).to.be.lessThan(150_000_000);
    } finally {
      await own.stop();
    }
  });

  it("queued items run even if nothing more fits", async () => {
    await host.invoke("Full/runs", "fill", "queue");
    const queued = ((await host.invoke("Full/runs", "items")) as unknown[]).length;
    await until("all have run", async () => {
      const items = (await host.invoke("Full/runs", "items")) as unknown[];
      return items.length === 0;
    });
    expect(await host.invoke("Full/runs", "runsSoFar")).to.be.at.least(queued);
  });

  it("a transaction that a full database has undone is undone whole, whatever its code does", async () => {
    const { refused, rows } = (await host.invoke("Full/half", "half")) as {
      refused: string[];
      rows: number;
    };
    expect(rows).to.equal(0);
    expect(refused[0]).to.include("would be larger than");
    for (const message of refused.slice(1)) expect(message).to.include("was undone");
  });

  it("a submission whose method never ends has failed after its time, and hears of it", async () => {
    const key = "Full/never";
    const { submissionId } = (await host.invoke(key, "start", "never")) as { submissionId: string };
    const ended = await host.invoke(key, "wait", submissionId);
    expect(ended).to.deep.include({ status: "error" });
    expect((ended as { error: string }).error).to.include(`took longer than ${WORK_MS} ms`);
    expect(await host.invoke(key, "heardOf")).to.include("took longer");
    await until("the agent need not stay", () => host.idle.get(key));
  });

  it("submissions that never end hold up others for their time and no longer", async () => {
    const key = "Full/others";
    for (let index = 0; index < 20; index++) await host.invoke(key, "start", "never");
    const { submissionId } = (await host.invoke(key, "start", "noop")) as { submissionId: string };
    await until("it has run", async () => (await status(key, submissionId)) === "completed");
  });

  it("a submission that is cancelled makes room at once, whether or not its method listens", async () => {
    const key = "Full/cancelled";
    const ids: string[] = [];
    // A new process, in which no earlier work holds a place until its time limit.
    const own = await MemoryHost.start({
      code: CODE,
      agents: [{ binding: "Full", className: "Full" }],
    });
    try {
      for (let index = 0; index < 8; index++) {
        const { submissionId } = (await own.invoke(key, "start", "never")) as {
          submissionId: string;
        };
        ids.push(submissionId);
      }
      await until("they run", async () => (await status(key, ids[7] ?? "", own)) === "running");
      for (const id of ids) await own.invoke(key, "cancelSubmission", id);
      await until("the agent need not stay", () => own.idle.get(key));
      for (const id of ids) expect(await status(key, id, own)).to.equal("aborted");
    } finally {
      await own.stop();
    }
  });

  it("a submission whose result does not fit says so", async () => {
    const key = "Full/result";
    const { submissionId } = (await host.invoke(key, "start", "result")) as {
      submissionId: string;
    };
    const ended = (await host.invoke(key, "wait", submissionId)) as { error: string };
    expect(ended).to.deep.include({ status: "error" });
    expect(ended.error).to.match(BOUND);
  });

  it("an item of the queue that never ends has failed after its time, and the next one runs", async () => {
    const key = "Full/stuck";
    await host.invoke(key, "put", "never");
    await host.invoke(key, "put", "noop");
    await until("the second has run", async () => (await host.invoke(key, "runsSoFar")) === 1);
    const [item, ...others] = (await host.invoke(key, "items")) as Record<string, unknown>[];
    expect(others).to.deep.equal([]);
    expect(item).to.deep.include({ status: "failed", attempts: 1 });
    expect(item?.error).to.include(`took longer than ${WORK_MS} ms`);
  });
});
