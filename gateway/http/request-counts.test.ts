import { expect } from "chai";
import { RequestCounts } from "./request-counts.ts";

describe("RequestCounts", () => {
  it("all() lists a route before its first request", () => {
    const counts = new RequestCounts();
    counts.add({ id: "getToken", method: "get", path: "/accounts/{account_id}/tokens/{token_id}" });
    expect(counts.all()).to.deep.equal([
      {
        id: "getToken",
        endpoint: "GET /v4/accounts/{account_id}/tokens/{token_id}",
        requests: 0,
        errors: 0,
        lastError: "",
        ms: 0,
      },
    ]);
  });

  it("count() counts a status from 500 as an error, and none below", () => {
    const counts = new RequestCounts();
    counts.add({ id: "listTokens", method: "get", path: "/tokens" });
    for (const status of [200, 404, 429, 499]) counts.count("listTokens", status, 2);
    expect(counts.all()[0]).to.deep.include({ requests: 4, errors: 0, lastError: "", ms: 8 });
    for (const status of [500, 503]) counts.count("listTokens", status, 1);
    expect(counts.all()[0]).to.deep.include({ requests: 6, errors: 2, lastError: "status 503" });
  });

  it("count() counts unknown routes in one entry", () => {
    const counts = new RequestCounts();
    for (let i = 0; i < 3; i++) counts.count(undefined, 404, 1);
    expect(counts.all()).to.have.length(1);
    expect(counts.all()[0]).to.deep.include({ id: "other", requests: 3, errors: 0 });
  });
});
