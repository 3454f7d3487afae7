import { expect } from "chai";
import { endToEndHeaders, hasHeader } from "./http-headers.ts";

describe("http headers", () => {
  it("endToEndHeaders() keeps order, case and repetition", () => {
    const headers = ["X-B", "1", "x-a", "2", "X-B", "3"];
    expect(endToEndHeaders(headers)).to.deep.equal(headers);
  });

  const dropped = [
    "Connection",
    "Keep-Alive",
    "TE",
    "Trailer",
    "transfer-encoding",
    "UPGRADE",
    "Proxy-Connection",
    "proxy-authorization",
    "Proxy-Anything",
    "X-Trunkline-Egress",
  ];
  for (const name of dropped) {
    it(`endToEndHeaders() drops ${name}`, () => {
      expect(endToEndHeaders([name, "x", "X-Kept", "1"])).to.deep.equal(["X-Kept", "1"]);
    });
  }

  it("endToEndHeaders() drops headers that Connection names in any position, but not those that frame the message", () => {
    const headers = [
      "X-Hop",
      "1",
      "Connection",
      "x-hop , close",
      "Content-Length",
      "3",
      "Connection",
      "content-length,X-Other",
      "x-other",
      "2",
    ];
    expect(endToEndHeaders(headers)).to.deep.equal(["Content-Length", "3"]);
  });

  it("endToEndHeaders() drops the headers of its parameter", () => {
    expect(
      endToEndHeaders(["HOST", "a", "Expect", "100-continue"], ["host", "expect"]),
    ).to.deep.equal([]);
  });

  it("hasHeader() compares names without case", () => {
    expect(hasHeader(["Content-Length", "0"], "content-length")).to.equal(true);
    expect(hasHeader(["X", "content-length"], "content-length")).to.equal(false);
  });
});
