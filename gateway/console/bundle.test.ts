import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { expect } from "chai";
import { type ConsoleBundle, consoleBundle } from "./bundle.ts";

/** Maximum compressed bytes that a browser loads before it shows the first page. */
const FIRST_LOAD_BYTES_MAX = 150_000;

describe("consoleBundle()", function () {
  this.timeout(60_000);
  let folder: string;
  let kept: string;
  let made: ConsoleBundle;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "console-"));
    kept = join(folder, "below/console.json");
    made = await consoleBundle(kept);
  });
  after(() => rm(folder, { recursive: true }));

  it("keeps what it made for the next process", async () => {
    const marked = { ...made, script: "kept.js" };
    await writeFile(kept, JSON.stringify(marked));
    expect((await consoleBundle(kept)).script).to.equal("kept.js");
  });

  it("makes it again when the sources have changed, or what is kept was cut off", async () => {
    for (const text of [JSON.stringify({ ...made, sources: "older" }), '{"sources":']) {
      await writeFile(kept, text);
      expect(await consoleBundle(kept)).to.deep.equal(made);
      expect(JSON.parse(await readFile(kept, "utf8"))).to.deep.equal(made);
    }
  });

  it("serves without keeping where nothing can be written", async () => {
    const file = join(folder, "file");
    await writeFile(file, "");
    expect(await consoleBundle(join(file, "console.json"))).to.deep.equal(made);
  });

  it(`loads the first page with at most ${FIRST_LOAD_BYTES_MAX} compressed bytes`, () => {
    const texts = new Map(made.files.map(({ name, text }) => [name, text]));
    const home = made.files.find(({ text }) => text.includes("Quick starts"))?.name ?? "";
    const needed = new Set([made.script, made.style, home]);
    // The loop also visits names that are added during the loop, so it collects the imports of imports.
    for (const name of needed) {
      const imports = (texts.get(name) ?? "").matchAll(/(?:from|import)"\.\/([\w-]+\.js)"/g);
      for (const [, imported = ""] of imports) needed.add(imported);
    }
    const sizes = [...needed].map((name) => gzipSync(texts.get(name) ?? "").length);
    expect(sizes.length).to.be.at.least(4);
    expect(sizes.reduce((sum, size) => sum + size)).to.be.below(FIRST_LOAD_BYTES_MAX);
  });
});
