import { expect } from "chai";
import { until } from "../../../scripts/testing/until.ts";
import { MemoryHost, RefusedTurn } from "../package/testing/memory-host.ts";

const CODE = `
import { Agent, getAgentByName } from "trunkline/agents";
interface Kind { of: string }
class NotEnough extends Error { constructor(left: number) { super("only " + left + " left"); } }
export class Store extends Agent<any, any> {
  take(kind: Kind["of"]): never {
    if (kind === "type") throw new TypeError("no such type");
    if (kind === "text") throw "a text";
    throw new NotEnough(3);
  }
}
export class Buyer extends Agent<any, any> {
  async buy(kind: string) {
    const store = await getAgentByName(this.env.Store, "one");
    try {
      await store.take(kind);
    } catch (error: any) {
      return { name: error.name, message: error.message, isType: error instanceof TypeError, stack: error.stack };
    }
  }
  print() { console.log(new Error("printed")); console.warn("of", new RangeError("beside")); }
  reject() { void Promise.reject(new Error("nobody waits")); }
  throws() { this.deep(); }
  deep() { throw new SyntaxError("deep"); }
}
`;

/** The line of the code that has this text. */
const lineOf = (text: string) => CODE.slice(0, CODE.indexOf(text)).split("\n").length;
const place = (method: string, text: string) =>
  new RegExp(`at ${method} \\(app\\.ts:${lineOf(text)}:\\d+\\)`);

describe("an app's process: stacks and names of errors", function () {
  this.timeout(60_000);
  let host: MemoryHost;
  before(async () => {
    host = await MemoryHost.start({
      code: CODE,
      agents: [{ binding: "Store", className: "Store" }],
    });
  });
  after(() => host.stop());
  const buy = (kind: string) =>
    host.invoke("Buyer/a", "buy", kind) as Promise<Record<"name" | "message" | "stack", string>>;

  it("errors keep the name of their class over a call, and built-in ones their class", async () => {
    expect(await buy("enough")).to.include({
      ...{ name: "NotEnough", message: "only 3 left", isType: false },
    });
    expect(await buy("type")).to.include({ name: "TypeError", isType: true });
    expect(await buy("text")).to.include({ name: "Error", message: "a text", isType: false });
  });

  it("the error of a call has the lines of the app's own files where it was thrown and where it was called", async () => {
    const { stack } = await buy("enough");
    expect(stack).to.match(/^NotEnough: only 3 left\n/);
    expect(stack).to.match(place("Store.take", "throw new NotEnough"));
    expect(stack).to.match(place("(async )?Buyer.buy", "await store.take"));
    expect(stack).to.not.include("/actors/apps/");
  });

  it("a turn that throws says so", async () => {
    const refused = await host.invoke("Buyer/a", "throws").then(String, (error: Error) => error);
    expect(refused).to.be.instanceOf(RefusedTurn);
    const { stack = "" } = (refused as RefusedTurn).error;
    expect(stack).to.match(/^SyntaxError: deep\n/);
    expect(stack).to.match(place("Buyer.deep", "throw new SyntaxError"));
    expect(stack).to.match(place("Buyer.throws", "throws() {"));
    expect(stack).to.not.include("file://");
  });

  it("printed and uncaught errors name the app's own lines too", async () => {
    host.lines.length = 0;
    await host.invoke("Buyer/a", "print");
    await host.invoke("Buyer/a", "reject");
    await until("all are logged", () => host.lines.length >= 3);
    const text = host.lines.map((line) => line.text).join("\n");
    for (const [message, method, code] of [
      ["Error: printed", "Buyer.print", "console.log"],
      ["RangeError: beside", "Buyer.print", "console.warn"],
      ["Error: nobody waits", "Buyer.reject", "void Promise"],
    ] as const) {
      const [, after = ""] = text.split(`${message}\n`);
      expect(after.split("\n")[0], message).to.match(place(method, code));
    }
    expect(text).to.not.include("file://");
  });
});
