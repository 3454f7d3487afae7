import { once } from "node:events";
import { createServer, get, type IncomingMessage, type Server } from "node:http";
import { expect } from "chai";
import express, { type Response } from "express";
import { until } from "../../scripts/testing/until.ts";
import { EVENTS_WAITING_BYTES_MAX, EventStream } from "./event-stream.ts";

describe("EventStream", () => {
  let server: Server;
  let answers: Response[];

  beforeEach(async () => {
    answers = [];
    const app = express();
    app.get("/", (_request, response) => {
      answers.push(response);
    });
    server = createServer(app).listen(0, "127.0.0.1");
    await once(server, "listening");
  });
  afterEach(async () => {
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  });

  it("isBehind is true from one byte past the buffer limit until the client has read it", async () => {
    const address = server.address();
    if (address === null || typeof address === "string") throw new Error("no port");
    const asked = get({ port: address.port, host: "127.0.0.1", agent: false });
    await until("the request has come", () => answers.length === 1);
    const [response] = answers;
    if (response === undefined) throw new Error("no response");
    // With a Content-Length, Node does not add chunk lengths. So `writableLength` counts only the bytes of events
    // that wait.
    response.set("Content-Length", String(2 * EVENTS_WAITING_BYTES_MAX));
    const stream = new EventStream(response);
    const [taking] = (await once(asked, "response")) as [IncomingMessage];
    await until("the head has left", () => response.writableLength === 0);

    // The response is corked, so Node sends nothing until `uncork`.
    response.cork();
    const around = measure("");
    const waiting = response.writableLength;
    measure("x".repeat(EVENTS_WAITING_BYTES_MAX - waiting - around));
    expect(response.writableLength).to.equal(EVENTS_WAITING_BYTES_MAX);
    expect(stream.isBehind).to.equal(false);
    stream.keepAlive();
    expect(stream.isBehind).to.equal(true);
    response.uncork();
    taking.resume();
    await until("all of it was taken", () => response.writableLength === 0);
    expect(stream.isBehind).to.equal(false);

    /** Returns how many bytes an event with this text adds to the waiting bytes. */
    function measure(text: string): number {
      const before = response?.writableLength ?? 0;
      stream.send("page", text);
      return (response?.writableLength ?? 0) - before;
    }
  });
});
