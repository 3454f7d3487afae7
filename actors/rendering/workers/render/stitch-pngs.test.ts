import { crc32, deflateSync, inflateSync } from "node:zlib";
import { expect } from "chai";
import { SeededRandom } from "../../../../scripts/testing/seeded-random.ts";
import { StitchedPng } from "./stitch-pngs.ts";

const WIDTH = 7;
const FILTERS = ["none", "sub", "up", "average", "paeth"];

describe("StitchedPng", () => {
  for (const [colorType, pixel] of [
    [2, 3],
    [6, 4],
  ] as const) {
    it(`finish() has every pixel of pieces of ${pixel} bytes a pixel, by whichever filters`, async () => {
      const random = new SeededRandom(pixel);
      const row = () =>
        Buffer.from(Array.from({ length: WIDTH * pixel }, () => random.next() * 256));
      const pieces = FILTERS.map((_, filter) => ({
        rows: [row(), row(), row()],
        // The first row of each piece uses another filter, so that all filters are tested there.
        filters: [filter, (filter + 1) % 5, (filter + 2) % 5],
      }));
      const picture = new StitchedPng();
      for (const { rows, filters } of pieces) {
        await picture.add(encode(rows, { colorType, pixel, filters }));
      }
      const { height, pixels } = decode(await picture.finish(), pixel);
      expect(height).to.equal(15);
      expect(pixels.equals(Buffer.concat(pieces.flatMap(({ rows }) => rows)))).to.equal(true);
    });
  }

  it("add() refuses a piece of another width, another kind, and what is none", async () => {
    const row = (bytes: number) => Buffer.alloc(bytes, 9);
    const rgb = { colorType: 2, pixel: 3, filters: [0] };
    const picture = new StitchedPng();
    await picture.add(encode([row(21)], rgb));
    for (const other of [
      encode([row(24)], rgb),
      encode([row(28)], { colorType: 6, pixel: 4, filters: [0] }),
      Buffer.from("GIF89a and more"),
    ]) {
      const failure = await picture.add(other).catch((error: unknown) => error);
      expect(failure).to.be.instanceOf(Error);
    }
    expect(decode(await picture.finish(), 3).height).to.equal(1);
  });
});

interface Kind {
  colorType: number;
  pixel: number;
  filters: number[];
}

function encode(rows: Buffer[], { colorType, pixel, filters }: Kind): Buffer {
  const [first = Buffer.alloc(0)] = rows;
  const lines = rows.map((row, index) => {
    const above = rows[index - 1] ?? Buffer.alloc(row.length);
    const filter = filters[index] ?? 0;
    const bytes = row.map((value, at) => value - predicted(filter, { row, above, at, pixel }));
    return Buffer.concat([Buffer.of(filter), bytes]);
  });
  const header = Buffer.alloc(13);
  header.writeUInt32BE(first.length / pixel, 0);
  header.writeUInt32BE(rows.length, 4);
  header.set([8, colorType, 0, 0, 0], 8);
  const signature = Buffer.from("\x89PNG\r\n\x1a\n", "latin1");
  const data = deflateSync(Buffer.concat(lines));
  // In two parts, as encoders write it.
  const parts = [data.subarray(0, 5), data.subarray(5)].map((part) => chunk("IDAT", part));
  const end = chunk("IEND", Buffer.alloc(0));
  return Buffer.concat([signature, chunk("IHDR", header), ...parts, end]);
}

function decode(bytes: Buffer, pixel: number) {
  const data: Buffer[] = [];
  const width = bytes.readUInt32BE(16);
  const height = bytes.readUInt32BE(20);
  for (let at = 8; at < bytes.length; ) {
    const length = bytes.readUInt32BE(at);
    const framed = bytes.subarray(at + 4, at + 8 + length);
    expect(bytes.readUInt32BE(at + 8 + length)).to.equal(crc32(framed));
    if (framed.toString("latin1", 0, 4) === "IDAT") data.push(framed.subarray(4));
    at += 12 + length;
  }
  const lines = inflateSync(Buffer.concat(data));
  const stride = width * pixel;
  let above = Buffer.alloc(stride);
  const rows: Buffer[] = [];
  for (let y = 0; y < height; y++) {
    const start = y * (stride + 1);
    const row = Buffer.from(lines.subarray(start + 1, start + 1 + stride));
    const filter = lines[start] ?? 0;
    for (let at = 0; at < stride; at++) {
      row[at] = (row[at] ?? 0) + predicted(filter, { row, above, at, pixel });
    }
    rows.push(row);
    above = row;
  }
  expect(lines.length).to.equal(height * (stride + 1));
  return { height, pixels: Buffer.concat(rows) };
}

/** PNG, third edition, 9.2. */
function predicted(
  filter: number,
  { row, above, at, pixel }: { row: Buffer; above: Buffer; at: number; pixel: number },
): number {
  const a = at >= pixel ? (row[at - pixel] ?? 0) : 0;
  const b = above[at] ?? 0;
  const c = at >= pixel ? (above[at - pixel] ?? 0) : 0;
  const distances = [a, b, c].map((value) => Math.abs(a + b - c - value));
  const paeth = [a, b, c][distances.indexOf(Math.min(...distances))] ?? 0;
  return [0, a, b, (a + b) >> 1, paeth][filter] ?? 0;
}

function chunk(type: string, data: Buffer): Buffer {
  const framed = Buffer.concat([Buffer.from(type, "latin1"), data]);
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  sum.writeUInt32BE(crc32(framed));
  return Buffer.concat([length, framed, sum]);
}
