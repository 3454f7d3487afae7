import type { IncomingMessage } from "node:http";
import { expect } from "chai";
import type { HeaderList } from "../../schemas/apps/app-exchange.ts";
import { answerHeaders, requestHeaders } from "./app-headers.ts";

describe("app-headers", () => {
  const asked = (pairs: HeaderList, isOwnOrigin = false) => {
    const headers = Object.fromEntries(pairs.map(([name, value]) => [name.toLowerCase(), value]));
    const request = { rawHeaders: pairs.flat(), headers } as unknown as IncomingMessage;
    return requestHeaders(request, { isOwnOrigin, client: "203.0.113.7" });
  };

  it("requestHeaders() keeps order and repetitions, and omits headers of the connection and of the platform", () => {
    const headers = asked([
      ["Host", "x"],
      ["X-One", "1"],
      ["x-one", "2"],
      ["Connection", "keep-alive, X-Mine"],
      ["X-Mine", "3"],
      ["Transfer-Encoding", "chunked"],
      ["Upgrade", "websocket"],
      ["Expect", "100-continue"],
      ["X-Forwarded-For", "10.0.0.1"],
      ["Forwarded", "for=10.0.0.1"],
      ["x-agents-lifecycle-props", "{}"],
      ["X-Trunkline-Event-Source", "github"],
      ["Authorization", "Bearer app"],
    ]);
    expect(headers).to.deep.equal([
      ["host", "x"],
      ["x-one", "1"],
      ["x-one", "2"],
      ["authorization", "Bearer app"],
      ["x-forwarded-for", "203.0.113.7"],
    ]);
  });

  it("requestHeaders() gives cookies to an app at its own origin alone", () => {
    const cookie: HeaderList = [["Cookie", "session=1"]];
    expect(asked(cookie).map(([name]) => name)).to.not.include("cookie");
    expect(asked(cookie, true)).to.deep.include(["cookie", "session=1"]);
  });

  it("requestHeaders() gives an app with a port its own cookies alone, under the names that it gave them", () => {
    const read = (cookie: string) => {
      const rawHeaders = ["Cookie", cookie];
      const request = { rawHeaders, headers: {} } as unknown as IncomingMessage;
      const of = { isOwnOrigin: true, cookiePrefix: "tl0a-", client: undefined };
      return requestHeaders(request, of);
    };
    expect(read("a=1; tl0a-a=2;tl0a-b==3; tl0b-a=4; tl_session=5; x=tl0a-c=6")).to.deep.equal([
      ["cookie", "a=2; b==3"],
    ]);
    expect(read("a=1; tl0b-a=4")).to.deep.equal([]);
  });

  it("answerHeaders() marks the cookies of an app with a port, and hides them from scripts", () => {
    const cookies: HeaderList = [
      ["set-cookie", "a=1; Domain=localhost; Path=/"],
      ["set-cookie", " b=2; httpOnly"],
      ["set-cookie", "c=httponly"],
      ["set-cookie", "tl0b-d=4"],
    ];
    const answered = answerHeaders(cookies, { prefix: undefined, cookiePrefix: "tl0a-" });
    expect(answered["set-cookie"]).to.deep.equal([
      "tl0a-a=1; Path=/; HttpOnly",
      "tl0a-b=2; httpOnly",
      "tl0a-c=httponly; HttpOnly",
      "tl0a-tl0b-d=4; HttpOnly",
    ]);
  });

  const headers: HeaderList = [
    ["content-type", "text/html"],
    ["set-cookie", "a=1"],
    ["set-cookie", "b=2"],
    ["vary", "a"],
    ["vary", "b"],
    ["content-length", "7"],
    ["connection", "close"],
    ["clear-site-data", '"*"'],
    ["service-worker-allowed", "/"],
    ["content-security-policy", "default-src *"],
    ["location", "/next"],
  ];

  it("answerHeaders() lets an app say all it likes at its own origin", () => {
    expect(answerHeaders(headers, { prefix: undefined })).to.deep.equal({
      "content-type": "text/html",
      "set-cookie": ["a=1", "b=2"],
      vary: "a, b",
      "clear-site-data": '"cache", "storage", "executionContexts"',
      "service-worker-allowed": "/",
      "content-security-policy": "default-src *",
      location: "/next",
    });
  });

  it("answerHeaders() keeps cookies from other apps", () => {
    const cookies: HeaderList = [
      ["set-cookie", "a=1; Domain=.apps.example; Path=/"],
      ["set-cookie", "domain=2; Path=/;domain = apps.example"],
      ["set-cookie", "c=3; Domain"],
    ];
    expect(answerHeaders(cookies, { prefix: undefined })["set-cookie"]).to.deep.equal([
      "a=1; Path=/",
      "domain=2; Path=/",
      "c=3",
    ]);
  });

  it("answerHeaders() lets an app clear its own, and no cookies, which it shares with others", () => {
    for (const [said, expected] of [
      ['"cookies"', undefined],
      ['"cache","cookies" , "storage"', '"cache", "storage"'],
      ['"executionContexts"', '"executionContexts"'],
    ] as const) {
      const answered = answerHeaders([["Clear-Site-Data", said]], { prefix: undefined });
      expect(answered["clear-site-data"], said).to.equal(expected);
    }
  });

  it("answerHeaders() lets no app ask for a password in the name of our origin", () => {
    const asks = (challenge: string, prefix?: string) =>
      answerHeaders([["www-authenticate", challenge]], { prefix })["www-authenticate"];
    for (const challenge of ['Basic realm="x"', 'Bearer, basic realm="x"', "Negotiate", "NTLM"]) {
      expect(asks(challenge, "/p"), challenge).to.equal(undefined);
      expect(asks(challenge), challenge).to.equal(challenge);
    }
    expect(asks('Bearer realm="x"', "/p")).to.equal('Bearer realm="x"');
  });

  it("answerHeaders() keeps an app below our address from affecting our whole origin", () => {
    expect(answerHeaders(headers, { prefix: "/apps/a/hooks" })).to.deep.equal({
      "content-type": "text/html",
      vary: "a, b",
      "content-security-policy": ["default-src *", "sandbox"],
      "x-content-type-options": "nosniff",
      location: "/apps/a/hooks/next",
    });
    const bare = answerHeaders([], { prefix: "/p" });
    expect(bare["content-security-policy"]).to.equal("sandbox");
    for (const location of ["//evil.example", "/\\evil.example", "https://a.example/", "next"]) {
      const answer = answerHeaders([["location", location]], { prefix: "/p" });
      expect(answer.location).to.equal(location);
    }
  });
});
