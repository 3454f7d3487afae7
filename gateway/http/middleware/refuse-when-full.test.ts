import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect } from "chai";
import express, { type Request } from "express";
import { pino } from "pino";
import { memoryActors } from "../../../scripts/testing/memory-actors.ts";
import { routeTable } from "../../app.ts";
import { testParts } from "../../testing/test-gateway.ts";
import { refusalsOf } from "../route.ts";
import { handleError } from "./handle-error.ts";
import { refuseWhenFull, storesMuchExcept } from "./refuse-when-full.ts";
import { requestId } from "./request-id.ts";

const WRITES = new Set(["post", "put", "patch"]);
const ROUTES = [
  { method: "put", path: "/accounts/{account_id}/tokens/{token_id}/value", isRevocation: true },
  {
    method: "post",
    path: "/accounts/{account_id}/oauth_clients/{id}/rotate_secret",
    isRevocation: true,
  },
  { method: "post", path: "/accounts/{account_id}/tokens" },
] as const;

describe("refuseWhenFull()", () => {
  let isFull: boolean;
  let url: string;
  const server = createServer(
    express()
      .use(requestId(pino({ level: "silent" })))
      .use(refuseWhenFull(() => isFull, storesMuchExcept(ROUTES)))
      .use("/v4/broken", () => {
        throw Object.assign(new Error("ENOSPC: no space left on device, write"), {
          code: "ENOSPC",
        });
      })
      .use((_request, response) => void response.send("done"))
      .use(handleError),
  );
  before(async () => {
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  after(() => server.close());

  const account = "/v4/accounts/0123456789abcdef0123456789abcdef";
  const writes = [
    ["POST", `${account}/artifacts/namespaces/default/repos`],
    ["PUT", `${account}/apps/hooks`],
    ["PATCH", `${account}/oauth_clients/1`],
    ["POST", `${account}/tokens`],
    ["POST", `${account}/tokens/1/value`],
    ["PUT", `${account}/tokens/1/2/value`],
    ["POST", `${account}/browser-rendering/crawl`],
    ["POST", `${account}/browser-run/crawl`],
    ["POST", "/git/a/default/b.git/git-receive-pack"],
    ["GET", "/git/a/default/b.git/info/refs?service=git-receive-pack"],
    ["PUT", "/git/a/default/b.git/info/lfs/objects/1"],
  ] as const;
  const others = [
    ["GET", `${account}/artifacts/namespaces/default/repos`],
    ["DELETE", `${account}/artifacts/namespaces/default/repos/b`],
    ["PUT", `${account}/tokens/1/value`],
    ["POST", `${account}/oauth_clients/1/rotate_secret`],
    ["POST", `${account}/browser-rendering/pdf`],
    ["POST", `${account}/browser-run/pdf`],
    ["POST", "/git/a/default/b.git/git-upload-pack"],
    ["GET", "/git/a/default/b.git/info/refs?service=git-upload-pack"],
    ["POST", "/git/a/default/b.git/info/lfs/objects/batch"],
    ["POST", "/login"],
    ["POST", "/oauth2/token"],
  ] as const;

  it("refuses requests that store data while the disk is full, and none otherwise", async () => {
    for (isFull of [false, true]) {
      for (const [method, path] of writes) {
        const { status } = await fetch(url + path, { method });
        expect(status, `${method} ${path}`).to.equal(isFull ? 507 : 200);
      }
    }
  });

  it("admits reads, deletes, revocations, rendering and sign-in", async () => {
    isFull = true;
    for (const [method, path] of others) {
      const { status } = await fetch(url + path, { method });
      expect(status, `${method} ${path}`).to.equal(200);
    }
  });

  it("refuses rendering jobs, because their requests and results are stored", async () => {
    for (isFull of [false, true]) {
      for (const product of ["browser-rendering", "browser-run"]) {
        for (const [prefer, isJob] of [
          ["respond-async", true],
          ["wait=5, Respond-Async", true],
          ["wait=5", false],
        ] as const) {
          const path = `${account}/${product}/pdf`;
          const options = { method: "POST", headers: { Prefer: prefer } };
          const { status } = await fetch(url + path, options);
          expect(status, `${path} ${prefer}`).to.equal(isFull && isJob ? 507 : 200);
        }
      }
    }
  });

  it("is declared by every route that it refuses, and by no others", () => {
    const routes = routeTable(testParts(memoryActors({})));
    const isStoring = storesMuchExcept(routes);
    for (const route of routes) {
      const path = `/v4${route.path.replaceAll(/[{}]/g, "")}`;
      const asked = (prefer?: string) =>
        ({ method: route.method.toUpperCase(), path, headers: { prefer } }) as unknown as Request;
      const refused =
        WRITES.has(route.method) &&
        (isStoring(asked()) || (route.mayBeJob === true && isStoring(asked("respond-async"))));
      const { refusals: _own, ...declared } = route;
      expect(refusalsOf(declared).includes("storage_full"), `${route.method} ${path}`).to.equal(
        refused,
      );
    }
  });

  it("refuses alike the write that first finds the disk full, instead of reporting a fault", async () => {
    isFull = false;
    const response = await fetch(`${url}/v4/broken`);
    expect(response.status).to.equal(507);
    expect(await response.text()).to.include("the disk of this instance is full");
  });
});
