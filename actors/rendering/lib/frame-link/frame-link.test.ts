import { expect } from "chai";
import { startNats, type TestNatsServer } from "../../../../scripts/testing/nats-server.ts";
import { until } from "../../../../scripts/testing/until.ts";
import { Bus } from "../../../runtime/bus/bus.ts";
import { systemClock as clock } from "../../../runtime/lib/clock.ts";
import { FrameLink, type FrameLinkOptions, LINK_PIECE_BYTES } from "./frame-link.ts";

const FRAME_BYTES_MAX = 4 * LINK_PIECE_BYTES;

describe("frame link", () => {
  let nats: TestNatsServer;
  let buses: Bus[];
  let links: FrameLink[];
  let count = 0;

  before(async () => {
    nats = await startNats();
  });
  after(() => nats.stop());
  beforeEach(async () => {
    buses = await Promise.all(["a", "b"].map((name) => Bus.connect({ url: nats.url, name })));
    links = [];
    count += 1;
  });
  afterEach(async () => {
    for (const link of links) link.end("the test is over");
    await Promise.all(buses.map((bus) => bus.close()));
  });

  /** Creates the side with this number, 0 or 1. */
  function side(number: number, options: Partial<FrameLinkOptions> = {}) {
    const bus = buses[number];
    if (!bus) throw new Error("no bus");
    const taken: Buffer[] = [];
    const ends: { by: string; reason: string }[] = [];
    const link = new FrameLink({
      ...{ bus, clock, frameBytesMax: FRAME_BYTES_MAX },
      receiveOn: `link.${count}.${number}`,
      sendTo: `link.${count}.${1 - number}`,
      take: (frame) => void taken.push(frame),
      ended: (how) => void ends.push(how),
      ...options,
    });
    links.push(link);
    return { link, taken, ends };
  }
  const flushed = () => Promise.all(buses.map(({ connection }) => connection.flush()));

  it("carries frames of every size in order, both ways at once", async () => {
    const [a, b] = [side(0), side(1)];
    await flushed();
    const sizes = [0, 1, LINK_PIECE_BYTES, LINK_PIECE_BYTES + 1, 3, FRAME_BYTES_MAX, 2];
    const frames = sizes.map((size, index) => Buffer.alloc(size, index));
    for (const frame of frames) {
      a.link.send(frame);
      b.link.send(frame);
    }
    await Promise.all([a.link.drained(0), b.link.drained(0)]);
    for (const { taken, ends } of [a, b]) {
      expect(Buffer.concat(taken).equals(Buffer.concat(frames))).to.equal(true);
      expect(taken.map((frame) => frame.length)).to.deep.equal(sizes);
      expect(ends).to.deep.equal([]);
    }
  });

  it("holds what the other side has not taken, and goes on when it has", async () => {
    const a = side(0);
    const held = Promise.withResolvers<void>();
    const taken: number[] = [];
    side(1, {
      async take(frame) {
        await held.promise;
        taken.push(frame.length);
      },
    });
    await flushed();
    for (let i = 0; i < 20; i++) a.link.send(Buffer.alloc(LINK_PIECE_BYTES));
    await flushed();
    expect(a.link.unsentBytes).to.be.above(20 * LINK_PIECE_BYTES);
    held.resolve();
    await a.link.drained(0);
    expect(taken).to.have.length(20);
  });

  it("takes a frame of frameBytesMax, and ends at a larger one", async () => {
    const [a, b] = [side(0), side(1)];
    await flushed();
    a.link.send(Buffer.alloc(FRAME_BYTES_MAX));
    await a.link.drained(0);
    expect(b.taken).to.have.length(1);
    a.link.send(Buffer.alloc(FRAME_BYTES_MAX + 1));
    await until("it has ended", () => b.ends.length === 1);
    expect(b.ends[0]).to.include({ by: "fault" });
    expect(b.ends[0]?.reason).to.contain(`larger than ${FRAME_BYTES_MAX} bytes`);
  });

  it("ends after the frames before, with the reason, and sends nothing more", async () => {
    const [a, b] = [side(0), side(1)];
    await flushed();
    a.link.send(Buffer.alloc(3 * LINK_PIECE_BYTES));
    a.link.end("enough");
    a.link.send(Buffer.alloc(1));
    await until("the other side has ended", () => b.ends.length === 1);
    expect(b.taken.map((frame) => frame.length)).to.deep.equal([3 * LINK_PIECE_BYTES]);
    expect(b.ends).to.deep.equal([{ by: "other", reason: "enough" }]);
    expect(a.ends).to.deep.equal([{ by: "us", reason: "enough" }]);
  });

  it("notices a dead other side while nothing is sent", async () => {
    const a = side(0, { pingMs: 20 });
    await until("it has ended", () => a.ends.length === 1);
    expect(a.ends[0]?.by).to.equal("fault");
  });

  it("ends where a message is lost", async () => {
    const b = side(1);
    await flushed();
    const [bus] = buses;
    const message = Buffer.from([1, 0, 0, 0, 0, 0, 5, 65]);
    bus?.connection.publish(`link.${count}.1`, message);
    await until("it has ended", () => b.ends.length === 1);
    expect(b.ends[0]).to.deep.equal({ by: "fault", reason: "a message of the link was lost" });
    expect(b.taken).to.deep.equal([]);
  });

  it("ends where the other side takes nothing for takeMs", async () => {
    const a = side(0, { takeMs: 50 });
    side(1, { take: () => new Promise(() => {}) });
    await flushed();
    a.link.send(Buffer.alloc(1));
    await until("it has ended", () => a.ends.length === 1);
    expect(a.ends[0]?.by).to.equal("fault");
  });
});
