import { once } from "node:events";
import { expect } from "chai";
import { ActorError } from "../../../schemas/errors.ts";
import { refusalOf } from "../../../scripts/testing/refusal.ts";
import { SkippingClock } from "../../../scripts/testing/skipping-clock.ts";
import type { ActorClient } from "../../runtime/calls/actor-client.ts";
import type { BodyBlobs } from "../lib/app-process/process-bodies.ts";
import { Turns } from "../lib/app-process/turns.ts";
import { Deliveries } from "./deliveries.ts";
import { DELIVERIES_GATHER_MS, DELIVERY_LOAD_MS, DeliveryPace } from "./delivery-pace.ts";

describe("Deliveries", () => {
  const never = new AbortController().signal;
  let rounds: string[][];
  let settled: { id: string; takesNext: boolean }[];
  let goesOn: boolean;
  let givesWay: boolean;
  let whileAsked: () => void;
  let whileRun: () => void;
  let begun: number;
  let load: number;
  let answers: boolean;
  let clock: SkippingClock;
  beforeEach(() => {
    rounds = [["1", "2"], ["3"]];
    settled = [];
    goesOn = true;
    givesWay = false;
    whileAsked = () => {};
    whileRun = () => {};
    begun = 0;
    load = 0;
    answers = true;
    clock = new SkippingClock();
  });

  function deliveries(): Deliveries {
    const call = async (
      ...[, , message, input, options]: [unknown, string, string, unknown, { signal?: AbortSignal }]
    ) => {
      if (!answers) {
        await once(options.signal ?? never, "abort");
        throw new ActorError("cancelled", "Cannot wait: the caller has left");
      }
      if (message === "current") {
        whileAsked();
        const [ids = []] = rounds;
        const request = { method: "POST", url: "http://app/in", headers: [] };
        return { deliveries: ids.map((id) => ({ id, attempt: 1, request })), waiting: 0 };
      }
      const { id, takesNext } = input as { id: string; takesNext: boolean };
      settled.push({ id, takesNext });
      rounds.shift();
      return { hasNext: takesNext && rounds.length > 0 };
    };
    const answer = { status: 200, headers: [] };
    const pace = new DeliveryPace(clock, () => load);
    clock.skip(DELIVERY_LOAD_MS);
    return new Deliveries({
      actors: { call, send: async () => {} } as unknown as Pick<ActorClient, "call" | "send">,
      clock,
      blobs: { get: () => Promise.reject(new Error("no blob")) } as unknown as BodyBlobs,
      key: "agent",
      turns: new Turns(),
      pace,
      begin() {
        whileRun();
        begun += 1;
        return { turn: begun, ended: Promise.resolve({ type: "answer", answer }) };
      },
      hasCrashed: () => false,
      goesOn: () => goesOn,
      givesWay: () => givesWay,
      ended() {},
    });
  }

  it("take() goes on until nothing is left", async () => {
    await deliveries().take();
    expect(settled).to.deep.equal([
      { id: "1", takesNext: true },
      { id: "3", takesNext: true },
    ]);
  });

  it("take() leaves the next delivery to other mail if something waits for its turn", async () => {
    givesWay = true;
    await deliveries().take();
    expect(settled).to.deep.equal([{ id: "1", takesNext: false }]);
  });

  it("take() rejects if the agent closes before the next delivery has begun: its mail comes again", async () => {
    const taking = deliveries();
    whileAsked = () => {
      if (settled.length === 1) goesOn = false;
    };
    const error = await refusalOf(taking.take());
    expect(error).to.include({ code: "unavailable" });
    expect(settled).to.have.length(1);
    expect(taking.isUnderWay).to.equal(false);
  });

  it("take() leaves the next delivery to the agent's next owner if the agent closes", async () => {
    const taking = deliveries();
    whileRun = () => taking.stop();
    await taking.take();
    expect(settled).to.deep.equal([{ id: "1", takesNext: false }]);
    // If a delivery of the round does not begin, the inbox offers it in a later round.
    expect(begun).to.equal(2);
    const error = await refusalOf(taking.take());
    expect(error).to.include({ code: "unavailable" });
  });

  it("take() gives way at once, though the host has all it can do", async () => {
    givesWay = true;
    load = 1;
    await deliveries().take();
    expect(clock.isAwaited(DELIVERIES_GATHER_MS)).to.equal(false);
    expect(settled).to.deep.equal([{ id: "1", takesNext: false }]);
  });

  it("take() ends if the agent closes while its inbox does not answer", async () => {
    const taking = deliveries();
    answers = false;
    const taken = refusalOf(taking.take());
    taking.stop();
    expect(await taken).to.include({ code: "unavailable" });
    expect(taking.isUnderWay).to.equal(false);
  });

  it("take() begins nothing if nothing is left", async () => {
    rounds = [];
    await deliveries().take();
    expect(settled).to.deep.equal([]);
  });
});
