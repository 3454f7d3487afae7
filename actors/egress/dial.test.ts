import { once } from "node:events";
import { expect } from "chai";
import { startTcpServer } from "../../scripts/testing/loopback-server.ts";
import { dial } from "./dial.ts";

const signal = new AbortController().signal;
/**
 * An address that is reserved for documentation, so no host responds: the SYN is lost, or the kernel refuses the
 * connection immediately.
 */
const SILENT = "192.0.2.1";

describe("dial", () => {
  it("dial() connects to the first address that answers", async () => {
    await using server = await startTcpServer(() => {});
    const socket = await dial({
      addresses: ["127.0.0.3", "127.0.0.2"],
      port: server.port,
      allowHalfOpen: false,
      signal,
    });
    expect(socket.remoteAddress).to.equal("127.0.0.2");
    socket.destroy();
  });

  it("dial() tries the next address in parallel with a silent one", async () => {
    await using server = await startTcpServer(() => {});
    const options = { port: server.port, allowHalfOpen: false, signal, attemptMs: 5 };
    const socket = await dial({ ...options, addresses: [SILENT, "127.0.0.2"] });
    expect(socket.remoteAddress).to.equal("127.0.0.2");
    socket.destroy();
  });

  it("dial() alternates between address families, beginning with the first address's family", async () => {
    await using server = await startTcpServer(() => {});
    const addresses = ["127.0.0.3", "127.0.0.4", "::1", "127.0.0.2"];
    const socket = await dial({ addresses, port: server.port, allowHalfOpen: false, signal });
    expect(socket.remoteAddress).to.equal("127.0.0.2");
    socket.destroy();
  });

  it("dial() fails with the error of its addresses, preferring a refused connection", async () => {
    const server = await startTcpServer(() => {});
    await server.close();
    const addresses = ["127.0.0.2", "127.0.0.3"];
    const error = await dial({ addresses, port: server.port, allowHalfOpen: false, signal }).catch(
      (cause) => cause,
    );
    expect(error).to.have.property("code", "ECONNREFUSED");
  });

  it("dial() stops when the signal is aborted, before and during", async () => {
    const leaving = new AbortController();
    const options = { addresses: [SILENT], port: 80, allowHalfOpen: false, signal: leaving.signal };
    const dialling = dial(options).catch((cause) => cause);
    leaving.abort(new Error("left"));
    expect(await dialling).to.have.property("message", "left");
    expect(await dial(options).catch((cause) => cause)).to.have.property("message", "left");
  });

  it("dial() leaves no second connection behind", async () => {
    await using server = await startTcpServer(() => {});
    const options = { port: server.port, allowHalfOpen: false, signal, attemptMs: 0 };
    const socket = await dial({ ...options, addresses: ["127.0.0.2", "127.0.0.2", "127.0.0.2"] });
    const closed = once(socket, "close");
    socket.destroy();
    await closed;
    while (server.open() > 0) await new Promise((resolve) => setImmediate(resolve));
  });
});
