import { expect } from "chai";
import type { AgentAddress } from "../../../../schemas/apps/app-names.ts";
import type { Operation } from "../../../../schemas/apps/app-process.ts";
import { refusalOf } from "../../../../scripts/testing/refusal.ts";
import type { Clock } from "../../../runtime/lib/clock.ts";
import { APP_OPERATIONS_MAX, OperationPlaces } from "./operation-places.ts";

const CALL: Operation = {
  type: "agent.invoke",
  className: "A",
  name: "a",
  method: "m",
  args: new Uint8Array(),
};
const READ: Operation = { type: "read", lent: 1, part: 1 };
const IDENTIFY: Operation = { type: "identify", token: "t" };
const address: AgentAddress = { accountId: "a", app: "app", className: "A", name: "a" };

/** Runs operations in the places of one process. Their work ends when the test says so, and waits end likewise. */
function heldPlaces() {
  const places = new OperationPlaces();
  const running: (() => void)[] = [];
  const waits: { ms: number; end: () => void }[] = [];
  const clock: Pick<Clock, "wait"> = {
    wait: (ms, signal) =>
      new Promise((end) => {
        waits.push({ ms, end });
        signal?.addEventListener("abort", () => end());
      }),
  };
  const begin = (operation: Operation, caller?: AgentAddress) =>
    places.run(operation, () => new Promise<void>((end) => void running.push(end)), {
      address: caller,
      clock: clock as Clock,
    });
  const fill = (operation: Operation, caller?: AgentAddress) =>
    Array.from({ length: APP_OPERATIONS_MAX }, () => begin(operation, caller));
  return { begin, fill, running, waits };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

describe("OperationPlaces", () => {
  it("run() gives the entry's calls, the agents' calls and all others places of their own", async () => {
    const { fill, running } = heldPlaces();
    for (const [operation, caller] of [
      [CALL],
      [CALL, address],
      [IDENTIFY],
      [IDENTIFY, address],
    ] as const) {
      fill(operation, caller);
    }
    await turn();
    expect(running).to.have.length(3 * APP_OPERATIONS_MAX);
  });

  it("run() starts a waiting operation when another has ended, and a read at once", async () => {
    for (const caller of [undefined, address]) {
      const { begin, fill, running } = heldPlaces();
      fill(CALL, caller);
      begin(CALL, caller);
      await turn();
      expect(running).to.have.length(APP_OPERATIONS_MAX);
      begin(READ, caller);
      expect(running).to.have.length(APP_OPERATIONS_MAX + 1);
      running[0]?.();
      await turn();
      expect(running).to.have.length(APP_OPERATIONS_MAX + 2);
    }
  });

  it("run() refuses an agent's call that has waited too long, and its place goes to the next", async () => {
    const { begin, fill, running, waits } = heldPlaces();
    fill(CALL, address);
    const refused = refusalOf(begin(CALL, address));
    const next = begin(CALL, address);
    await turn();
    expect(waits).to.have.length(2);
    waits[0]?.end();
    expect((await refused).code).to.equal("busy");
    running[0]?.();
    await turn();
    running.at(-1)?.();
    await next;
  });
});
