import { once } from "node:events";
import { request as ask, createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { gzipSync } from "node:zlib";
import { expect } from "chai";
import { ActorError } from "../../../schemas/errors.ts";
import { until } from "../../../scripts/testing/until.ts";
import { gitBody } from "./git-body.ts";
import type { WholeDiscard } from "./push-discards.ts";

/** The stall limit for bodies that must arrive completely. It is longer than a busy machine may pause a process. */
const SURE_MS = 3_000;

describe("gitBody()", function () {
  this.timeout(300_000);

  /** Returns the result of reading one request body: its bytes, or the code of the refusal. */
  async function read(
    send: (request: ReturnType<typeof ask>) => void,
    { bytesMax = 1_000, stallMs = 10_000, stallBytes = 1, encoding = "identity", waitMs = 0 } = {},
  ): Promise<number | string> {
    const { promise, resolve } = Promise.withResolvers<number | string>();
    const server = createServer((request, response) => {
      void bytesOf(request, { bytesMax, stallMs, stallBytes, waitMs }).then((outcome) => {
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

  async function bytesOf(
    request: IncomingMessage,
    {
      waitMs,
      ...options
    }: { bytesMax: number; stallMs: number; stallBytes: number; waitMs: number },
  ) {
    try {
      const body = gitBody(request, options);
      const startedAt = performance.now();
      if (waitMs > 0) await until("it is read", () => performance.now() - startedAt >= waitMs);
      let bytes = 0;
      for await (const chunk of body) bytes += chunk.length;
      return bytes;
    } catch (error) {
      if (error instanceof ActorError) return error.code;
      throw error;
    }
  }

  it("passes on bytes up to the limit, in chunks of any size, and refuses one byte more", async () => {
    expect(await read((request) => request.end(Buffer.alloc(1_000)))).to.equal(1_000);
    expect(await read((request) => request.end(Buffer.alloc(1_001)))).to.equal("body_too_large");
    const inPieces = (request: ReturnType<typeof ask>) => {
      for (let i = 0; i < 10; i++) request.write(Buffer.alloc(100));
      request.end();
    };
    expect(await read(inPieces)).to.equal(1_000);
  });

  it("applies the limit to the decompressed bytes", async () => {
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

  it("continues at the minimum rate, and ends below it", async () => {
    const slowly = (bytes: number) => (request: ReturnType<typeof ask>) => {
      let left = 20;
      const timer = setInterval(() => {
        if (left-- > 0) request.write(Buffer.alloc(bytes));
        else request.end();
        if (left < 0) clearInterval(timer);
      }, SURE_MS / 15);
      request.once("close", () => clearInterval(timer));
    };
    const pace = { stallMs: SURE_MS, stallBytes: 30 };
    expect(await read(slowly(30), pace)).to.equal(600);
    expect(await read(slowly(1), pace)).to.equal("deadline_exceeded");
  });

  it("does not end a body whose received bytes wait for a slow reader", async () => {
    const sizes = [60_000, 100_000, 1_000_000];
    const outcomes = sizes.map((bytes) => {
      const waited = { bytesMax: bytes, stallMs: SURE_MS, waitMs: 2 * SURE_MS };
      return read((request) => request.end(Buffer.alloc(bytes)), waited);
    });
    expect(await Promise.all(outcomes)).to.deep.equal(sizes);
  });

  describe("leftover of a refused body", () => {
    const BYTES_MAX = 1_000;
    const DISCARDED_MAX = 4_000_000;

    /**
     * Returns what happens to the connection of a client that sends `rest` bytes after the response. With `hasMore`,
     * the body does not end after these bytes.
     */
    async function answered(
      rest: number,
      hasMore = false,
      more: () => WholeDiscard | undefined = () => undefined,
    ): Promise<string> {
      const server = createServer((request, response) => {
        const bounds = { bytesMax: BYTES_MAX, discarding: { bytesMax: DISCARDED_MAX, more } };
        const body = gitBody(request, { ...bounds, stallMs: SURE_MS, stallBytes: 1 });
        body.once("error", () => response.end("refused")).resume();
      }).listen(0, "127.0.0.1");
      await once(server, "listening");
      try {
        const { port } = server.address() as AddressInfo;
        const request = ask({ port, host: "127.0.0.1", method: "POST" });
        const cut = new Promise<string>((resolve) => {
          request.on("error", () => resolve("cut off"));
        });
        // Sends one byte more than allowed, and waits for the response.
        request.write(Buffer.alloc(BYTES_MAX + 1));
        const [response] = (await once(request, "response")) as [IncomingMessage];
        const said = response.setEncoding("utf8").toArray();
        expect((await said).join("")).to.equal("refused");
        const sent = new Promise<string>((resolve) => {
          if (hasMore) request.write(Buffer.alloc(rest));
          else request.end(Buffer.alloc(rest), () => resolve("sent"));
        });
        const isIdle = async () => {
          const connections = await new Promise((resolve) =>
            server.getConnections((_, count) => resolve(count)),
          );
          return connections === 0 && "cut off";
        };
        const closed = until("it is cut off", isIdle, 10 * SURE_MS).then(String);
        // If all bytes are sent, the connection stays open for the next request, and this wait may fail.
        closed.catch(() => {});
        return await Promise.race([sent, cut, closed]);
      } finally {
        server.closeAllConnections();
        server.close();
      }
    }

    it("reads the leftover up to its limit and no further", async () => {
      expect(await answered(DISCARDED_MAX)).to.equal("sent");
      expect(await answered(DISCARDED_MAX + 1, true)).to.equal("cut off");
    });

    it("reads further up to the limit of a permission, and returns the permission", async () => {
      const bytesMax = DISCARDED_MAX + 100_000;
      let [given, returned] = [0, 0];
      const more = () => {
        given += 1;
        return { bytesMax, [Symbol.dispose]: () => void returned++ };
      };
      expect(await answered(DISCARDED_MAX, false, more)).to.equal("sent");
      expect(given).to.equal(0);
      expect(await answered(bytesMax + 1, true, more)).to.equal("cut off");
      expect(given).to.equal(1);
      await until("it is returned", () => returned === 1);
      expect(await answered(bytesMax, false, more)).to.equal("sent");
    });

    it("does not wait for a leftover that never arrives", async () => {
      expect(await answered(1, true)).to.equal("cut off");
    });
  });

  it("ends when the client sends nothing for a while or disconnects", async () => {
    expect(await read((request) => request.write("x"), { stallMs: 60 })).to.equal(
      "deadline_exceeded",
    );
    const leaves = (request: ReturnType<typeof ask>) =>
      request.write("x", () => setImmediate(() => request.destroy()));
    expect(await read(leaves)).to.equal("cancelled");
  });
});
