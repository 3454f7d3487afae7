import { once } from "node:events";
import { request as ask, createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect } from "chai";
import express from "express";
import { leadToOwnHost } from "./own-host.ts";

describe("leadToOwnHost", () => {
  const server = createServer(
    express()
      .use(leadToOwnHost("http://127.0.0.1:8787"))
      .use((_request, response) => void response.end("ours")),
  );
  before(() => once(server.listen(0, "127.0.0.1"), "listening"));
  after(() => {
    server.close();
    server.closeAllConnections();
  });

  async function answerTo(host: string, path: string, method = "GET") {
    const { port } = server.address() as AddressInfo;
    const sent = ask({ host: "127.0.0.1", port, path, method, headers: { host } }).end();
    const [{ statusCode, headers }] = await once(
      sent.on("response", (one) => one.resume()),
      "response",
    );
    return [statusCode, headers.location];
  }

  it("leads pages at localhost to the public URL, forms too", async () => {
    for (const path of [
      "/",
      "/login?a=b",
      "/oauth2/auth",
      "/v4x",
      "/oauth2/tokens",
      "//evil.example/",
    ]) {
      for (const method of ["GET", "POST"]) {
        const led = await answerTo("LOCALHOST:8787", path, method);
        expect(led, `${method} ${path}`).to.deep.equal([308, `http://127.0.0.1:8787${path}`]);
      }
    }
  });

  it("leaves what programs call, and every other host", async () => {
    for (const path of [
      "/v4/accounts",
      "/git/a/b/c.git",
      "/healthz",
      "/oauth2/token",
      "/metrics",
    ]) {
      expect(await answerTo("localhost:8787", path), path).to.deep.equal([200, undefined]);
    }
    for (const host of ["127.0.0.1:8787", "trunk.example", "a.localhost:8787"]) {
      expect(await answerTo(host, "/login"), host).to.deep.equal([200, undefined]);
    }
  });
});
