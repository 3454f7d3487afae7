import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { expect } from "chai";
import { endUnread, UNREAD_BODY_BYTES_MAX } from "./end-unread.ts";

describe("endUnread()", function () {
  this.timeout(60_000);
  let server: Server;
  let url: string;
  const read: number[] = [];
  /** Reads at most the first piece of the body, as a route does that refuses the request. */
  const refuse = async (request: IncomingMessage, response: ServerResponse) => {
    const { socket } = request;
    if (request.url === "/begun")
      await once(
        request.on("data", () => request.pause()),
        "pause",
      );
    response.statusCode = 413;
    await endUnread(request, response, "too large");
    if (request.url === "/endless") read.push(socket.bytesRead);
  };
  before(async () => {
    server = createServer((request, response) => void refuse(request, response));
    await once(server.listen(0, "127.0.0.1"), "listening");
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  after(() => {
    server.closeAllConnections();
    server.close();
  });

  const chunked = (count: number) =>
    new ReadableStream({
      pull(controller) {
        count -= 1;
        if (count < 0) controller.close();
        else controller.enqueue(new Uint8Array(1024 * 1024));
      },
    });

  for (const path of ["/", "/begun"]) {
    it(`Node's fetch reads the response while it still sends its body: ${path}`, async () => {
      for (let times = 0; times < 10; times += 1) {
        for (const body of [new Uint8Array(20_000_000), chunked(20)]) {
          const answer = await fetch(url + path, {
            method: "POST",
            body,
            duplex: "half",
          } as RequestInit);
          expect([answer.status, await answer.text()]).to.deep.equal([413, "too large"]);
        }
      }
    });
  }

  it("discards a refused body up to the limit, from a client that keeps sending", async () => {
    const { hostname, port } = new URL(url);
    const socket = connect(Number(port), hostname);
    socket.on("error", () => {});
    socket.write("POST /endless HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
    const chunk = Buffer.concat([
      Buffer.from("100000\r\n"),
      Buffer.alloc(1024 * 1024),
      Buffer.from("\r\n"),
    ]);
    let answer = "";
    socket.on("data", (data) => {
      answer += data;
    });
    const { promise: closed, resolve } = Promise.withResolvers<void>();
    socket.once("close", () => resolve());
    const send = () => {
      while (!socket.destroyed && socket.write(chunk));
    };
    socket.on("drain", send);
    send();
    await closed;
    expect(answer).to.match(/^HTTP\/1\.1 413 [\s\S]*Connection: close[\s\S]*too large$/);
    expect(read[0]).to.be.within(UNREAD_BODY_BYTES_MAX, 2 * UNREAD_BODY_BYTES_MAX);
  });
});
