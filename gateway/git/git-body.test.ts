import { once } from "node:events";
import { request as ask, createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { gzipSync } from "node:zlib";
import { expect } from "chai";
import { ActorError } from "../../schemas/errors.ts";
import { gitBody } from "./git-body.ts";

describe("gitBody()", () => {
  /** What comes of reading the body of one request: its bytes, or the refusal's code. */
  async function read(
    send: (request: ReturnType<typeof ask>) => void,
    { bytesMax = 1_000, stallMs = 60, encoding = "identity" } = {},
  ): Promise<number | string> {
    const { promise, resolve } = Promise.withResolvers<number | string>();
    const server = createServer((request, response) => {
      void bytesOf(request, { bytesMax, stallMs }).then((outcome) => {
        resolve(outcome);
        response.end();
      });
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const headers = { "Content-Encoding": encoding };
    const request = ask({ port, host: "127.0.0.1", method: "POST", headers });
    request.on("error", () => {});
    send(request);
    const outcome = await promise;
    request.destroy();
    server.closeAllConnections();
    server.close();
    return outcome;
  }

  async function bytesOf(request: IncomingMessage, options: { bytesMax: number; stallMs: number }) {
    try {
      let bytes = 0;
      for await (const chunk of gitBody(request, options)) bytes += chunk.length;
      return bytes;
    } catch (error) {
      if (error instanceof ActorError) return error.code;
      throw error;
    }
  }

  it("gives as many bytes as may come, in any pieces, and not one more", async () => {
    expect(await read((request) => request.end(Buffer.alloc(1_000)))).to.equal(1_000);
    expect(await read((request) => request.end(Buffer.alloc(1_001)))).to.equal("body_too_large");
    const inPieces = (request: ReturnType<typeof ask>) => {
      for (let i = 0; i < 10; i++) request.write(Buffer.alloc(100));
      request.end();
    };
    expect(await read(inPieces)).to.equal(1_000);
  });

  it("counts what it unpacks to", async () => {
    for (const encoding of ["gzip", "x-gzip"]) {
      const packed = (bytes: number) => gzipSync(Buffer.alloc(bytes));
      expect(await read((request) => request.end(packed(1_000)), { encoding })).to.equal(1_000);
      const more = await read((request) => request.end(packed(10_000_000)), { encoding });
      expect(more).to.equal("body_too_large");
    }
    const cut = gzipSync(Buffer.alloc(500)).subarray(0, -10);
    expect(await read((request) => request.end(cut), { encoding: "gzip" })).to.equal(
      "invalid_request",
    );
  });

  it("ends where nothing comes for a while, or the client leaves", async () => {
    expect(await read((request) => request.write("x"))).to.equal("deadline_exceeded");
    const leaves = (request: ReturnType<typeof ask>) =>
      request.write("x", () => setImmediate(() => request.destroy()));
    expect(await read(leaves, { stallMs: 10_000 })).to.equal("cancelled");
  });
});
