import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { expect } from "chai";
import express from "express";
import { WebSocket } from "ws";
import { ActorError, ERRORS } from "../../schemas/errors.ts";
import { type SocketRouter, socketRouter } from "./socket-router.ts";
import { upgradeOf, upgradesThrough } from "./upgrade-requests.ts";

describe("upgrades through the application", () => {
  let server: Server;
  let router: SocketRouter;
  let url: string;
  /** The status and outcome that the application sees when a response ends. */
  let closed: { status: number; finished: boolean }[];

  beforeEach(async () => {
    closed = [];
    const app = express();
    app.use((_request, response, next) => {
      response.once("close", () => {
        closed.push({ status: response.statusCode, finished: response.writableFinished });
      });
      next();
    });
    app.get("/socket/echo", ({ query }, response) => {
      const serve = (socket: WebSocket) => void socket.on("message", (text) => socket.send(text));
      const account = String(query.of);
      upgradeOf(response, account);
      upgradeOf(response, account).accept(serve, { messageBytesMax: 10 });
    });
    app.get("/socket/refused", (_request, response) => {
      response.set({ "WWW-Authenticate": "Bearer", "X-Inside": "1" }).status(401).json({ no: 1 });
    });
    app.get("/socket/plain", (_request, response) => void response.send("ordinary"));
    app.use(((error, _request, response, _next) => {
      const status = error instanceof ActorError ? ERRORS[error.code].status : 500;
      response.status(status).send(error.message);
    }) satisfies express.ErrorRequestHandler);
    router = socketRouter([upgradesThrough(app, /^\/socket\//)], { socketsMax: 4 });
    server = createServer(app).on("upgrade", router.upgrade).listen(0, "127.0.0.1");
    await once(server, "listening");
    url = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterEach(async () => {
    router.terminate();
    await router.close();
    server.close();
  });

  const refusal = async (path: string) => {
    const socket = new WebSocket(`ws://${url}${path}`);
    socket.on("error", () => {});
    const [, answer] = await once(socket, "unexpected-response");
    const text: string[] = [];
    for await (const chunk of answer) text.push(String(chunk));
    return { status: answer.statusCode, headers: answer.headers, text: text.join("") };
  };

  it("a route takes its socket, with its own limit of messages", async () => {
    const socket = new WebSocket(`ws://${url}/socket/echo`);
    await once(socket, "open");
    socket.send("0123456789");
    expect(String((await once(socket, "message"))[0])).to.equal("0123456789");
    expect(closed).to.deep.equal([{ status: 101, finished: true }]);
    socket.send("01234567890");
    expect((await once(socket, "close"))[0]).to.equal(1_009);
  });

  it("an answer of the application refuses the handshake, with the headers that clients act on", async () => {
    const { status, headers, text } = await refusal("/socket/refused");
    expect([status, text]).to.deep.equal([401, '{"no":1}']);
    expect(headers["content-type"]).to.equal("application/json; charset=utf-8");
    expect(headers["www-authenticate"]).to.equal("Bearer");
    expect(headers).not.to.have.property("x-inside");
    expect(closed).to.deep.equal([{ status: 401, finished: true }]);
    expect((await refusal("/socket/unknown")).status).to.equal(404);
    expect((await refusal("/elsewhere")).status).to.equal(404);
  });

  it("a route refuses the socket of an account that has its share, and accepts another account's", async () => {
    const opened = async (account: string) => {
      const socket = new WebSocket(`ws://${url}/socket/echo?of=${account}`);
      await once(socket, "open");
    };
    for (let socket = 0; socket < 3; socket += 1) await opened("a");
    const { status, text } = await refusal("/socket/echo?of=a");
    expect([status, text]).to.deep.equal([
      503,
      "Cannot open WebSocket: this account has its share of the WebSockets of this gateway; try again",
    ]);
    await opened("b");
  });

  it("a route without a WebSocket answers an upgrade as it answers a request", async () => {
    expect(await refusal("/socket/plain")).to.include({ status: 200, text: "ordinary" });
  });

  it("a plain request to the address of a WebSocket is told what is missing", async () => {
    const answer = await fetch(`http://${url}/socket/echo`);
    expect([answer.status, await answer.text()]).to.deep.equal([
      400,
      "Cannot answer: this address is a WebSocket; expected the header Upgrade: websocket",
    ]);
  });
});
