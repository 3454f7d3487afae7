import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { connect } from "node:net";
import { expect } from "chai";
import { WebSocket } from "ws";
import { ActorError } from "../../schemas/errors.ts";
import { until } from "../../scripts/testing/until.ts";
import {
  SOCKET_MESSAGE_BYTES_MAX,
  type SocketRoute,
  type SocketRouter,
  socketRouter,
} from "./socket-router.ts";

const echo: SocketRoute = {
  match: ({ pathname }) => pathname.startsWith("/echo/"),
  async admit({ url = "" }) {
    const [, name] = /^\/echo\/(\w+)/.exec(url) ?? [];
    if (name === "nobody") {
      return { refuse: { status: 401, contentType: "text/plain", text: "who?" } };
    }
    if (name === "busy") throw new ActorError("busy", "Cannot open: all is full");
    if (name === "broken") throw new Error("inside");
    return {
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
    const port = Number(new URL(url).port);
    const broken = connect(port, "127.0.0.1");
    broken.write(
      "GET /echo/one HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    );
    const [answer] = await once(broken, "data");
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
