import { createSocket } from "node:dgram";
import { once } from "node:events";
import { createServer } from "node:net";
import { expect } from "chai";
import { freePort } from "./free-port.ts";

describe("freePort()", () => {
  it("gives one that nobody listens on, and that nobody else is given before somebody does", async () => {
    const port = await freePort();
    const claim = createSocket("udp4");
    const refused = once(claim, "error");
    claim.bind(port, "127.0.0.1");
    expect((await refused)[0]).to.include({ code: "EADDRINUSE" });
    claim.close();
    const server = createServer().listen(port, "127.0.0.1");
    await once(server, "listening");
    server.close();
    await once(server, "close");
  });

  it("gives the preferred one where nobody listens on it, and else another", async () => {
    const port = await freePort();
    expect(await freePort(port)).to.equal(port);
    const server = createServer().listen(port, "127.0.0.1");
    await once(server, "listening");
    expect(await freePort(port)).to.not.equal(port);
    server.close();
    await once(server, "close");
  });
});
