import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { connect, type Socket } from "node:net";
import { promisify } from "node:util";
import { expect } from "chai";
import { WebSocket } from "ws";
import { ActorError } from "../../schemas/errors.ts";
import { addMeter } from "../../schemas/meter.ts";
import { until } from "../../scripts/testing/until.ts";
import {
  SOCKET_MESSAGE_BYTES_MAX,
  type SocketRoute,
  type SocketRouter,
  socketRouter,
} from "./socket-router.ts";

/** The admissions of `/echo/slow` that wait. */
const slow: { signal: AbortSignal; end(): void }[] = [];

/** The parameter `of` names the account. By default each name has its own. */
const echo: SocketRoute = {
  match: ({ pathname }) => pathname.startsWith("/echo/"),
  async admit({ url = "" }, { signal, countFor }) {
    const [, name = "", accountId = name] = /^\/echo\/(\w+)(?:\?of=(\w+))?/.exec(url) ?? [];
    if (name !== "late") countFor(accountId);
    if (name === "slow") await new Promise<void>((end) => slow.push({ signal, end }));
    if (name === "nobody") {
      return { refuse: { status: 401, contentType: "text/plain", text: "who?" } };
    }
    if (name === "busy") throw new ActorError("busy", "Cannot open: all is full");
    if (name === "broken") throw new Error("inside");
    return {
      accountId,
      ...(name === "large" && { messageBytesMax: 2 * SOCKET_MESSAGE_BYTES_MAX }),
      accept: (socket) => {
        if (name === "closed") return socket.close(4404, "unknown");
        socket.on("message", (message) => socket.send(`${name}: ${message}`));
      },
    };
  },
};

describe("socket router", () => {
  let server: Server;
  let router: SocketRouter;
  let url: string;
  beforeEach(async () => {
    router = socketRouter([echo], { socketsMax: 2 });
    server = createServer().on("upgrade", router.upgrade).listen(0, "127.0.0.1");
    await once(server, "listening");
    const address = server.address();
    url = `ws://127.0.0.1:${typeof address === "object" ? address?.port : ""}`;
  });
  afterEach(async () => {
    router.terminate();
    await new Promise((resolve) => server.close(resolve));
  });
  const opened = async (path: string) => {
    const socket = new WebSocket(url + path);
    await once(socket, "open");
    return socket;
  };
  const refused = async (path: string) => {
    const [, response] = await once(new WebSocket(url + path), "unexpected-response");
    return response.statusCode;
  };

  it("takes a message of as many bytes as its route names, and none that is larger", async () => {
    const bytesMax = 2 * SOCKET_MESSAGE_BYTES_MAX;
    const socket = new WebSocket(`${url}/echo/large`);
    await once(socket, "open");
    socket.send("x".repeat(bytesMax));
    const [answer] = await once(socket, "message");
    expect(answer.length).to.equal(bytesMax + "large: ".length);
    socket.send("x".repeat(bytesMax + 1));
    const [code] = await once(socket, "close");
    expect(code).to.equal(1_009);
  });

  it("upgrade() leads a socket to the route of its path", async () => {
    const socket = await opened("/echo/one?x=1");
    socket.send("hello");
    const [message] = await once(socket, "message");
    expect(String(message)).to.equal("one: hello");
  });

  it("upgrade() refuses an unknown path", async () => {
    expect(await refused("/other")).to.equal(404);
    expect(await refused("//")).to.equal(404);
  });

  it("upgrade() lets a route refuse with a code that a browser can see", async () => {
    const [code, reason] = await once(await opened("/echo/closed"), "close");
    expect(code).to.equal(4404);
    expect(String(reason)).to.equal("unknown");
  });

  it("upgrade() answers as the route says in place of a socket, or refuses by its error", async () => {
    const answered = async (path: string) => {
      const [, response] = await once(new WebSocket(url + path), "unexpected-response");
      const chunks: Buffer[] = [];
      for await (const chunk of response) chunks.push(chunk);
      return `${response.statusCode} ${Buffer.concat(chunks)}`;
    };
    expect(await answered("/echo/nobody")).to.equal("401 who?");
    expect(await answered("/echo/busy")).to.equal("503 Cannot open: all is full");
    expect(await answered("/echo/broken")).to.equal("500 ");
  });

  it("upgrade() takes as many sockets as the limit and refuses one more", async () => {
    await opened("/echo/one");
    const second = await opened("/echo/two");
    expect(await refused("/echo/three")).to.equal(503);
    second.close();
    // The client sees the end of its socket before the server frees the place, so the test retries.
    await until("its place is free", () => opened("/echo/three").catch(() => undefined));
  });

  it("upgrade() closes the connection of a client that it refused and that does not close it", async () => {
    const connections = promisify(server.getConnections.bind(server));
    for (const path of ["/other", "/echo/nobody"]) {
      const client = await raw(url, path, { allowHalfOpen: true });
      await once(client.resume(), "end");
      await until("the connection is closed", async () => (await connections()) === 0);
      client.destroy();
    }
  });

  it("upgrade() takes a message of the limit and closes on a larger one", async () => {
    const socket = await opened("/echo/one");
    socket.send("x".repeat(SOCKET_MESSAGE_BYTES_MAX));
    const [message] = await once(socket, "message");
    expect(String(message)).to.have.length(SOCKET_MESSAGE_BYTES_MAX + "one: ".length);
    socket.send("x".repeat(SOCKET_MESSAGE_BYTES_MAX + 1));
    const [code] = await once(socket, "close");
    expect(code).to.equal(1009);
  });

  it("upgrade() survives a client that vanishes or speaks nonsense", async () => {
    const [answer] = await once(await raw(url, "/echo/one"), "data");
    expect(String(answer)).to.match(/^HTTP\/1\.1 400 /);
    const socket = await opened("/echo/one");
    socket.terminate();
    await opened("/echo/two");
  });

  it("close() tells every client that the gateway stops, and takes no more sockets", async () => {
    const sockets = [await opened("/echo/one"), await opened("/echo/two")];
    const closes = sockets.map((socket) => once(socket, "close"));
    await router.close();
    for (const [code] of await Promise.all(closes)) expect(code).to.equal(1001);
    expect(await refused("/echo/one")).to.equal(503);
  });
});

describe("shares of accounts in the sockets of a router", () => {
  /** Sockets of the router. One account has SHARE of them. */
  const SOCKETS = 8;
  const SHARE = 6;
  let server: Server;
  let router: SocketRouter;
  let url: string;
  let outcomes: string[];
  let removeMeter: () => void;
  beforeEach(async () => {
    slow.length = 0;
    outcomes = [];
    const count = (_name: string, { outcome = "" }: Readonly<Record<string, string>>) => {
      if (outcome !== "opened") outcomes.push(outcome);
    };
    removeMeter = addMeter({ count, time() {} });
    router = socketRouter([echo], { socketsMax: SOCKETS });
    server = createServer().on("upgrade", router.upgrade).listen(0, "127.0.0.1");
    await once(server, "listening");
    const address = server.address();
    url = `ws://127.0.0.1:${typeof address === "object" ? address?.port : ""}`;
  });
  afterEach(async () => {
    removeMeter();
    router.terminate();
    await router.close();
    await new Promise((resolve) => server.close(resolve));
  });

  const opened = async (account: string, name = "one") => {
    const socket = new WebSocket(`${url}/echo/${name}?of=${account}`);
    await once(socket, "open");
    return socket;
  };
  const fill = (account: string, count: number) =>
    Promise.all(Array.from({ length: count }, () => opened(account)));
  const refused = async (account: string, name = "one") => {
    const socket = new WebSocket(`${url}/echo/${name}?of=${account}`);
    const [, response] = await once(socket, "unexpected-response");
    const chunks: Buffer[] = [];
    for await (const chunk of response) chunks.push(chunk);
    const { statusCode: status, headers } = response;
    return { status, retryAfter: headers["retry-after"], text: String(Buffer.concat(chunks)) };
  };
  const pastShare = {
    status: 503,
    retryAfter: "1",
    text: "Cannot open WebSocket: this account has its share of the WebSockets of this gateway; try again",
  };

  it("an account has its share and no more, and another account still gets in", async () => {
    await fill("a", SHARE);
    expect(await refused("a")).to.deep.equal(pastShare);
    expect(await refused("a", "late")).to.deep.equal(pastShare);
    await fill("b", SOCKETS - SHARE);
    expect(await refused("c")).to.deep.equal({ status: 503, retryAfter: "1", text: "" });
    expect(outcomes).to.deep.equal(["share", "share", "full"]);
  });

  it("a socket that closes gives its place back", async () => {
    const [first] = await fill("a", SHARE);
    expect(await refused("a")).to.deep.equal(pastShare);
    first?.close();
    await until("its place is free", () => opened("a").catch(() => undefined));
    expect(await refused("a")).to.deep.equal(pastShare);
  });

  it("an upgrade that fails gives its place back", async () => {
    await fill("a", SHARE - 1);
    for (const [name, status] of [
      ["nobody", 401],
      ["busy", 503],
      ["broken", 500],
    ] as const) {
      for (let time = 0; time < 2; time += 1) {
        const answer = await refused("a", name);
        expect(answer.status, name).to.equal(status);
        expect(answer.text, name).to.not.equal(pastShare.text);
      }
    }
    for (let time = 0; time < 2; time += 1) {
      const [answer] = await once(await raw(url, "/echo/one?of=a"), "data");
      expect(String(answer)).to.match(/^HTTP\/1\.1 400 /);
    }
    await opened("a");
    expect(await refused("a")).to.deep.equal(pastShare);
  });

  it("an upgrade has a place while it is decided, also if its client has vanished", async () => {
    await fill("a", SHARE - 1);
    const client = await raw(url, "/echo/slow?of=a");
    const waiting = await until("its route decides", () => slow[0]);
    expect(await refused("a")).to.deep.equal(pastShare);
    client.resetAndDestroy();
    await until("the route has noticed", () => waiting.signal.aborted);
    expect(await refused("a")).to.deep.equal(pastShare);
    waiting.end();
    await until("its place is free", () => opened("a").catch(() => undefined));
    expect(await refused("a")).to.deep.equal(pastShare);
  });
});

/** Sends an upgrade without a key of WebSocket, which the handshake refuses with 400. */
async function raw(url: string, path: string, options: { allowHalfOpen?: true } = {}) {
  const { hostname: host, port } = new URL(url);
  const client: Socket = connect({ host, port: Number(port), ...options });
  await once(client, "connect");
  client.on("error", () => {});
  const lines = ["Host: x", "Connection: Upgrade", "Upgrade: websocket"];
  client.write([`GET ${path} HTTP/1.1`, ...lines, "", ""].join("\r\n"));
  return client;
}
