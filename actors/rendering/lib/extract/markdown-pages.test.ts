import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { openPool } from "../../../../scripts/testing/printer.ts";
import { markdown } from "./markdown.ts";
import { kept, readBack, wordsOf, wordsSeen } from "./testing/words.ts";

/**
 * Complete pages in the style of real sites: a shop, a forum with nested tables, a newspaper, documentation, a list,
 * code.
 */
const FOLDER = join(import.meta.dirname, "testing/pages");
const PAGES = readdirSync(FOLDER).map((name) => ({
  name,
  html: readFileSync(join(FOLDER, name), "utf8"),
}));

describe("markdown of whole pages", function () {
  this.timeout(60_000);
  const pool = openPool();
  before(() => pool.start());
  after(() => pool.close());

  /** Returns the words that a browser shows. */
  async function visibleWords(html: string): Promise<Map<string, number>> {
    await using context = await pool.newContext(new AbortController().signal);
    await context.page.setContent(html);
    return wordsOf(String(await context.evaluate("document.body.innerText")));
  }

  for (const { name, html } of PAGES) {
    it(`keeps at least 99 % of the words that a browser shows of ${name}, and hardly any others`, async () => {
      const made = markdown({ html, baseUrl: "https://a.example/b/page" });
      const visible = await visibleWords(html);
      const read = wordsSeen(readBack(made));
      const [of, all] = kept(visible, read);
      expect(all).to.be.above(130);
      expect(of / all).to.be.at.least(0.99);
      const [shown, written] = kept(read, visible);
      expect(shown / written).to.be.at.least(0.97);
      expect(made).not.to.match(/unseen|DOCUMENTATION_OPTIONS|dataLayer|\.mw-parser|Never shown/);
    });
  }

  it("there are six pages", () => {
    const names = PAGES.map(({ name }) => name);
    const known = ["code", "docs", "forum", "news", "shop", "tables"];
    expect(names).to.deep.equal(known.map((name) => `${name}.html`));
  });
});
