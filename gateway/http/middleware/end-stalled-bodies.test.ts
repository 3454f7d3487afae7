import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { expect } from "chai";
import express from "express";
import { endStalledBodies } from "./end-stalled-bodies.ts";

const STALL_MS = 300;

describe("endStalledBodies()", () => {
  let server: Server;
  let outcomes: Promise<string>;
  /** Called for each piece of the body that the server has read. */
  let onBytes: () => void;
  beforeEach(async () => {
    onBytes = () => {};
    const app = express();
    app.use(endStalledBodies(STALL_MS));
    outcomes = new Promise((resolve) => {
      app.post("/read", (request, response) => {
        request.on("data", () => onBytes());
        request.once("end", () => {
          response.send("whole");
          resolve("whole");
        });
        request.once("close", () => resolve("ended"));
      });
    });
    server = createServer(app).listen(0, "127.0.0.1");
    await once(server, "listening");
  });
  afterEach(async () => {
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  });

  const send = async (length: number) => {
    const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
    await once(socket, "connect");
    socket.on("error", () => {});
    socket.write(`POST /read HTTP/1.1\r\nHost: a\r\nContent-Length: ${length}\r\n\r\n`);
    return socket;
  };

  it("ends a request whose body stops halfway", async () => {
    const socket = await send(10);
    socket.write("half");
    const closed = once(socket, "close");
    expect(await outcomes).to.equal("ended");
    await closed;
  });

  it("keeps a request whose bytes keep arriving, however long it takes", async () => {
    const started = performance.now();
    const length = 1_000_000;
    const socket = await send(length);
    let sent = 0;
    const isDone = () => performance.now() - started > 3 * STALL_MS;
    // Each byte is sent after the server has read the byte before.
    onBytes = () => {
      const next = isDone() ? length - sent : 1;
      sent += next;
      socket.write("x".repeat(next));
    };
    onBytes();
    expect(await outcomes).to.equal("whole");
    socket.destroy();
  });
});
