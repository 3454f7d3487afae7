import { once } from "node:events";
import { connect } from "node:net";
import { buffer, text } from "node:stream/consumers";
import { expect } from "chai";
import { WebSocket, WebSocketServer } from "ws";
import {
  connectTo,
  openProxy,
  openTunnel,
  portOf,
  turns,
} from "../../scripts/testing/egress-proxy-client.ts";
import { startHttpServer, startTcpServer } from "../../scripts/testing/loopback-server.ts";

describe("Tunnel", () => {
  it("carries any number of bytes both ways", async () => {
    await using origin = await startTcpServer((socket) => socket.pipe(socket));
    await using proxy = await openProxy();
    const tunnel = await openTunnel(proxy, `open.test:${origin.port}`);
    const sent = Buffer.alloc(5_000_000, "0123456789");
    tunnel.end(sent);
    expect((await buffer(tunnel)).equals(sent)).to.equal(true);
    expect(proxy.bytes).to.deep.equal({ received: sent.length, sent: sent.length });
  });

  it("forwards bytes that arrived with the request itself", async () => {
    await using origin = await startTcpServer((socket) => socket.pipe(socket));
    await using proxy = await openProxy();
    const client = connect(portOf(proxy), "127.0.0.1");
    client.write(`${connectTo(proxy, `open.test:${origin.port}`)}early`);
    let received = "";
    client.on("data", (chunk) => {
      received += chunk;
      if (received.endsWith("early")) client.end();
    });
    await once(client, "close");
    expect(received).to.match(/^HTTP\/1.1 200 [\s\S]*\r\n\r\nearly$/);
  });

  it("forwards the end of one side while the other still sends", async () => {
    await using origin = await startTcpServer((socket) => {
      let received = "";
      socket.on("data", (chunk) => {
        received += chunk;
      });
      socket.on("end", () => socket.end(`got ${received}`));
    });
    await using proxy = await openProxy();
    const tunnel = await openTunnel(proxy, `open.test:${origin.port}`);
    tunnel.end("request");
    expect(await text(tunnel)).to.equal("got request");
  });

  it("stops reading from one side while the other does not read", async () => {
    // More than the buffers of four loopback sockets hold.
    const total = 32 * 1024 * 1024;
    await using origin = await startTcpServer((socket) => socket.end(Buffer.alloc(total)));
    await using proxy = await openProxy();
    const tunnel = await openTunnel(proxy, `open.test:${origin.port}`);
    await once(tunnel, "readable");
    await turns(200);
    expect(proxy.bytes.received).to.be.lessThan(total - 4 * 1024 * 1024);
    expect((await buffer(tunnel)).length).to.equal(total);
  });

  it("carries a WebSocket", async () => {
    await using origin = await startHttpServer(() => {});
    const sockets = new WebSocketServer({ server: origin.server });
    sockets.on("connection", (socket) =>
      socket.on("message", (message) => socket.send(`echo ${message}`)),
    );
    await using proxy = await openProxy();
    const tunnel = await openTunnel(proxy, `open.test:${origin.port}`);
    const socket = new WebSocket(`ws://open.test:${origin.port}/`, {
      createConnection: () => tunnel.resume(),
    });
    await once(socket, "open");
    socket.send("hello");
    const [message] = await once(socket, "message");
    expect(String(message)).to.equal("echo hello");
    socket.close();
    await once(socket, "close");
  });
});
