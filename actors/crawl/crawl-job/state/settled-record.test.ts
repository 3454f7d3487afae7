import { expect } from "chai";
import { CrawlJobRow, type PageRow } from "./crawl-job-state.ts";
import { readShown, type Shown, writeShown } from "./settled-record.ts";

const job = "a".repeat(32);
const turn = "b".repeat(32);
const url = "https://a.example/page";
const page: PageRow = { type: "page", url, depth: 1, status: "completed", settledAs: 3 };

describe("settled record", () => {
  const cases: [what: string, page: PageRow, shown: Shown][] = [
    ["nothing", page, {}],
    ["a reason", page, { reason: 'it said "no"' }],
    [
      "metadata of the page's own address, and its blobs",
      page,
      {
        metadata: { status: 200, title: "A", url, lastModifiedAt: 5 },
        blobs: [
          { name: `crawl.${job}.7.${turn}`, bytes: 10 },
          { name: `crawl.${job}.7.json`, bytes: 20 },
        ],
      },
    ],
    [
      "where a redirect has led to",
      { ...page, at: "https://a.example/there" },
      { metadata: { status: 200, url: "https://a.example/there" } },
    ],
    [
      "another address, and a blob of another page",
      page,
      {
        metadata: { url: "https://b.example/" },
        blobs: [{ name: `crawl.${job}.77.${turn}`, bytes: 1 }],
      },
    ],
  ];
  for (const [what, row, shown] of cases) {
    it(`reads back as it was written: ${what}`, () => {
      const kept = { ...row, shown: writeShown({ job, index: 7, page: row }, shown) };
      const loaded = CrawlJobRow.parse(JSON.parse(JSON.stringify(kept)));
      expect(loaded.type === "page" && readShown({ job, index: 7, page: loaded })).to.deep.equal(
        shown,
      );
    });
  }

  it("omits values that the row or the job's id contain", () => {
    const metadata = { status: 200, url };
    const blobs = [{ name: `crawl.${job}.7.${turn}`, bytes: 10 }];
    const shown = writeShown({ job, index: 7, page }, { metadata, blobs, reason: undefined });
    expect(shown).to.equal(`{"metadata":{"status":200},"blobs":[[".${turn}",10]]}`);
  });

  it("reads rows of the first release with separate fields", () => {
    const old = `{"type":"page","url":"${url}","depth":1,"status":"errored","settledAs":3,"reason":"HTTP 404",
      "metadata":{"status":404,"url":"${url}"},"blobs":[{"name":"crawl.${job}.7.${turn}","bytes":10}]}`;
    const loaded = CrawlJobRow.parse(JSON.parse(old));
    const shown = loaded.type === "page" ? readShown({ job, index: 7, page: loaded }) : undefined;
    expect(shown).to.deep.include({
      reason: "HTTP 404",
      metadata: { status: 404, url },
      blobs: [{ name: `crawl.${job}.7.${turn}`, bytes: 10 }],
    });
  });
});
