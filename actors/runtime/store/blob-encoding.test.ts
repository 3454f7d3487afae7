import { randomBytes } from "node:crypto";
import { zstdCompressSync } from "node:zlib";
import { headers } from "@nats-io/transport-node";
import { expect } from "chai";
import { BLOB_CHUNK_BYTES } from "../../../schemas/limits.ts";
import { blobSubjects, STREAMS } from "../../../schemas/subjects.ts";
import { startWorld, type World } from "../../../scripts/testing/actor-world.ts";
import { systemClock } from "../lib/clock.ts";
import {
  COMPRESSED_PIECE_BYTES_MIN,
  COMPRESSED_SYNC_BYTES_MAX,
  decodePiece,
  ENCODING_HEADER,
  PieceEncoder,
} from "./blob-encoding.ts";
import { BlobStore } from "./blob-store.ts";

const text = (bytes: number) => Buffer.alloc(bytes, "All work and no play. ");

describe("blob encoding", function () {
  this.timeout(60_000);

  for (const bytes of [
    COMPRESSED_PIECE_BYTES_MIN,
    COMPRESSED_SYNC_BYTES_MAX,
    COMPRESSED_SYNC_BYTES_MAX + 1,
    BLOB_CHUNK_BYTES,
  ]) {
    it(`decodePiece() restores ${bytes} bytes of text, which take less than a tenth`, async () => {
      const piece = text(bytes);
      const { payload, headers } = await new PieceEncoder("crawl.a").encode(piece);
      expect(payload.length).to.be.below(bytes / 10);
      const encoding = headers[ENCODING_HEADER] ?? "";
      const decoded = await decodePiece({ data: payload, encoding }, bytes);
      expect(piece.equals(decoded)).to.equal(true);
    });
  }

  it("encode() leaves small pieces alone, and pieces that do not shrink with those behind them", async () => {
    const small = text(COMPRESSED_PIECE_BYTES_MIN - 1);
    expect((await new PieceEncoder("crawl.a").encode(small)).payload).to.equal(small);
    const encoder = new PieceEncoder("app.a");
    for (const piece of [randomBytes(50_000), text(50_000)]) {
      expect(await encoder.encode(piece)).to.deep.equal({ payload: piece, headers: {} });
    }
  });

  it("encode() leaves packs alone, which git has compressed", async () => {
    const piece = text(50_000);
    expect((await new PieceEncoder("git.a").encode(piece)).payload).to.equal(piece);
  });

  it("decodePiece() refuses an unknown encoding, and more bytes than the blob has", async () => {
    const data = zstdCompressSync(text(2_000));
    const refusals = [
      [decodePiece({ data, encoding: "br" }, 2_000), "unknown br"],
      [decodePiece({ data, encoding: "zstd" }, 1_999), "larger than 1999 bytes"],
    ] as const;
    for (const [reading, reason] of refusals) {
      expect(await reading.catch((error) => error.message)).to.include(reason);
    }
    expect((await decodePiece({ data, encoding: "zstd" }, 2_000)).length).to.equal(2_000);
  });

  describe("in the store", () => {
    let world: World;
    let blobs: BlobStore;
    before(async () => {
      world = await startWorld();
      blobs = new BlobStore(world.bus, systemClock);
    });
    after(() => world[Symbol.asyncDispose]());

    it("text of several pieces takes less than a tenth, and part() reads across pieces", async () => {
      const content = text(3 * BLOB_CHUNK_BYTES + 5_000);
      await blobs.put("crawl.text", content);
      const { state } = await world.bus.jetstream.streams.info(STREAMS.crawl);
      expect(state.bytes).to.be.below(content.length / 10);
      expect(
        content.equals(Buffer.concat(await Array.fromAsync(blobs.get("crawl.text")))),
      ).to.equal(true);
      const range = { start: BLOB_CHUNK_BYTES - 10, end: 3 * BLOB_CHUNK_BYTES + 100 };
      const part = Buffer.concat(await Array.fromAsync(blobs.part("crawl.text", range)));
      expect(part.equals(content.subarray(range.start, range.end + 1))).to.equal(true);
      expect(await blobs.size("crawl.text")).to.equal(content.length);
    });

    it("get() reads a blob of a release that did not compress", async () => {
      const { head } = blobSubjects("crawl.old");
      const bytes = Buffer.from('"html":"<p>Hello</p>"');
      const stored = headers();
      stored.set(
        "Trunkline-Blob",
        '{"bytes":21,"sha256":"c41e7a8b6abceb779c1ebcbda039cfa6a7800fbb4d5cc0577bea6035bf790b63","chunks":0}',
      );
      await world.bus.jetstream.jetstream().publish(head, bytes, { headers: stored });
      const read = Buffer.concat(await Array.fromAsync(blobs.get("crawl.old")));
      expect(read.toString()).to.equal('"html":"<p>Hello</p>"');
    });
  });
});
