import { Readable } from "node:stream";
import { gzipSync } from "node:zlib";
import { expect } from "chai";
import { CRAWL_URL_CHARS_MAX, SITEMAP_BYTES_MAX } from "../../../../schemas/crawl/limits.ts";
import {
  CONFORMANCE_NOTE,
  conformanceFile,
  conformanceFiles,
  needsConformance,
} from "../../../../scripts/testing/conformance.ts";
import { BOMB_BYTES, gzipBomb, peakBytes } from "../../../../scripts/testing/gzip-bomb.ts";
import { processorTime } from "../../../../scripts/testing/processor-time.ts";
import { readSitemap, SITEMAP_URLS_MAX, type SitemapSummary } from "./sitemap.ts";
import type { SitemapEntry } from "./sitemap-entry.ts";
import { SITEMAP_DEPTH_MAX } from "./sitemap-xml.ts";

const HEAD = '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">';

describe("readSitemap", () => {
  it("readSitemap() reads addresses, times and priorities", async () => {
    const { entries, summary } = await read(`<?xml version="1.0"?>${HEAD}
      <url><loc> https://a.example/x?a=1&amp;b=&#x32;#f </loc><lastmod>2026-01-02</lastmod><priority>0.8</priority></url>
      <url><loc><![CDATA[https://a.example/<y>&]]></loc><lastmod>2026-01-02T03:04:05+01:00</lastmod></url>
      <url><priority>7</priority><lastmod>soon</lastmod><loc>https://a.example/z</loc></url></urlset>`);
    expect(entries).to.deep.equal([
      { ...page("x?a=1&b=2"), lastModifiedAt: Date.UTC(2026, 0, 3) - 1, priority: 0.8 },
      { ...page("%3Cy%3E&"), lastModifiedAt: Date.UTC(2026, 0, 2, 2, 4, 5) },
      page("z"),
    ]);
    expect(summary).to.deep.equal({ form: "urlset", entries: 3, invalid: 0, end: "complete" });
  });

  it("readSitemap() reads a date without a time as the end of its period", async () => {
    const times = {
      "2026": Date.UTC(2027, 0, 1) - 1,
      "2026-11": Date.UTC(2026, 11, 1) - 1,
      "2026-12": Date.UTC(2027, 0, 1) - 1,
      "2026-11-21": Date.UTC(2026, 10, 22) - 1,
      "2026-11-21T12:30Z": Date.UTC(2026, 10, 21, 12, 31) - 1,
      "2026-11-21T12:30+01:00": Date.UTC(2026, 10, 21, 11, 31) - 1,
      "2026-11-21T12:30:10Z": Date.UTC(2026, 10, 21, 12, 30, 10),
      "2026-11-21T12:30:10.5Z": Date.UTC(2026, 10, 21, 12, 30, 10, 500),
      "Sat, 21 Nov 2026 12:30:10 GMT": Date.UTC(2026, 10, 21, 12, 30, 10),
      "2026-13": undefined,
      "2026-11-32": undefined,
    };
    const urls = Object.keys(times).map(
      (time) => `<url><loc>https://a.example/</loc><lastmod>${time}</lastmod></url>`,
    );
    const { entries } = await read(`${HEAD}${urls.join("")}</urlset>`);
    expect(entries.map(({ lastModifiedAt }) => lastModifiedAt)).to.deep.equal(Object.values(times));
  });

  it("readSitemap() makes relative addresses absolute, and counts invalid ones", async () => {
    const { entries, summary } = await read(
      urls("/a", "b", "//o.example/c", "https://o.example/d", "ftp://a.example/", "http://[", ""),
    );
    expect(entries.map(({ url }) => url)).to.deep.equal([
      "https://a.example/a",
      "https://a.example/maps/b",
      "https://o.example/c",
      "https://o.example/d",
    ]);
    expect(summary.invalid).to.equal(3);
  });

  it("readSitemap() reads an index", async () => {
    const { entries, summary } = await read(
      "<sitemapindex><sitemap><loc>https://a.example/1.xml.gz</loc></sitemap></sitemapindex>",
    );
    expect([summary.form, entries]).to.deep.equal(["index", [page("1.xml.gz")]]);
  });

  it("readSitemap() reads only the entries of feeds", async () => {
    const rss = await read(`<rss><channel><link>https://a.example/</link><item><title>t</title>
      <link>https://a.example/a</link><atom:link href="https://a.example/self"/>
      <pubDate>Fri, 02 Jan 2026 00:00:00 GMT</pubDate></item></channel></rss>`);
    expect([rss.summary.form, rss.entries]).to.deep.equal([
      "rss",
      [{ ...page("a"), lastModifiedAt: Date.UTC(2026, 0, 2) }],
    ]);
    const rdf = await read(`<rdf:RDF><channel/><item><link>https://a.example/a</link>
      <dc:date>2026-01-02T00:00:00Z</dc:date></item></rdf:RDF>`);
    expect([rdf.summary.form, rdf.entries]).to.deep.equal([rss.summary.form, rss.entries]);
    const atom =
      await read(`<feed><link href="https://a.example/"/><entry><link rel="edit" href="/e"/>
      <link href="https://a.example/a"/><updated>2026-01-02T00:00:00Z</updated></entry></feed>`);
    expect([atom.summary.form, atom.entries]).to.deep.equal(["atom", rss.entries]);
  });

  it("readSitemap() reads plain text in any line ending, but not prose", async () => {
    const { entries, summary } = await read(
      "\ufeffhttps://a.example/a\r\n\r  https://a.example/b \nno/c",
    );
    expect(entries).to.deep.equal([page("a"), page("b")]);
    expect(summary).to.deep.equal({ form: "text", entries: 2, invalid: 1, end: "complete" });
    expect((await read("Not found\nno such page")).summary).to.include({
      form: "text",
      entries: 0,
    });
    expect((await read("<!doctype html><html><a href=x>")).summary.form).to.equal("unknown");
    expect((await read(" \n")).summary).to.deep.include({ form: "unknown", end: "complete" });
  });

  it("readSitemap() reads any charset that is declared", async () => {
    const xml = (label: string) => `<?xml version="1.0" encoding="${label}"?>${urls("/é")}`;
    const latin = Buffer.from(xml("ISO-8859-1"), "latin1");
    const utf16 = Buffer.from(`\ufeff${xml("UTF-16")}`, "utf16le");
    for (const bytes of [
      latin,
      utf16,
      Buffer.from(xml("no-such")),
      Buffer.from(`\ufeff${xml("UTF-8")}`),
    ]) {
      expect((await read(bytes)).entries.map(({ url }) => url)).to.deep.equal([
        "https://a.example/%C3%A9",
      ]);
    }
  });

  it("readSitemap() reads a file in chunks of any size", async () => {
    const text = `<?xml version="1.0"?><urlset>${"<url><loc>/é&amp;é</loc></url>".repeat(20)}</urlset>`;
    const whole = await read(text);
    for (const bytes of [Buffer.from(text), gzipSync(text)]) {
      for (const size of [1, 2, 7]) {
        const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) =>
          bytes.subarray(index * size, (index + 1) * size),
        );
        expect(await read(chunks)).to.deep.equal(whole);
      }
    }
  });

  it("readSitemap() unpacks gzip, once or twice", async () => {
    const text = urls("/a");
    for (const bytes of [gzipSync(text), gzipSync(gzipSync(text))]) {
      expect((await read(bytes)).entries).to.have.length(1);
    }
  });

  it("readSitemap() returns the entries of a broken file", async () => {
    const text = urls(...Array.from({ length: 5_000 }, (_, index) => `/${index * 7919}`));
    const packed = gzipSync(text);
    const cut = await read(packed.subarray(0, packed.length / 2));
    expect(cut.entries.length).to.be.within(1_000, 4_900);
    expect(cut.summary.end).to.equal("broken");
    const spoilt = Buffer.from(packed).fill(0xff, packed.length / 2, packed.length / 2 + 100);
    expect((await read(spoilt)).summary.end).to.equal("broken");
    const open = await read(`${HEAD}<url><loc>/a</loc></url><url><loc>/b`);
    expect([open.entries.length, open.summary.end]).to.deep.equal([1, "broken"]);
  });

  it("readSitemap() throws the error of its source, and releases the source", async () => {
    const fault = new Error("connection reset");
    for (const bytes of [Buffer.from(urls("/a")), gzipSync(urls("/a"))]) {
      const body = new Readable({ read() {} });
      body.push(bytes.subarray(0, 30));
      body.once("resume", () => {});
      const reading = readSitemap(body, reader([]));
      setImmediate(() => body.destroy(fault));
      const thrown = await reading.catch((error: unknown) => error);
      expect(thrown).to.equal(fault);
    }
    const stopped = Readable.from([Buffer.from("<a>".repeat(100)), Buffer.from("b")]);
    expect((await readSitemap(stopped, reader([]))).end).to.equal("broken");
    expect(stopped.destroyed).to.equal(true);
  });

  it("readSitemap() returns at most SITEMAP_URLS_MAX addresses", async () => {
    const at = urls(...Array.from({ length: SITEMAP_URLS_MAX }, (_, index) => `/${index}`));
    expect((await read(at)).summary).to.include({ entries: SITEMAP_URLS_MAX, end: "complete" });
    const past = at.replace("</urlset>", "<url><loc>/x</loc></url></urlset>");
    expect((await read(past)).summary).to.include({ entries: SITEMAP_URLS_MAX, end: "urls_max" });
  });

  it("readSitemap() reads at most SITEMAP_BYTES_MAX decompressed bytes", async () => {
    const page = urls("/a");
    const at = page + " ".repeat(SITEMAP_BYTES_MAX - page.length);
    expect((await read(gzipSync(at))).summary).to.include({ entries: 1, end: "complete" });
    expect((await read(gzipSync(`${at} `))).summary).to.include({ entries: 1, end: "bytes_max" });
    const bomb = gzipBomb();
    const before = peakBytes();
    expect((await read(bomb)).summary.end).to.equal("bytes_max");
    expect(peakBytes() - before).to.be.below(BOMB_BYTES / 2);
  });

  it("readSitemap() follows SITEMAP_DEPTH_MAX nested elements", async () => {
    const nested = (depth: number) =>
      `<urlset>${"<a>".repeat(depth - 1)}${"</a>".repeat(depth - 1)}</urlset>`;
    expect((await read(nested(SITEMAP_DEPTH_MAX))).summary.end).to.equal("complete");
    expect((await read(nested(SITEMAP_DEPTH_MAX + 1))).summary.end).to.equal("broken");
  });

  it("readSitemap() accepts addresses of CRAWL_URL_CHARS_MAX characters", async () => {
    const base = "https://a.example/";
    const long = (chars: number) => base + "a".repeat(chars - base.length);
    const lengths = [CRAWL_URL_CHARS_MAX, CRAWL_URL_CHARS_MAX + 1, 100_000].map(long);
    expect((await read(urls(...lengths))).summary).to.include({ entries: 1, invalid: 2 });
    expect((await read(lengths.join("\n"))).summary).to.include({ entries: 1, invalid: 2 });
  });

  it("readSitemap() handles any input within a time limit", async () => {
    const hostile = [
      "<",
      "<a>",
      "</a>",
      "&lt;",
      "<url><loc>",
      "<![CDATA[",
      "<!--",
      "\u0000",
      "a",
      "<a b='",
      "\n",
    ];
    const takenMs = processorTime();
    for (const part of hostile) {
      for (const head of ["", "<urlset>", "<urlset><url><loc>"]) {
        const text = (head + part.repeat(4_000_000 / part.length)).slice(0, 4_000_000);
        expect((await read(text)).entries.length).to.be.at.most(1);
      }
    }
    const entity = `<!DOCTYPE a [<!ENTITY a "aa"><!ENTITY b "&a;&a;">]>${urls("https://a.example/&b;")}`;
    expect((await read(entity)).entries.map(({ url }) => url)).to.deep.equal([
      "https://a.example/&b;",
    ]);
    expect(takenMs()).to.be.below(20_000);
  }).timeout(120_000);
});

describe(`published sitemap material${CONFORMANCE_NOTE}`, () => {
  before(needsConformance);

  const expected: Record<string, [SitemapSummary["form"], number]> = {
    "atom.xml": ["atom", 1],
    "do-not-visit.txt": ["text", 1],
    "sitemap-with-bom.txt": ["text", 2],
    "sitemap.badns.xml": ["urlset", 2],
    "sitemap.index.xml": ["index", 15],
    "sitemap.ns.xml": ["urlset", 2],
    "sitemap.txt": ["text", 2],
    "sitemap.txt.gz": ["text", 5],
    "xmlSitemap.gz": ["urlset", 5],
  };
  it("readSitemap() reads every form, gzip, byte order marks and bad namespaces", async () => {
    const found: typeof expected = {};
    for (const name of conformanceFiles("crawler-commons", "sitemaps")) {
      const { summary } = await read(conformanceFile("crawler-commons", "sitemaps", name));
      expect(summary, name).to.include({ invalid: 0, end: "complete" });
      found[name] = [summary.form, summary.entries];
    }
    expect(found).to.deep.equal(expected);
  });

  it("readSitemap() returns pages, not the images and videos of extensions", async () => {
    const found: Record<string, number> = {};
    for (const name of conformanceFiles("crawler-commons", "sitemaps", "extension")) {
      const file = conformanceFile("crawler-commons", "sitemaps", "extension", name);
      const { entries, summary } = await read(file);
      expect(summary.form, name).to.equal("urlset");
      found[name] = entries.length;
      const locs = file.toString().match(/<url>.*?<loc>/gs) ?? [];
      if (name !== "sitemap-videos-tvshow.xml") expect(entries.length, name).to.equal(locs.length);
    }
    expect(found).to.include({
      "sitemap-images.xml": 1,
      "sitemap-links.xml": 3,
      "sitemap-mobile.xml": 3,
    });
  });
});

function page(path: string): SitemapEntry {
  return { url: `https://a.example/${path}` };
}

function urls(...locs: string[]): string {
  return `${HEAD}${locs.map((loc) => `<url><loc>${loc}</loc></url>`).join("")}</urlset>`;
}

function reader(entries: SitemapEntry[]) {
  return {
    url: "https://a.example/maps/1.xml",
    onEntries: (found: SitemapEntry[]) => void entries.push(...found),
  };
}

async function read(file: string | Uint8Array | Uint8Array[]) {
  const entries: SitemapEntry[] = [];
  const chunks = Array.isArray(file) ? file : [typeof file === "string" ? Buffer.from(file) : file];
  const summary = await readSitemap(Readable.from(chunks), reader(entries));
  return { entries, summary };
}
