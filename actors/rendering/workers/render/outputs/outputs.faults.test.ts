import { expect } from "chai";
import {
  ACCESSIBILITY_NODES_MAX,
  RESULT_BYTES_MAX,
} from "../../../../../schemas/rendering/limits.ts";
import { openPageReader, type PageReader } from "../../../../../scripts/testing/page-reader.ts";

describe("results that are too large", function () {
  this.timeout(300_000);
  let reader: PageReader;
  before(() => {
    reader = openPageReader();
  });
  after(() => reader.close());
  const run: PageReader["run"] = (...given) => reader.run(...given);
  const refused: PageReader["refused"] = (...given) => reader.refused(...given);

  it("content() gives RESULT_BYTES_MAX and refuses one byte more", async () => {
    const sized = (bytes: number) => ({
      html: `<p hidden><script>
        const shell = document.documentElement.outerHTML.length;
        document.querySelector("p").append("x".repeat(${bytes} - shell));
      </script>`,
    });
    const { result } = await run("content", sized(RESULT_BYTES_MAX));
    expect(result.length).to.equal(RESULT_BYTES_MAX);
    const { code, message } = await refused("content", sized(RESULT_BYTES_MAX + 1));
    expect(code).to.equal("page_not_printable");
    expect(message).to.contain(`its HTML is larger than ${RESULT_BYTES_MAX} bytes`);
  });

  it("markdown() refuses a page whose addresses become longer than RESULT_BYTES_MAX", async () => {
    const base = `<base href="https://example.com/${"b".repeat(2_000)}/">`;
    const html = `${base}${"<a href=x>y</a> ".repeat(RESULT_BYTES_MAX / 2_000)}`;
    const { code, message } = await refused("markdown", { html });
    expect([code, message]).to.deep.equal([
      "page_not_printable",
      `Cannot read the page: its Markdown is larger than ${RESULT_BYTES_MAX} bytes`,
    ]);
  });

  it("links() gives RESULT_BYTES_MAX of JSON and refuses one byte more", async () => {
    const sized = (bytes: number) => ({
      html: `<script>
        // Ten links. As JSON, each takes two quotes and a comma more, and the brackets are counted too.
        const chars = ${bytes} - 10 * 3 - 1;
        for (let index = 0; index < 10; index++) {
          const length = Math.floor(chars / 10) + (index === 0 ? chars % 10 : 0);
          const link = document.body.appendChild(document.createElement("a"));
          link.href = "https://example.com/" + "x".repeat(length - 20);
        }
      </script>`.replace("<script>", "<body><script>"),
    });
    const { reply } = await run("links", sized(RESULT_BYTES_MAX));
    expect(reply.bytes).to.equal(RESULT_BYTES_MAX + '"result":'.length);
    const { code } = await refused("links", sized(RESULT_BYTES_MAX + 1));
    expect(code).to.equal("page_not_printable");
  });

  it("scrape() refuses more than RESULT_BYTES_MAX, before it makes much more", async () => {
    // The answer contains the text twice, and each character takes two bytes.
    const html = `<p><script>document.querySelector("p").textContent = "é".repeat(${RESULT_BYTES_MAX / 4})</script>`;
    const large = await refused("scrape", { html, elements: [{ selector: "p" }] });
    expect(large.message).to.contain("its list of elements is larger");
    const nested = `${"<div>".repeat(500)}${"x".repeat(30_000)}`;
    const squared = await refused("scrape", { html: nested, elements: [{ selector: "div" }] });
    expect(squared.code).to.equal("page_not_printable");
  });

  it("accessibilityTree() reads ACCESSIBILITY_NODES_MAX nodes and refuses one more", async () => {
    // The nodes html, head, body and script, and the script's text. Half of the remaining nodes are text nodes.
    const sized = (nodes: number) => ({
      html: `<html><head></head><body><script>
        for (let left = ${nodes} - 5; left > 0; left -= 2) {
          const item = document.body.appendChild(document.createElement("i"));
          if (left > 1) item.append("x");
        }
      </script>`,
    });
    const { result } = await run("accessibilityTree", sized(ACCESSIBILITY_NODES_MAX));
    expect(result.accessibilityTree.children.length).to.be.above(ACCESSIBILITY_NODES_MAX / 3);
    const { code, message } = await refused(
      "accessibilityTree",
      sized(ACCESSIBILITY_NODES_MAX + 1),
    );
    expect([code, message]).to.deep.equal([
      "page_not_printable",
      `Cannot read the page: it has more than ${ACCESSIBILITY_NODES_MAX} elements and texts`,
    ]);
  });
});
