import { once } from "node:events";
import { createServer, type Server, type ServerResponse } from "node:http";
import { connect, type Socket } from "node:net";
import { expect } from "chai";
import { writeAnswer } from "./write-answer.ts";

/** The number of bytes that the test client reads every 20 ms. */
const BITE = 10_000;
/** More bytes than the buffers of the kernel hold. */
const LARGE = Buffer.alloc(64 * 1024 * 1024, "x");

/** The stall time for clients that read fast enough: longer than a busy machine may pause this process. */
const SURE_MS = 3_000;

describe("writeAnswer()", function () {
  this.timeout(300_000);
  let server: Server;
  let client: Socket;
  let response: ServerResponse;
  let leaving: AbortController;

  beforeEach(async () => {
    server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    const address = server.address();
    const port = typeof address === "object" && address ? address.port : 0;
    client = connect(port, "127.0.0.1");
    client.on("error", () => undefined);
    client.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    const [, answering] = await once(server, "request");
    response = answering;
    leaving = new AbortController();
    response.once("close", () => leaving.abort(new Error("left")));
  });
  afterEach(async () => {
    client.destroy();
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  });

  const write = (chunks: AsyncIterable<Uint8Array>, bytes: number | null, stallMs?: number) =>
    writeAnswer(chunks, response, {
      bytes,
      signal: leaving.signal,
      ...(stallMs === undefined ? {} : { stallMs }),
    });
  const failure = (run: Promise<void>) => run.catch((error: unknown) => error);

  it("disconnects a client that reads nothing, and releases the chunks", async () => {
    const source = { closed: false };
    const failed = await failure(write(endless(source), null, 20));
    expect(failed).to.be.instanceOf(Error);
    expect(response.destroyed).to.equal(true);
    expect(source.closed).to.equal(true);
  });

  it("disconnects a client that does not read the end", async () => {
    await failure(write(one(), LARGE.length, 20));
    if (!response.closed) await once(response, "close");
    expect(response.writableFinished).to.equal(false);
  });

  it("ends as soon as the source fails, whether the client reads or not", async () => {
    const failed = await failure(write(broken(), null, 600_000));
    expect(String(failed)).to.contain("the worker is gone");
  });

  it("writes everything to a client that reads, however long the source takes", async () => {
    let taken = 0;
    client.on("data", (data) => {
      taken += data.length;
    });
    await write(slow(SURE_MS + 500), null, SURE_MS);
    await once(response, "finish");
    while (taken < LARGE.length + 1) await new Promise(setImmediate);
    expect(leaving.signal.aborted && !response.writableFinished).to.equal(false);
  });

  it("disconnects a client that reads below the minimum rate, and not one at it", async () => {
    const pace = { stallMs: 400, stallBytes: 4 * 1024 * 1024 };
    const written = (chunks: AsyncIterable<Uint8Array>, bytes: number) =>
      writeAnswer(chunks, response, { bytes, signal: leaving.signal, ...pace });
    client.pause();
    const timer = setInterval(() => client.read(BITE), 20);
    const failed = await failure(written(one(), LARGE.length));
    clearInterval(timer);
    expect(String(failed)).to.contain("reads too slowly");
    expect(response.destroyed).to.equal(true);
  });

  it("waits for a slow client that reads at the minimum rate", async () => {
    const pace = { stallMs: SURE_MS, stallBytes: 128 * 1024 };
    const content = LARGE.subarray(0, 16 * 1024 * 1024);
    client.pause();
    const startedAt = performance.now();
    const timer = setInterval(() => client.read(), 20);
    try {
      const { signal } = leaving;
      await writeAnswer(one(content), response, { bytes: content.length, signal, ...pace });
      if (!response.writableFinished) await once(response, "finish");
    } finally {
      clearInterval(timer);
    }
    expect(performance.now() - startedAt).to.be.above(pace.stallMs);
  });

  async function* slow(pauseMs: number) {
    yield LARGE;
    // The source pauses for longer than a client may stall. The pause does not count: the time limit runs only while
    // there are bytes for the client to read.
    await once(AbortSignal.timeout(pauseMs), "abort");
    yield Buffer.from("x");
  }
});

async function* endless(source: { closed: boolean }) {
  try {
    for (;;) yield LARGE;
  } finally {
    source.closed = true;
  }
}

async function* one(content = LARGE) {
  yield content;
}

async function* broken() {
  yield LARGE;
  throw new Error("the worker is gone");
}
