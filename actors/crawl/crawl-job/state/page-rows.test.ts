import { expect } from "chai";
import { checkJob, fetched, JobWorld, START } from "../../../../scripts/testing/job-world.ts";
import type { HandlerContext } from "../../../runtime/kinds/define-actor.ts";
import { CrawlJobRow, INITIAL, type PageRow } from "./crawl-job-state.ts";
import { JobDraft, STEP_BYTES_MAX } from "./job-draft.ts";
import { unpackLines } from "./packed-lines.ts";
import { findPage, PAGE_LINE_BYTES_MAX, PAGES_PER_ROW, pageOf, writePage } from "./page-rows.ts";

const HASH = "a".repeat(32);
const page = (more: Partial<PageRow> = {}): PageRow => ({
  ...{ type: "page", url: "https://a.example/", depth: 1, status: "queued", ...more },
});
const FULL = page({
  ...{ at: "https://b.example/?a=%09", hops: 1, status: "completed", failures: 1, breaks: 2 },
  ...{ alone: true, tooDeep: true, jsonSource: "blob", next: 2, settledAs: 1, reason: "a\tb\\t" },
  shown: JSON.stringify({ metadata: { title: 'A\t"title"\n ä' } }),
  metadata: { status: 200, title: "\t", url: "https://b.example/" },
  blobs: [{ name: "n", bytes: 1 }],
});

/** Rows of a job, as a host loads them. Each `change` is a transition. */
class Rows {
  readonly stored = new Map<string, CrawlJobRow>();

  change(build: (draft: JobDraft) => void): string[] {
    const draft = this.draft;
    build(draft);
    const { rows = {} } = draft.transition() as { rows?: Record<string, CrawlJobRow | null> };
    for (const [name, row] of Object.entries(rows)) {
      if (row === null) this.stored.delete(name);
      else this.stored.set(name, CrawlJobRow.parse(JSON.parse(JSON.stringify(row))));
    }
    return Object.keys(rows).sort();
  }

  get draft(): JobDraft {
    const context = { key: HASH, now: 0, rows: this.stored };
    return new JobDraft(INITIAL, context as unknown as HandlerContext<CrawlJobRow>);
  }
}

describe("rows of records", () => {
  for (const [what, one] of [
    ["a queued page", page({ next: 7 })],
    ["the last page of a queue", page()],
    ["a settled page", page({ status: "completed", settledAs: 3, shown: '{"reason":"r"}' })],
    ["a record with every field", FULL],
  ] as const) {
    it(`reads back as it was written: ${what}`, () => {
      const rows = new Rows();
      rows.change((draft) => writePage(draft, 0, one));
      expect(findPage(rows.draft, 0)).to.deep.equal(one);
      expect([...rows.stored.keys()]).to.deep.equal(["g/0"]);
    });
  }

  it("PAGES_PER_ROW neighbours are one row", () => {
    const rows = new Rows();
    const written = rows.change((draft) => {
      for (let index = 0; index <= PAGES_PER_ROW; index += 1) {
        writePage(draft, index, page({ next: index + 1 }));
      }
    });
    expect(written).to.deep.equal(["g/0", "g/1"]);
    expect(pageOf(rows.draft, PAGES_PER_ROW).next).to.equal(PAGES_PER_ROW + 1);
    expect(findPage(rows.draft, PAGES_PER_ROW + 1)).to.equal(undefined);
  });

  it("a record past PAGE_LINE_BYTES_MAX has a row of its own while it is long", () => {
    const rows = new Rows();
    const write = (shown: string) =>
      rows.change((draft) => writePage(draft, 1, page({ status: "completed", shown })));
    rows.change((draft) => writePage(draft, 0, page()));
    write("ä");
    const [, line = ""] = unpackLines((rows.stored.get("g/0") as { text: string }).text);
    const left = PAGE_LINE_BYTES_MAX - Buffer.byteLength(JSON.stringify(line)) + 2;
    expect(write("ä".repeat(left / 2))).to.deep.equal(["g/0"]);
    expect(write("ä".repeat(left / 2 + 1))).to.deep.equal(["g/0", "p/1"]);
    expect(write("ö".repeat(left / 2 + 1))).to.deep.equal(["p/1"]);
    expect(pageOf(rows.draft, 1).shown).to.equal("ö".repeat(left / 2 + 1));
    expect(pageOf(rows.draft, 0)).to.deep.equal(page());
    expect(write("ä")).to.deep.equal(["g/0", "p/1"]);
    expect(rows.stored.has("p/1")).to.equal(false);
    expect(pageOf(rows.draft, 1).shown).to.equal("ä");
  });

  it("a row names once what its addresses have in common", () => {
    const rows = new Rows();
    const folder = "https://a.example/a-folder-with-a-long-name/";
    rows.change((draft) => {
      for (const index of [0, 1, 2]) writePage(draft, index, page({ url: `${folder}${index}` }));
    });
    expect(JSON.stringify(rows.stored.get("g/0")).split(folder)).to.have.length(2);
    expect(pageOf(rows.draft, 2).url).to.equal(`${folder}2`);
  });

  it("a row that an earlier release stored as a list of lines is read, and packed when it changes", () => {
    const rows = new Rows();
    const first = "https://a.example/\\t1\\tqueued\\t1";
    const stored = `{"type":"pages","lines":["${first}","https://a.example/1\\t1\\tcompleted"]}`;
    rows.stored.set("g/0", CrawlJobRow.parse(JSON.parse(stored)));
    expect(pageOf(rows.draft, 0)).to.deep.equal(page({ next: 1 }));
    rows.change((draft) => writePage(draft, 2, page({ url: "https://a.example/2" })));
    expect(rows.stored.get("g/0")).to.deep.equal({
      type: "packed",
      text: "0 https://a.example/\t1\tqueued\t1\n18 1\t1\tcompleted\n18 2\t1\tqueued",
    });
    expect([0, 1, 2].map((index) => pageOf(rows.draft, index).status)).to.deep.equal([
      ...["queued", "completed", "queued"],
    ]);
  });

  it("the lines of neighbours count as bytes of a message, once for each row", () => {
    const rows = new Rows();
    const long = page({ url: `https://a.example/${"a".repeat(400)}` });
    const count = Math.ceil(STEP_BYTES_MAX / 400);
    rows.change((draft) => {
      for (let index = 0; index < count; index += 1) writePage(draft, index, long);
      expect(draft.isFull, "new rows").to.equal(count / PAGES_PER_ROW >= 360);
    });
    rows.change((draft) => {
      for (let time = 0; time < count; time += 1) writePage(draft, 0, long);
      expect(draft.isFull, "one row").to.equal(false);
      for (let index = 0; index < count; index += PAGES_PER_ROW) writePage(draft, index, long);
      expect(draft.isFull, "all rows").to.equal(true);
    });
  });

  it("a job of an earlier release goes on with a row for each record", () => {
    const world = new JobWorld().start({ source: "links", limit: 100 });
    world.learn();
    world.visit(fetched(["1", "2", "3"].map((path) => `${START}${path}`)));
    for (const index of [0, 1, 2, 3]) {
      world.rows.set(`p/${index}`, pageOf({ row: (name) => world.rows.get(name) }, index));
    }
    world.rows.delete("g/0");
    world.visit(fetched([`${START}4`]));
    checkJob(world);
    expect(world.records().map(({ status }) => status)).to.deep.equal([
      ...["completed", "completed", "queued", "queued", "queued"],
    ]);
    const names = [...world.rows.keys()].filter((name) => /^[gp]\//.test(name));
    expect(names.sort()).to.deep.equal(["p/0", "p/1", "p/2", "p/3", "p/4"]);
  });
});
