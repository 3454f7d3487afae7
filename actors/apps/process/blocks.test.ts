import { expect } from "chai";
import { MemoryHost } from "../package/testing/memory-host.ts";

const CODE = `
import { Agent } from "trunkline/agents";
let constructed = 0;
const gates = new Map();
const gate = (name) => {
  if (!gates.has(name)) gates.set(name, Promise.withResolvers());
  return gates.get(name);
};
export class Blocked extends Agent {
  constructor(context, env) {
    super(context, env);
    constructed += 1;
    this.order = [];
    const isFirst = constructed === 1 && context.id.name === "fails";
    context.blockConcurrencyWhile(async () => {
      await Promise.resolve();
      if (isFirst) throw new Error("not yet");
      this.order.push("constructed");
    });
  }
  onStart() {
    this.ctx.blockConcurrencyWhile(async () => {
      await new Promise((resolve) => setTimeout(resolve, 20));
      this.order.push("started");
    });
  }
  said() { this.order.push("turn"); return this.order; }
  async overlap() {
    const block = (name) => this.ctx.blockConcurrencyWhile(async () => {
      await gate(name).promise;
      this.order.push(name);
    });
    return void (await Promise.all([block("short"), block("long"), block("fails").catch(() => {})]));
  }
}
export class Opener extends Agent {
  open(name) { gate(name).resolve(); }
  break(name) { gate(name).reject(new Error("broken")); }
}
`;

describe("an app's process: blockConcurrencyWhile", function () {
  this.timeout(120_000);
  let host: MemoryHost;
  before(async () => {
    host = await MemoryHost.start({ code: CODE });
  });
  after(() => host.stop());

  it("work that failed in the constructor is repeated by a new instance", async () => {
    const told = await host.invoke("Blocked/fails", "said").then(String, ({ message }) => message);
    expect(told).to.equal("not yet");
    expect(await host.invoke("Blocked/fails", "said")).to.deep.equal([
      "constructed",
      "started",
      "turn",
    ]);
  });

  it("the last of several overlapping sections admits turns again, also if one fails", async () => {
    const key = "Blocked/overlap";
    await host.invoke(key, "said");
    const overlapping = host.invoke(key, "overlap");
    // This call arrives while the sections are active, so it must run after them.
    const waiting = host.invoke(key, "said");
    await host.invoke("Opener/a", "open", "short");
    await host.invoke("Opener/a", "break", "fails");
    await host.invoke("Opener/a", "open", "long");
    await overlapping;
    expect(await waiting).to.deep.equal([
      ...["constructed", "started", "turn"],
      ...["short", "long", "turn"],
    ]);
  });
});
