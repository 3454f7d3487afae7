import { expect } from "chai";
import { packZeroRuns, unpackZeroRuns } from "./zero-runs.ts";

describe("zero runs", () => {
  const MAX = 1024 * 1024;
  const roundTrip = (bytes: Buffer) =>
    unpackZeroRuns(packZeroRuns(bytes, MAX) ?? Buffer.alloc(0), MAX);

  it("packZeroRuns() and back give the same bytes, wherever they lie", () => {
    const cases = {
      "nothing at all": Buffer.alloc(0),
      "zeros alone": Buffer.alloc(64),
      "no zero": Buffer.alloc(64, 7),
      "zeros at both ends": Buffer.concat([Buffer.alloc(8), Buffer.alloc(8, 1), Buffer.alloc(8)]),
      "a zero in each word": Buffer.from("00010203".repeat(9), "hex"),
      "longer than a run can be, of zeros": Buffer.alloc(4 * 0x1_0001),
      "longer than a run can be, without": Buffer.alloc(4 * 0x1_0001, 9),
      "from an odd place": Buffer.alloc(33, 5).subarray(1),
    };
    for (const [name, bytes] of Object.entries(cases)) {
      expect(roundTrip(bytes).equals(bytes), name).to.equal(true);
    }
    const packed = packZeroRuns(Buffer.alloc(64, 7), MAX) ?? Buffer.alloc(0);
    const moved = Buffer.concat([Buffer.alloc(1), packed]).subarray(1);
    expect(unpackZeroRuns(moved, MAX).equals(Buffer.alloc(64, 7))).to.equal(true);
  });

  it("packZeroRuns() returns what fits its limit exactly, and nothing past it", () => {
    const bytes = Buffer.concat([Buffer.alloc(400), Buffer.alloc(40, 1), Buffer.alloc(400)]);
    // The packed form has the length, the lengths of a run, its ten words, and the lengths of the zeros after it.
    expect(packZeroRuns(bytes, 4 + 4 + 40 + 4)).to.have.length(52);
    expect(packZeroRuns(bytes, 48)).to.equal(undefined);
  });

  it("unpackZeroRuns() refuses cut-off input, and output past its limit", () => {
    const packed = packZeroRuns(Buffer.alloc(64, 7), MAX) ?? Buffer.alloc(0);
    expect(() => unpackZeroRuns(packed, 63)).to.throw(RangeError, "at most 63");
    expect(() => unpackZeroRuns(packed.subarray(0, -4), MAX)).to.throw(RangeError, "cut off");
    const long = Buffer.from(packed);
    long.writeUInt32LE(60);
    expect(() => unpackZeroRuns(long, MAX)).to.throw(RangeError, "cut off");
  });
});
