import { expect } from "chai";
import { ANSWER_SHOWN_CHARS, CRAWL_URL_CHARS_MAX } from "../../../../schemas/crawl/limits.ts";
import { redirectTarget } from "./redirect-target.ts";

const FROM = "http://site.example/dir/page";

describe("redirectTarget()", () => {
  const to = (location: string, status = 302) =>
    redirectTarget(FROM, status, new Headers({ location }));

  it("returns the absolute target of each kind of redirect, without fragment", () => {
    for (const status of [301, 302, 303, 307, 308]) {
      expect(to("../other?a=1#part", status)).to.deep.equal({
        url: "http://site.example/other?a=1",
      });
    }
    expect(to("https://elsewhere.example")).to.deep.equal({ url: "https://elsewhere.example/" });
    expect(to(Buffer.from("/caf\u00e9").toString("latin1"))).to.deep.equal({
      url: "http://site.example/caf%C3%A9",
    });
  });

  it("is undefined for other responses", () => {
    for (const status of [200, 300, 304, 404]) expect(to("/other", status)).to.equal(undefined);
    expect(redirectTarget(FROM, 302, new Headers())).to.equal(undefined);
  });

  it("accepts addresses of CRAWL_URL_CHARS_MAX characters, and reports the length of a longer one", () => {
    const long = (chars: number) => "http://site.example/".padEnd(chars, "a");
    expect(to(long(CRAWL_URL_CHARS_MAX))).to.deep.equal({ url: long(CRAWL_URL_CHARS_MAX) });
    const shown = long(ANSWER_SHOWN_CHARS);
    expect(to(long(CRAWL_URL_CHARS_MAX + 1))).to.deep.equal({
      fault: `it redirects to an address of ${CRAWL_URL_CHARS_MAX + 1} characters, "${shown}…"`,
    });
  });

  it("shows ANSWER_SHOWN_CHARS of an invalid address", () => {
    for (const extra of [0, 1]) {
      const location = "data:,".padEnd(ANSWER_SHOWN_CHARS + extra, "x");
      expect(to(location)).to.deep.equal({
        fault: `it redirects to "${location.slice(0, ANSWER_SHOWN_CHARS)}", which is no address of a page`,
      });
    }
  });
});
