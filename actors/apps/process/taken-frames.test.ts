import { expect } from "chai";
import { MemoryHost } from "../package/testing/memory-host.ts";
import { TakenFrames } from "./taken-frames.ts";

const CODE = `
import { Agent, callable } from "trunkline/agents";
const held = Promise.withResolvers();
export class Room extends Agent {
  async slow(ms) { await new Promise((resolve) => setTimeout(resolve, ms)); return "slow"; }
  async waits() { await held.promise; return "waited"; }
  fast() { held.resolve(); return "fast"; }
}
callable()(Room.prototype.slow);
callable()(Room.prototype.waits);
callable()(Room.prototype.fast);
`;

const TURN_MS = 200;

describe("TakenFrames", () => {
  /**
   * Takes frames. Each ends only when the test calls `end`. `begun` has their numbers in the order in which they
   * began.
   */
  function taking(text?: string, heldMs?: number) {
    const taken = new TakenFrames(text, heldMs);
    const begun: number[] = [];
    const ends = new Map<number, () => void>();
    const take = (first: number, count: number, settledBefore?: number) => {
      const frames = Array.from({ length: count }, (_, index) => String(first + index));
      return taken.take({ first, frames, settledBefore }, async (number) => {
        begun.push(number);
        await new Promise<void>((resolve) => ends.set(number, resolve));
        taken.end(number);
      });
    };
    return { taken, begun, take, end: (number: number) => ends.get(number)?.() };
  }

  it("begins a batch that came too early behind the one before, and each frame once", async () => {
    const { begun, take, end } = taking();
    const second = take(3, 1, 1);
    const first = take(1, 2, 1);
    const again = take(1, 2, 1);
    await new Promise(setImmediate);
    expect(begun).to.deep.equal([1, 2, 3]);
    end(3);
    expect(await second).to.equal(false);
    for (const number of [1, 2]) end(number);
    expect([await first, await again]).to.deep.equal([false, false]);
    expect(await take(1, 3, 4)).to.equal(false);
    expect(begun).to.deep.equal([1, 2, 3]);
  });

  it("learns from its gateway which frames a former owner of the agent has handled", async () => {
    const { begun, take, end } = taking("[2,5]");
    const rest = take(6, 1, 5);
    expect(begun).to.deep.equal([6]);
    end(6);
    expect(await rest).to.equal(false);
  });

  it("says after a while that frames go on, and waits on when they are brought again", async () => {
    const { begun, take, end } = taking(undefined, 1);
    expect(await take(1, 1, 1)).to.equal(true);
    end(1);
    await new Promise(setImmediate);
    expect(await take(1, 1, 1)).to.equal(false);
    // Frame 3 must wait, because frame 2 has not arrived yet.
    expect(await take(3, 1, 2)).to.equal(true);
    expect(begun).to.deep.equal([1]);
  });
});

describe("an app's process: calls on one socket", function () {
  this.timeout(60_000);
  const socket = { gateway: "g".repeat(32), number: 1, id: "one" };
  const call = (method: string, ...args: unknown[]) =>
    JSON.stringify({ type: "rpc", id: method, method, args });
  let host: MemoryHost;
  beforeEach(async () => {
    host = await MemoryHost.start({ code: CODE, limits: { turnMs: TURN_MS } });
    await host.connect("Room/a", socket);
    host.actions.length = 0;
  });
  afterEach(() => host.stop());

  const bring = (first: number, ...frames: string[]) =>
    host.turn("Room/a", { type: "frames", connection: socket, first, frames, settledBefore: 1 });
  const results = () =>
    host.actions.flatMap((action) =>
      "frame" in action ? [JSON.parse(String(action.frame)) as Record<string, unknown>] : [],
    );

  it("a call that waits for a later one is answered, whichever batch that is in", async () => {
    const waits = bring(1, call("waits"));
    await bring(2, call("fast"));
    await waits;
    const told = results().map(({ id, success, result }) => [id, success, result]);
    expect(told).to.deep.equal([
      ["fast", true, "fast"],
      ["waits", true, "waited"],
    ]);
  });

  it("a call that takes longer than a turn ends with its result, and its socket stays open", async () => {
    await bring(1, call("slow", 3 * TURN_MS));
    expect(results()).to.have.length(1);
    expect(results()[0]).to.include({ id: "slow", success: true, result: "slow" });
    expect(host.actions.filter((action) => "close" in action)).to.deep.equal([]);
  });
});
