import { expect } from "chai";
import {
  FILE_NAME_CHARS_MAX,
  FILES_MAX,
  KEYWORDS_MAX,
  METADATA_CHARS_MAX,
  SOURCES_MAX,
} from "../limits.ts";
import { ContentRequest } from "./page-calls.ts";
import { PdfRequest } from "./pdf.ts";

const file = (name: string, text = "x") => ({ name, base64: Buffer.from(text).toString("base64") });
const INDEX = file("index.html");

/** Returns pointer and message of each fault; empty for valid input. */
function faultsOf(request: object, schema: typeof PdfRequest | typeof ContentRequest = PdfRequest) {
  const { error } = schema.safeParse(request);
  return (error?.issues ?? []).map(({ path, message }) => `${path.join("/")}: ${message}`);
}

describe("files of a page", () => {
  it("are the source of a page, for every call", () => {
    expect(faultsOf({ files: [INDEX] })).to.deep.equal([]);
    expect(faultsOf({ files: [file("index.md")] }, ContentRequest)).to.deep.equal([]);
    for (const other of [{ url: "https://example.com" }, { html: "x" }]) {
      const faults = faultsOf({ files: [INDEX], ...other });
      expect(faults).to.deep.equal(["url: Expected exactly one of url, html and files"]);
    }
    expect(faultsOf({})).to.deep.equal(["url: Expected exactly one of url, html and files"]);
  });

  it("need an index at the top", () => {
    const expected = "files: Expected index.html or index.md at the top among the names, found ";
    expect(faultsOf({ files: [file("a.html"), file("site/index.html")] })).to.deep.equal([
      `${expected}a.html, site/index.html`,
    ]);
  });

  it("have paths below the document's folder", () => {
    const faults: [string, string][] = [
      ["/etc/passwd", "not an absolute one"],
      ["C:/x.css", "not an absolute one"],
      ["..", "without .."],
      ["a/../../x.css", "without .."],
      ["a\\x.css", "no \\"],
      ["./x.css", "without empty parts and ."],
      ["a//x.css", "without empty parts and ."],
      ["a/", "without empty parts and ."],
      ["x\u0000.css", "without control characters"],
      ["x\n.css", "without control characters"],
      ["\ud800.css", "Unicode"],
    ];
    for (const [name, message] of faults) {
      const [fault, ...others] = faultsOf({ files: [INDEX, file(name)] });
      expect(fault, name)
        .to.match(/^files\/1\/name: Expected a path/)
        .and.contain(message);
      expect(others).to.deep.equal([]);
    }
    for (const name of ["a/b/x.css", "..x", "x..css", "a b.css", "é%20.png", "𝒳.png"]) {
      expect(faultsOf({ files: [INDEX, file(name)] }), name).to.deep.equal([]);
    }
  });

  it("have each name once, however a system writes it", () => {
    const twice = [INDEX, file("\u00e9.css"), file("e\u0301.css")];
    expect(faultsOf({ files: twice })).to.deep.equal([
      "files/2/name: Expected no duplicate names: \u00e9.css occurs twice",
    ]);
    const { files } = PdfRequest.parse({ files: [INDEX, file("e\u0301.css")] });
    expect(files?.[1]?.name).to.equal("\u00e9.css");
  });

  it("are bounded in number and in the length of their names", () => {
    const many = (count: number) => Array.from({ length: count }, (_, at) => file(`${at}.css`));
    expect(faultsOf({ files: [INDEX, ...many(FILES_MAX - 1)] })).to.deep.equal([]);
    expect(faultsOf({ files: [INDEX, ...many(FILES_MAX)] })).to.have.length(1);
    expect(faultsOf({ files: [INDEX, file("x".repeat(FILE_NAME_CHARS_MAX))] })).to.deep.equal([]);
    const long = faultsOf({ files: [INDEX, file("x".repeat(FILE_NAME_CHARS_MAX + 1))] });
    expect(long).to.have.length(1);
    // Normalising may make a name longer. A name that would be too long then is refused, so that every accepted name
    // is also accepted when it is parsed again.
    expect("\u0958".normalize()).to.have.length(2);
    const growing = (count: number) => ({ files: [INDEX, file("\u0958".repeat(count))] });
    expect(faultsOf(PdfRequest.parse(growing(FILE_NAME_CHARS_MAX / 2)))).to.deep.equal([]);
    expect(faultsOf(growing(FILE_NAME_CHARS_MAX / 2 + 1))).to.have.length(1);
  });

  it("are base64, also of many megabytes", () => {
    expect(faultsOf({ files: [file("index.html", "x".repeat(20_000_000))] })).to.deep.equal([]);
    for (const base64 of ["a", "aaa", "a===", "aa=a", "ab-_", "aaaa\n"]) {
      const faults = faultsOf({ files: [{ name: "index.html", base64 }] });
      expect(faults, base64).to.deep.equal(["files/0/base64: Expected text in base64"]);
    }
    expect(faultsOf({ files: [{ name: "index.html", base64: "" }] })).to.deep.equal([]);
  });
});

describe("sources of a PDF", () => {
  it("take the place of url and html, and may name files", () => {
    const files = [file("a.html"), file("\u00e9.md")];
    const sources = [{ html: "x" }, { url: "https://example.com" }, { file: "e\u0301.md" }];
    expect(faultsOf({ files, sources })).to.deep.equal([]);
    expect(faultsOf({ sources: [{ html: "x" }] })).to.deep.equal([]);
    expect(faultsOf({ sources: [{ html: "x" }], html: "x" })).to.deep.equal([
      "url: Expected exactly one of url, html and sources",
    ]);
    expect(faultsOf({ files, sources: [{ file: "b.html" }] })).to.deep.equal([
      "sources/0/file: Expected the name of one of files",
    ]);
    for (const source of [{}, { html: "x", file: "a.html" }]) {
      expect(faultsOf({ files, sources: [source] })).to.deep.equal([
        "sources/0: Expected exactly one of url, html and file",
      ]);
    }
  });

  it("are bounded in number", () => {
    const many = (length: number) => ({ sources: Array.from({ length }, () => ({ html: "x" })) });
    expect(faultsOf(many(SOURCES_MAX))).to.deep.equal([]);
    expect(faultsOf(many(SOURCES_MAX + 1))).to.have.length(1);
    expect(faultsOf(many(0))).to.have.length(1);
  });

  it("have no report, and all their pages", () => {
    const sources = [{ html: "x" }];
    expect(faultsOf({ sources, report: true })[0]).to.match(
      /^report: Expected no report with sources/,
    );
    const ranges = faultsOf({ sources, pdfOptions: { pageRanges: "1" } });
    expect(ranges[0]).to.match(/^pdfOptions\/pageRanges: Expected no pageRanges with sources/);
  });
});

describe("properties of a PDF", () => {
  const faultsIn = (metadata: object) => faultsOf({ html: "x", pdfOptions: { metadata } });

  it("are bounded, and keywords also when they are joined", () => {
    const long = "x".repeat(METADATA_CHARS_MAX);
    for (const name of ["title", "author", "subject", "keywords"]) {
      expect(faultsIn({ [name]: long }), name).to.deep.equal([]);
      expect(faultsIn({ [name]: `${long}x` }), name).to.have.length(1);
    }
    expect(faultsIn({ keywords: Array(KEYWORDS_MAX).fill("x") })).to.deep.equal([]);
    expect(faultsIn({ keywords: Array(KEYWORDS_MAX + 1).fill("x") })).to.have.length(1);
    expect(faultsIn({ keywords: [long, "x"] })).to.have.length(1);
    expect(faultsIn({ title: "\ud800" })).to.have.length(1);
  });

  it("stay valid in normal form, in which they travel", () => {
    const parsed = PdfRequest.parse({
      html: "x",
      pdfOptions: { metadata: { keywords: ["one", "two"] } },
    });
    expect(parsed.pdfOptions?.metadata).to.deep.equal({ keywords: "one, two" });
    expect(PdfRequest.parse(parsed)).to.deep.equal(parsed);
  });
});
