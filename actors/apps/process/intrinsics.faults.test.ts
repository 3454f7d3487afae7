import { expect } from "chai";
import { MemoryHost } from "../package/testing/memory-host.ts";

/** Replaces built-in functions in every way that code can, and records the platform's objects that they receive. */
const CODE = `
import { Agent } from "trunkline/agents";
const leaked = [];
const isPlatform = (value) =>
  typeof value === "object" && value !== null && ("gate" in value || "link" in value || typeof value.operate === "function" || "database" in value);
const look = (...values) => {
  for (const value of values) if (isPlatform(value) || isPlatform(value?.agent)) leaked.push(value);
};
const HELD = { Array, FinalizationRegistry, Function, Iterator, Map, Object, Promise, Reflect, Set, WeakMap, WeakRef, WeakSet };
const { apply, construct } = Reflect;
let isLooking = false;
const spied = (real) => function (...args) {
  const result = new.target ? construct(real, args, new.target) : apply(real, this, args);
  if (isLooking) return result;
  isLooking = true;
  look(this, ...args, result);
  isLooking = false;
  return result;
};
function patch(holder, name) {
  const { value } = Object.getOwnPropertyDescriptor(holder, name) ?? {};
  if (typeof value !== "function" || name === "apply") return;
  try { holder[name] = spied(value); } catch {}
  try { Object.defineProperty(holder, name, { value: spied(value) }); } catch {}
}
for (const held of Object.values(HELD)) {
  for (const holder of [held, held.prototype]) {
    if (holder) for (const name of Reflect.ownKeys(holder)) patch(holder, name);
  }
}
for (const iterator of [[].values(), new Map().values(), new Set().values(), (function* () {})()]) {
  for (let at = Object.getPrototypeOf(iterator); at; at = Object.getPrototypeOf(at)) {
    for (const name of Reflect.ownKeys(at)) patch(at, name);
  }
}
for (const name of ["Map", "WeakMap", "Set", "Promise"]) {
  const Real = globalThis[name];
  try { globalThis[name] = class extends Real { get(key) { const value = super.get(key); look(value); return value; } }; } catch {}
}
for (const name of ["link", "open", "agent", "gate"]) {
  try { Object.defineProperty(Object.prototype, name, { set(value) { look(this, value); }, get() { look(this); } }); } catch {}
}
export class Spy extends Agent {
  async onRequest() {
    this.sql\`CREATE TABLE IF NOT EXISTS t (v)\`;
    await this.ctx.storage.put("k", 1);
    await this.ctx.storage.sync();
    this.setState({ n: 1 });
    this.broadcast("x");
    await this.schedule(100, "later");
    await fetch("https://elsewhere.example/");
    const env = await this.env.Spy.getByName("other").said();
    return Response.json({ leaked: leaked.length, env });
  }
  later() {}
  said() { return "well"; }
}
export class Own extends Agent {
  /** Libraries may still change objects of their own. */
  onRequest() {
    const plain = {};
    plain.toString = () => "plain";
    plain.constructor = Own;
    function Old() {}
    Old.prototype = Object.create(Array.prototype);
    Old.prototype.constructor = Old;
    Old.prototype.toString = () => "old";
    const list = [];
    list.constructor = Old;
    const sub = new (class extends Map { get() { return "sub"; } })();
    Reflect.metadata = 1;
    Array.prototype.lastOne = function () { return this.at(-1); };
    String.prototype.shout = function () { return this.toUpperCase(); };
    return Response.json([
      String(plain), Object.keys(plain), new Old().toString(), new Old().constructor === Old,
      sub.get("x"), Reflect.metadata, [1, 2].lastOne(), "a".shout(), \`\${[1, 2]}\`, Object.keys(list),
    ]);
  }
}
export default { fetch: () => new Response("well") };
`;

describe("an app's process: built-in functions that code of the app replaces", function () {
  this.timeout(120_000);
  let host: MemoryHost;
  before(async () => {
    const agents = [{ binding: "Spy", className: "Spy" }];
    const answer = { type: "answer" as const, answer: { status: 204, headers: [] } };
    host = await MemoryHost.start({ code: CODE, agents, operate: async () => answer });
  });
  after(() => host.stop());

  it("receive no object of the platform, and replaced built-ins change nothing", async () => {
    expect((await host.entry("/")).status).to.equal(200);
    const answer = await host.request("Spy/a", "/");
    expect(await answer.json()).to.deep.equal({ leaked: 0, env: "well" });
  });

  it("leave objects of the app, and new names, open to libraries", async () => {
    const answer = await host.request("Own/a", "/");
    expect(await answer.json()).to.deep.equal([
      ...["plain", ["toString", "constructor"], "old", true],
      ...["sub", 1, 2, "A", "1,2", ["constructor"]],
    ]);
  });
});
