import { expect } from "chai";
import { BLOB_CHUNK_BYTES } from "../../../../schemas/limits.ts";
import { RECORD_GROUP_MAX, RecordWriter } from "./record-writer.ts";

describe("RecordWriter", () => {
  /** A store in memory, which records whether each entry arrived in a group or alone. */
  function storing() {
    const groups: number[] = [];
    const alone: string[] = [];
    const writer = new RecordWriter({
      async put(name, content) {
        alone.push(name);
        const bytes = (content as Uint8Array).length;
        return { name, bytes, storedBytes: bytes + 1 };
      },
      async putAll(blobs) {
        groups.push(blobs.length);
        return blobs
          .map(({ name, content }) => ({ name, bytes: content.length, storedBytes: 7 }))
          .toReversed();
      },
    });
    return { writer, groups, alone };
  }

  it("write() groups at most RECORD_GROUP_MAX small records into one write", async () => {
    for (const sizes of [[RECORD_GROUP_MAX], [RECORD_GROUP_MAX, 1]]) {
      const { writer, groups } = storing();
      const count = sizes.reduce((sum, size) => sum + size);
      const names = Array.from({ length: count }, (_, number) => `n${number}`);
      const written = await Promise.all(names.map((name) => writer.write(name, Buffer.from("x"))));
      expect(written.map(({ name }) => name)).to.deep.equal(names);
      expect(groups).to.deep.equal(sizes);
    }
  });

  it("write() groups records of one chunk, and writes a larger one alone", async () => {
    const { writer, groups, alone } = storing();
    const small = await writer.write("small", Buffer.alloc(BLOB_CHUNK_BYTES));
    expect(small).to.deep.equal({ name: "small", bytes: BLOB_CHUNK_BYTES, storedBytes: 7 });
    const large = await writer.write("large", Buffer.alloc(BLOB_CHUNK_BYTES + 1));
    const bytes = BLOB_CHUNK_BYTES + 1;
    expect(large).to.deep.equal({ name: "large", bytes, storedBytes: bytes + 1 });
    expect([groups, alone]).to.deep.equal([[1], ["large"]]);
  });
});
