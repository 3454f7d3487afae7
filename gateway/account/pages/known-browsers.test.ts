import { expect } from "chai";
import express from "express";
import { type LoopbackServer, startHttpServer } from "../../../scripts/testing/loopback-server.ts";
import { cookieNames } from "./browser-cookies.ts";
import { KNOWN_BROWSER_MS, KNOWN_PEOPLE_PER_BROWSER_MAX, KnownBrowsers } from "./known-browsers.ts";

describe("known browsers", () => {
  let server: LoopbackServer;
  let cookie: string;
  let lines: string[];
  before(async () => {
    const known = new KnownBrowsers(async () => "secret", cookieNames("http://127.0.0.1"));
    const app = express();
    app.get("/find/:email", async (request, response) => {
      response.json({ found: await known.find(request, request.params.email) });
    });
    app.get("/remember/:email", async (request, response) => {
      await known.remember(request, response, request.params.email);
      response.end();
    });
    server = await startHttpServer(app);
  });
  beforeEach(() => {
    cookie = "";
  });
  after(() => server?.close());

  async function ask(path: string) {
    const answer = await fetch(`http://${server.address}:${server.port}${path}`, {
      headers: { Cookie: cookie },
    });
    lines = answer.headers.getSetCookie();
    return answer.text();
  }
  const find = async (email: string): Promise<string | undefined> =>
    JSON.parse(await ask(`/find/${email}`)).found;
  async function remember(email: string) {
    await ask(`/remember/${email}`);
    [cookie = ""] = lines[0]?.split(";") ?? [];
  }

  it("find() returns the same id for a person each time, another for each browser, and none for other people", async () => {
    expect(await find("one@example.com")).to.equal(undefined);
    await remember("one@example.com");
    const found = await find("one@example.com");
    expect(found).to.match(/^[0-9a-f]{32}$/);
    expect(await find("two@example.com")).to.equal(undefined);
    await remember("one@example.com");
    expect(await find("one@example.com")).to.equal(found);
    cookie = "";
    await remember("one@example.com");
    expect(await find("one@example.com"))
      .to.match(/^[0-9a-f]{32}$/)
      .and.not.equal(found);
  });

  it("find() rejects forged values", async () => {
    await remember("one@example.com");
    const [name = "", value = ""] = cookie.split("=");
    const [browser = "", proof = ""] = value.split(".");
    for (const invented of [
      "",
      ".",
      browser,
      `${browser}.${proof}x`,
      `${browser}.${proof.slice(1)}`,
      `${proof}.${browser}`,
      `${browser}.${[...proof].reverse().join("")}`,
      `${browser}.${"é".repeat(22)}`,
    ]) {
      cookie = `${name}=${encodeURIComponent(invented)}`;
      expect(await find("one@example.com"), invented).to.equal(undefined);
    }
  });

  it("remember() keeps the latest people to sign in, up to the limit, for KNOWN_BROWSER_MS", async () => {
    for (let i = 0; i < KNOWN_PEOPLE_PER_BROWSER_MAX; i++) await remember(`p${i}@example.com`);
    expect(await find("p0@example.com")).to.be.a("string");
    await remember("p0@example.com");
    await remember("new@example.com");
    expect(await find("p0@example.com")).to.be.a("string");
    expect(await find("p1@example.com")).to.equal(undefined);
    await remember("p0@example.com");
    expect(lines[0])
      .to.contain(`Max-Age=${KNOWN_BROWSER_MS / 1_000}`)
      .and.contain("HttpOnly");
  });
});
