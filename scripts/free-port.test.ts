import { createSocket } from "node:dgram";
import { once } from "node:events";
import { createServer } from "node:net";
import { expect } from "chai";
import { freePort } from "./free-port.ts";

describe("freePort()", () => {
  it("returns an unused port, and never the same port twice before it is in use", async () => {
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

  it("returns the preferred port if it is unused, and otherwise another", async () => {
    const port = await freePort();
    expect(await freePort(port)).to.equal(port);
    const server = createServer().listen(port, "127.0.0.1");
    await once(server, "listening");
    expect(await freePort(port)).to.not.equal(port);
    server.close();
    await once(server, "close");
  });
});
