import { expect } from "chai";
import { HOST_AWAY_MS_MAX } from "../../../../schemas/crawl/limits.ts";
import { documentForm, looksBinary } from "./content-types.ts";
import { awayMsOf } from "./retry-after.ts";
import { robotsTag } from "./robots-tag.ts";

describe("awayMsOf", () => {
  const now = Date.UTC(2026, 10, 21);

  it("awayMsOf() reads seconds and dates of 429 and 503, within bounds", () => {
    expect(awayMsOf(503, "0", now)).to.equal(1);
    expect(awayMsOf(429, " 12 ", now)).to.equal(12_000);
    expect(awayMsOf(429, String(HOST_AWAY_MS_MAX / 1_000), now)).to.equal(HOST_AWAY_MS_MAX);
    expect(awayMsOf(429, String(HOST_AWAY_MS_MAX / 1_000 + 1), now)).to.equal(HOST_AWAY_MS_MAX);
    expect(awayMsOf(503, "9".repeat(400), now)).to.equal(HOST_AWAY_MS_MAX);
    expect(awayMsOf(503, new Date(now + 3_000).toUTCString(), now)).to.equal(3_000);
    expect(awayMsOf(503, new Date(now - 3_000).toUTCString(), now)).to.equal(1);
  });

  it("awayMsOf() is 0 without a valid value", () => {
    for (const header of [null, "", "soon", "-1", "1.5"]) {
      expect(awayMsOf(503, header, now), String(header)).to.equal(0);
    }
    expect(awayMsOf(200, "12", now)).to.equal(undefined);
    expect(awayMsOf(500, "12", now)).to.equal(undefined);
  });
});

describe("robotsTag", () => {
  const read = (header: string | null) => robotsTag(header, "TestBot").nofollow;

  it("robotsTag() distinguishes noindex and nofollow", () => {
    const tag = (header: string) => robotsTag(header, "TestBot");
    expect(tag("noindex")).to.deep.equal({ nofollow: false, noindex: true });
    expect(tag("nofollow")).to.deep.equal({ nofollow: true });
    expect(tag("None")).to.deep.equal({ nofollow: true, noindex: true });
    expect(tag("otherbot: noindex, testbot: nofollow")).to.deep.equal({ nofollow: true });
    expect(tag("unavailable_after: noindex")).to.deep.equal({ nofollow: false });
  });

  it("robotsTag() reads directives for every crawler, and for ours", () => {
    expect(read(null)).to.equal(false);
    expect(read("noindex, NoFollow")).to.equal(true);
    expect(read("noindex")).to.equal(false);
    expect(read("none")).to.equal(true);
    expect(read("testbot: nofollow")).to.equal(true);
    expect(read("otherbot: noindex, nofollow")).to.equal(false);
    expect(read("otherbot: noindex, TESTBOT: nofollow, noindex")).to.equal(true);
    expect(read("unavailable_after: 25 Jun 2030 15:00:00 PST, nofollow")).to.equal(true);
    expect(read("max-snippet:-1, noarchive")).to.equal(false);
  });
});

describe("documentForm", () => {
  it("documentForm() distinguishes HTML, other text and binary", () => {
    const forms = {
      html: [undefined, null, "", "text/html", "Text/HTML; charset=x", "application/xhtml+xml"],
      text: ["text/plain", "application/xml", "application/rss+xml", "application/ld+json"],
      other: ["image/svg", "application/octet-stream", "application/pdf", "x", "application/xmlx"],
    };
    for (const [form, types] of Object.entries(forms)) {
      for (const type of types) expect(documentForm(type), String(type)).to.equal(form);
    }
  });

  it("looksBinary() finds bytes that no text has", () => {
    expect(looksBinary(Buffer.from("<p>caf\u00e9\t\r\n\u001b"))).to.equal(false);
    expect(looksBinary(Buffer.from([0xff, 0xfe, 0x41, 0]))).to.equal(false);
    expect(looksBinary(Buffer.from("PK\u0003\u0004"))).to.equal(true);
    expect(looksBinary(new Uint8Array())).to.equal(false);
  });
});
