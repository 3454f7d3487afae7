import { expect } from "chai";
import {
  AGENT_CONNECTIONS_MAX,
  CONNECTION_TAG_CHARS_MAX,
  CONNECTION_TAGS_MAX,
} from "../../../schemas/apps/limits.ts";
import { until } from "../../../scripts/testing/until.ts";
import { AGENT_STORAGE_KEY_CHARS_MAX } from "../package/agent-context.ts";
import { MemoryHost } from "../package/testing/memory-host.ts";
import { APP_OPERATIONS_WAITING_MAX } from "./host-link.ts";
import { AGENT_DELAY_S_MAX, AGENT_INTERVAL_S_MAX } from "./schedules.ts";
import { AGENT_SUBMISSIONS_RUNNING_MAX } from "./submissions.ts";

const CODE = `
import { Agent } from "trunkline/agents";
const told = async (work) => { try { await work(); return "taken"; } catch (error) { return error.message; } };
export class Limited extends Agent {
  running = 0;
  most = 0;
  getConnectionTags(connection, { request }) {
    const { searchParams } = new URL(request.url);
    const [count, chars] = [Number(searchParams.get("tags")), Number(searchParams.get("chars"))];
    return Array.from({ length: count }, (_, index) => String(index).padStart(chars, "t"));
  }
  key(chars) { return told(() => this.ctx.storage.put("k".repeat(chars), 1)); }
  every(seconds) { return told(() => this.scheduleEvery(seconds, "noop")); }
  later(seconds) { return told(() => this.schedule(seconds, "noop")); }
  async ask(count) {
    const asked = await Promise.allSettled(Array.from({ length: count }, (_, index) => fetch("https://elsewhere.example/" + index)));
    return asked.filter(({ status }) => status === "rejected").map(({ reason }) => String(reason.cause ?? reason));
  }
  async submitMany(count) { for (let index = 0; index < count; index++) await this.submit("outside", { index }); }
  async outside() {
    this.running += 1;
    this.most = Math.max(this.most, this.running);
    await fetch("https://elsewhere.example/");
    this.running -= 1;
  }
  counts() { return [this.running, this.most]; }
  noop() {}
}`;

describe("an app's process: limits", function () {
  this.timeout(120_000);
  let host: MemoryHost;
  const waiting: (() => void)[] = [];
  before(async () => {
    host = await MemoryHost.start({
      code: CODE,
      agents: [{ binding: "Limited", className: "Limited" }],
      operate: async () => {
        await new Promise<void>((resolve) => waiting.push(resolve));
        return { type: "answer", answer: { status: 200, headers: [] } };
      },
    });
  });
  after(() => host.stop());
  const letGo = () => {
    for (const resolve of waiting.splice(0)) resolve();
  };
  const refused = (promise: Promise<unknown>) =>
    promise.then(
      () => "taken",
      (error: Error) => error.message,
    );

  it("an agent has as many sockets as it may, and refuses one more", async () => {
    const connect = (number: number) =>
      host.connect("Limited/many", { id: `c${number}`, number, gateway: "g" });
    for (let number = 1; number <= AGENT_CONNECTIONS_MAX; number += 100) {
      await Promise.all(Array.from({ length: 100 }, (_, index) => connect(number + index)));
    }
    expect(await refused(connect(AGENT_CONNECTIONS_MAX + 1))).to.equal(
      `Cannot connect: the agent has ${AGENT_CONNECTIONS_MAX} sockets`,
    );
  });

  it("a connection has as many tags, of as many characters, as it may", async () => {
    let number = 0;
    const connect = (tags: number, chars: number) =>
      refused(
        host.connect(
          "Limited/tags",
          { id: `c${++number}`, number, gateway: "g" },
          `/?tags=${tags}&chars=${chars}`,
        ),
      );
    expect(await connect(CONNECTION_TAGS_MAX, CONNECTION_TAG_CHARS_MAX)).to.equal("taken");
    expect(await connect(CONNECTION_TAGS_MAX + 1, 1)).to.match(/10 tags, expected at most 9/);
    expect(await connect(1, CONNECTION_TAG_CHARS_MAX + 1)).to.match(/of 1 to 256 characters/);
  });

  it("keys of the storage, intervals and delays end at their limits", async () => {
    for (const [method, most] of [
      ["key", AGENT_STORAGE_KEY_CHARS_MAX],
      ["every", AGENT_INTERVAL_S_MAX],
      ["later", AGENT_DELAY_S_MAX],
    ] as const) {
      expect(await host.invoke("Limited/ends", method, most), method).to.equal("taken");
      expect(await host.invoke("Limited/ends", method, most + 1), method).to.match(
        /^Cannot .*expected/,
      );
    }
  });

  it("a process waits for as many operations as it may, and one more is refused at once", async () => {
    const asked = host.invoke("Limited/asks", "ask", APP_OPERATIONS_WAITING_MAX + 1);
    await until("all are asked", () => waiting.length === APP_OPERATIONS_WAITING_MAX, 30_000);
    letGo();
    const refusals = (await asked) as string[];
    expect(refusals).to.have.length(1);
    expect(refusals[0]).to.contain(`${APP_OPERATIONS_WAITING_MAX} operations are under way`);
  });

  it("as many submissions of an agent run at once as may, and the others after them", async () => {
    const count = AGENT_SUBMISSIONS_RUNNING_MAX + 1;
    await host.invoke("Limited/submits", "submitMany", count);
    const counts = () => host.invoke("Limited/submits", "counts") as Promise<number[]>;
    await until("they run", () => waiting.length === AGENT_SUBMISSIONS_RUNNING_MAX);
    expect(await counts()).to.deep.equal([count - 1, count - 1]);
    letGo();
    await until("the last one runs", () => waiting.length === 1);
    letGo();
    await until("none runs", async () => (await counts())[0] === 0);
    expect((await counts())[1]).to.equal(count - 1);
  });
});
