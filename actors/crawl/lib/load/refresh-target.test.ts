import { expect } from "chai";
import { CRAWL_URL_CHARS_MAX } from "../../../../schemas/crawl/limits.ts";
import { pageRedirect, REFRESH_S_MAX, refreshTarget } from "./refresh-target.ts";

const url = "http://a.example/dir/page";
const to = (content: string, base = url) => refreshTarget(content, { url, base });

describe("refreshTarget()", () => {
  it("reads each form that HTML has, without fragment", () => {
    const forms = [
      "0; url=/to",
      "0;URL='/to'",
      `0; url="/to" x`,
      " 1.5 , url = /to",
      "0 /to",
      "0;/to#part",
      ".5;url=/to",
      "0;url=http://a.example/to",
    ];
    for (const form of forms) expect(to(form), form).to.equal("http://a.example/to");
    expect(to("0;url=to", "http://b.example/x/")).to.equal("http://b.example/x/to");
  });

  it("is undefined for a page that only reloads itself", () => {
    const forms = ["", "0", "30", "0;", "0;url=", "x;url=/to", "-1;url=/to", "0url=/to"];
    const others = [
      "0;url=javascript:x()",
      "0;url=data:text/html,x",
      "0;url=http://[",
      "0;url=page#x",
    ];
    for (const form of [...forms, ...others]) expect(to(form), form).to.equal(undefined);
  });

  it("accepts a delay of REFRESH_S_MAX seconds and no longer", () => {
    expect(to(`${REFRESH_S_MAX};url=/to`)).to.equal("http://a.example/to");
    expect(to(`${REFRESH_S_MAX + 1};url=/to`)).to.equal(undefined);
  });

  it("accepts an address of CRAWL_URL_CHARS_MAX characters and no longer one", () => {
    const address = "http://a.example/".padEnd(CRAWL_URL_CHARS_MAX, "a");
    expect(to(`0;url=${address}`)).to.equal(address);
    expect(to(`0;url=${address}a`)).to.equal(undefined);
  });

  it("pageRedirect() reads the header Refresh of a page, and Location of a redirect", () => {
    const refresh = new Headers({ refresh: "0; url=/to" });
    expect(pageRedirect(url, 200, refresh)).to.deep.equal({ url: "http://a.example/to" });
    expect(pageRedirect(url, 404, refresh)).to.equal(undefined);
    expect(pageRedirect(url, 200, new Headers())).to.equal(undefined);
    const location = new Headers({ location: "/there", refresh: "0; url=/to" });
    expect(pageRedirect(url, 302, location)).to.deep.equal({ url: "http://a.example/there" });
  });
});
