import { once } from "node:events";
import { chmod, mkdtemp } from "node:fs/promises";
import { request as ask } from "node:http";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { WebSocket } from "ws";
import { freePort, freePorts } from "../../scripts/free-port.ts";
import { AppPlatform } from "../../scripts/testing/app-platform.ts";
import { RoleProcess } from "../../scripts/testing/role-process.ts";
import { until } from "../../scripts/testing/until.ts";

/** Returns the URL and the cookies that it receives, and sets the cookie in the parameter `set`. */
const CODE = `
import { Agent, routeAgentRequest } from "trunkline/agents";
export class Room extends Agent {}
export default {
  async fetch(request, env) {
    const routed = await routeAgentRequest(request, env);
    if (routed) return routed;
    const { searchParams } = new URL(request.url);
    const headers = searchParams.has("set") ? { "set-cookie": searchParams.get("set") } : {};
    return Response.json({ url: request.url, cookie: request.headers.get("cookie") }, { headers });
  },
};`;
const AGENTS = { agents: [{ binding: "Room", class_name: "Room" }] };

describe("ports of apps on a single machine", function () {
  this.timeout(900_000);
  let platform: AppPlatform;
  let instance: RoleProcess;
  let ports: { first: number; last: number };
  let port: number;
  let folder: string;
  let start: () => Promise<RoleProcess>;

  before(async () => {
    port = await freePort();
    // The last test takes the three ports after these.
    const first = await freePorts(6);
    ports = { first, last: first + 2 };
    folder = await mkdtemp(join(tmpdir(), "trunkline-ports-"));
    await chmod(folder, 0o755);
    start = async () => {
      const started = new RoleProcess(join(folder, "data"), tmpdir(), port, {
        TRUNKLINE_REQUESTS_PER_5_MINUTES: "0",
        TRUNKLINE_APPS_PORTS: `${ports.first}-${ports.last}`,
      });
      await started.ready();
      return started;
    };
    instance = await start();
    platform = new AppPlatform(instance, folder, await instance.credentials());
  });
  after(() => platform?.[Symbol.asyncDispose]());

  /** Deploys, and returns the app's address for people. */
  async function deploy(app: string): Promise<string> {
    const { status, body } = await platform.deploy(app, CODE, AGENTS);
    expect(status, JSON.stringify(body)).to.equal(200);
    return body.result.url;
  }

  const get = async (url: string, headers: Record<string, string> = {}, method = "GET") => {
    const { hostname, port: at, pathname, search } = new URL(url);
    const sent = ask({ host: hostname, port: at, path: pathname + search, headers, method }).end();
    const [response] = await once(sent, "response");
    const text = Buffer.concat(await response.toArray()).toString();
    return { status: response.statusCode, headers: response.headers, text };
  };

  it("a deploy prints an address on localhost, which serves the app and its sockets", async () => {
    const url = await deploy("one");
    expect(url).to.match(/^http:\/\/localhost:\d+$/);
    const shown = JSON.parse((await get(`${url}/a?b`)).text);
    expect(shown).to.deep.equal({ url: `${url}/a?b`, cookie: null });
    const socket = new WebSocket(`${url.replace("http", "ws")}/agents/room/r`);
    await once(socket, "open");
    socket.close();
    await once(socket, "close");
    expect((await platform.rest("GET", "/apps/one")).body.result.url).to.equal(url);
    expect(await deploy("one")).to.equal(url);
  });

  it("an app gets only its own cookies: none of another app, none of the platform, and none that scripts set", async () => {
    const [one, two] = [await deploy("one"), await deploy("two")];
    expect(one).to.not.equal(two);
    const set = await get(`${one}/?set=${encodeURIComponent("sid=1; Domain=localhost; Path=/")}`);
    const [cookie = ""] = set.headers["set-cookie"] ?? [];
    expect(cookie).to.match(/^tl[\da-f]{16}-sid=1; Path=\/; HttpOnly$/);
    const stored = cookie.split(";")[0] ?? "";
    const sent = { cookie: `tl_session=ours; ${stored}; sid=of-a-script; tl0-sid=guessed` };
    const seen = async (url: string) => JSON.parse((await get(url, sent)).text).cookie;
    expect(await seen(one)).to.equal("sid=1");
    expect(await seen(two)).to.equal(null);
  });

  it("redirects the platform's pages to 127.0.0.1, and apps' ports to localhost", async () => {
    const own = `http://127.0.0.1:${port}`;
    const host = `localhost:${port}`;
    for (const [method, path] of [
      ["GET", "/login?a=b"],
      ["POST", "/login"],
      ["GET", "/oauth2/auth"],
    ] as const) {
      const led = await get(own + path, { host }, method);
      expect([led.status, led.headers.location], path).to.deep.equal([308, own + path]);
      expect(led.headers["set-cookie"]).to.equal(undefined);
    }
    for (const path of ["/v4/accounts", "/healthz", "/.well-known/oauth-authorization-server"]) {
      expect((await get(own + path, { host })).status, path).to.not.equal(308);
    }
    const url = await deploy("one");
    const byAddress = url.replace("localhost", "127.0.0.1");
    const led = await get(`${byAddress}/a?set=b`, { cookie: "tl_session=ours" });
    expect([led.status, led.headers.location]).to.deep.equal([308, `${url}/a?set=b`]);
    const socket = new WebSocket(`${byAddress.replace("http", "ws")}/agents/room/r`);
    const [request, { statusCode }] = await once(socket, "unexpected-response");
    expect(statusCode).to.equal(404);
    request.destroy();
  });

  it("a third app gets the last port, a fourth is refused until one is deleted", async () => {
    const url = await deploy("three");
    const refused = await platform.deploy("four", CODE, AGENTS);
    expect(refused.status).to.equal(409);
    const { first, last } = ports;
    expect(refused.body.errors[0].message).to.equal(
      `Cannot give app "four" a port: all from ${first} to ${last} are in use; delete an app, or widen TRUNKLINE_APPS_PORTS`,
    );
    const listed = (await platform.rest("GET", "/apps")).body.result;
    expect(listed.map(({ name }: { name: string }) => name)).to.not.include("four");
    await platform.rest("DELETE", "/apps/three");
    const gone = await get(url).catch((error: NodeJS.ErrnoException) => error.code);
    expect(gone).to.equal("ECONNREFUSED");
    await until(
      "the port is free again",
      async () => (await platform.deploy("four", CODE, AGENTS)).status === 200,
      60_000,
    );
    expect((await platform.rest("GET", "/apps/four")).body.result.url).to.equal(url);
  });

  it("ports survive a restart, and the next deploy names a port that is in use by then", async () => {
    const [one, two] = [await deploy("one"), await deploy("two")];
    instance.signal("SIGTERM");
    await instance.exit();
    const taken = Number(new URL(two).port);
    const other = createServer().listen(taken, "127.0.0.1");
    await once(other, "listening");
    try {
      instance = await start();
      platform = new AppPlatform(instance, folder, await instance.credentials());
      expect((await get(one)).status).to.equal(200);
      expect(await deploy("one")).to.equal(one);
      const refused = await platform.deploy("two", CODE, AGENTS);
      expect(refused.status).to.equal(409);
      const { message } = refused.body.errors[0];
      expect(message).to.equal(
        `Cannot open port ${taken} of app "two": another program uses it; end that program and deploy again, or choose other ports by TRUNKLINE_APPS_PORTS`,
      );
      expect((await platform.ask("two", "/")).status).to.equal(200);
      // The REST API does not return the address that the other program uses.
      const { url } = (await platform.rest("GET", "/apps/two")).body.result;
      expect(url).to.equal(`http://${platform.hostOf("two")}`);
    } finally {
      other.close();
      await once(other, "close");
    }
    expect(await deploy("two")).to.equal(two);
    expect((await get(two)).status).to.equal(200);
  });

  it("an app whose port is outside the range gets another at the next start", async () => {
    const before = (await platform.rest("GET", "/apps/one")).body.result.url;
    instance.signal("SIGTERM");
    await instance.exit();
    ports = { first: ports.last + 1, last: ports.last + 3 };
    instance = await start();
    platform = new AppPlatform(instance, folder, await instance.credentials());
    const { url } = (await platform.rest("GET", "/apps/one")).body.result;
    expect(url).to.not.equal(before);
    expect(Number(new URL(url).port)).to.be.within(ports.first, ports.last);
    expect((await get(url)).status).to.equal(200);
    const gone = await get(before).catch((error: NodeJS.ErrnoException) => error.code);
    expect(gone).to.equal("ECONNREFUSED");
  });
});
