import { SourceMap } from "node:module";
import { expect } from "chai";
import { buildSync } from "esbuild";
import { SeededRandom } from "../../../scripts/testing/seeded-random.ts";
import { type Place, sourcePlaces } from "./source-places.ts";

/** Returns esbuild's bundle of two source files of this project, with its source map. */
function build() {
  const { outputFiles } = buildSync({
    stdin: {
      contents: `import { SeededRandom } from "./seeded-random.ts"; import { until } from "./until.ts";
export const all = [SeededRandom, until, () => { throw new Error("é"); }];`,
      sourcefile: "entry.ts",
      resolveDir: new URL("../../../scripts/testing", import.meta.url).pathname,
      loader: "ts",
    },
    ...{ bundle: true, write: false, format: "esm", platform: "node", packages: "external" },
    ...{ sourcemap: "external", outfile: "bundle.js" },
  });
  const [map, code] = outputFiles.map(({ text }) => text);
  return { code: code ?? "", map: JSON.parse(map ?? "") };
}

describe("sourcePlaces()", () => {
  it("finds the same places as Node's own reader of source maps", () => {
    const { code, map } = build();
    const reference = new SourceMap(map);
    const random = new SeededRandom(1);
    const lines = code.split("\n");
    const wanted: Place[] = [];
    for (const [index, text] of lines.entries()) {
      for (let column = 0; column <= text.length; column += 1)
        wanted.push({ line: index + 1, column });
    }
    wanted.sort(() => random.next() - 0.5);
    const found = sourcePlaces(map.mappings, wanted);
    let known = 0;
    for (const [index, { line, column }] of wanted.entries()) {
      const entry = reference.findEntry(line - 1, column);
      const isOfLine = "generatedLine" in entry && entry.generatedLine === line - 1;
      const place = found[index];
      const text = `${line}:${column}`;
      if (!isOfLine || !("originalSource" in entry)) continue;
      known += 1;
      expect(map.sources[place?.source ?? -1], text).to.equal(entry.originalSource);
      expect([place?.line, place?.column], text).to.deep.equal([
        entry.originalLine + 1,
        entry.originalColumn,
      ]);
    }
    expect(known).to.be.greaterThan(1_000);
  });

  it("takes any text for mappings, and any place", () => {
    for (const mappings of ["", ";;;", "A", "AAAA,", "é;AAAA", "////", "g", ";AAAA;AACA"]) {
      const places = [0, 1, 2, 3, 1e9].map((line) => ({ line, column: line }));
      expect(sourcePlaces(mappings, places), mappings).to.have.length(places.length);
    }
    expect(sourcePlaces(";AAAA;AACA", [{ line: 3, column: 5 }])).to.deep.equal([
      { source: 0, line: 2, column: 0 },
    ]);
  });
});
