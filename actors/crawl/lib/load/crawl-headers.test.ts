import { expect } from "chai";
import { CrawlHeaders, type HeaderSource } from "./crawl-headers.ts";

const NOW = Date.UTC(2026, 10, 21);
const URL_OF_START = "https://a.example/dir/start";

describe("CrawlHeaders", () => {
  const headersOf = (source: Partial<HeaderSource>, url = URL_OF_START) =>
    new CrawlHeaders({ url: URL_OF_START, ...source }).forPage(url, NOW);
  const cookieOf = (cookie: object, url?: string) =>
    headersOf({ cookies: [{ name: "n", value: "v", ...cookie }] }, url).cookie;

  it("forPage() always has the crawler's name, whatever headers are requested", () => {
    const extra = { "USER-agent": "x", "Accept-Encoding": "x", "X-A": "1", Accept: "text/plain" };
    expect(headersOf({ setExtraHTTPHeaders: extra })).to.deep.equal({
      "user-agent": "VendorBrowserRenderingCrawler/1.0",
      "x-a": "1",
      accept: "text/plain",
    });
  });

  it("forPage() sends credentials only to the start URL's origin", () => {
    const authenticate = { username: "ü", password: "p:q" };
    const authorization = `Basic ${Buffer.from("ü:p:q").toString("base64")}`;
    expect(headersOf({ authenticate }, "https://a.example/x")).to.include({ authorization });
    for (const url of ["http://a.example/", "https://b.a.example/", "https://a.example:444/"]) {
      expect(headersOf({ authenticate }, url), url).not.to.have.property("authorization");
    }
  });

  it("forPage() sends cookies by the rules of RFC 6265", () => {
    expect(cookieOf({})).to.equal("n=v");
    expect(cookieOf({ name: "" })).to.equal("v");
    expect(cookieOf({}, "https://b.a.example/")).to.equal(undefined);
    expect(cookieOf({ domain: ".A.example" }, "https://b.a.example/")).to.equal("n=v");
    expect(cookieOf({ domain: "a.example" }, "https://ba.example/")).to.equal(undefined);
    expect(cookieOf({ domain: "0.0.1" }, "http://10.0.0.1/")).to.equal(undefined);
    expect(cookieOf({ secure: true }, "http://a.example/")).to.equal(undefined);
    expect(cookieOf({}, "http://a.example/")).to.equal("n=v");
    expect(cookieOf({ path: "/dir" }, "https://a.example/dir/x")).to.equal("n=v");
    expect(cookieOf({ path: "/dir" }, "https://a.example/directory")).to.equal(undefined);
    expect(cookieOf({ url: "http://b.example/x/y" }, "http://b.example/x/z")).to.equal("n=v");
    expect(cookieOf({ url: "http://b.example/x/y" }, "http://b.example/")).to.equal(undefined);
    expect(cookieOf({ url: "http://b.example/x/y" })).to.equal(undefined);
    expect(cookieOf({ expires: NOW / 1_000 })).to.equal(undefined);
    expect(cookieOf({ expires: NOW / 1_000 + 1 })).to.equal("n=v");
    expect(cookieOf({ expires: -1 })).to.equal("n=v");
    const two = { setExtraHTTPHeaders: { Cookie: "own=1" }, cookies: [{ name: "n", value: "v" }] };
    expect(headersOf(two).cookie).to.equal("own=1; n=v");
  });

  it("forPage() is conditional if the crawl wants only changed pages; forFile() never is", () => {
    const headers = new CrawlHeaders({ url: URL_OF_START, modifiedSince: 1_767_225_600 });
    const since = { "if-modified-since": "Thu, 01 Jan 2026 00:00:00 GMT" };
    expect(headers.forPage(URL_OF_START, NOW)).to.include(since);
    expect(headers.forFile(URL_OF_START, NOW)).not.to.have.property("if-modified-since");
  });
});
