import { randomBytes } from "node:crypto";
import { connect, type Socket } from "node:net";
import { expect } from "chai";
import { until } from "../../../scripts/testing/until.ts";
import { type GitGateway, GitWorld, type TestRepo } from "../testing/git-world.ts";
import { FLUSH, pktLine } from "./pkt-line.ts";

/** More bytes than the buffers between the gateway and a client can hold. */
const LARGE = 16 * 1024 * 1024;
/**
 * `stallMs` is longer than a busy machine may pause the test's process. During such a pause the client reads nothing.
 */
const PACE = { stallMs: 3_000, stallBytes: 512 * 1024 };

describe("a client that reads a clone slowly", function () {
  this.timeout(600_000);
  let world: GitWorld;
  let gateway: GitGateway;
  let repo: TestRepo;
  let tip: string;
  before(async () => {
    world = await GitWorld.start();
    gateway = await world.gateway({ pace: PACE });
    repo = await world.repo();
    const work = await world.checkout();
    const blob = await work.object("blob", randomBytes(LARGE));
    tip = await work.commitTree(await work.tree("100644", "large", blob));
    await work.git("push", "-q", gateway.remote(repo), `${tip}:refs/heads/main`);
    await until("the push is over", () => gateway.service.parts.slots.running === 0);
  });
  after(() => world[Symbol.asyncDispose]());
  afterEach(() => expect(gateway.faults).to.deep.equal([]));

  /** Starts a clone. `line` adds a line to the request, so that no stored response of another clone matches. */
  function cloning(line = ""): Socket {
    const socket = connect(Number(new URL(gateway.url).port), "127.0.0.1");
    socket.on("error", () => {});
    socket.pause();
    const question = Buffer.concat([
      pktLine(`want ${tip} side-band-64k ofs-delta\n`),
      FLUSH,
      ...(line === "" ? [] : [pktLine(line)]),
      pktLine("done\n"),
    ]);
    const head = [
      `POST ${repo.path}/git-upload-pack HTTP/1.1`,
      "Host: x",
      `Authorization: Bearer ${repo.token}`,
      "Content-Type: application/x-git-upload-pack-request",
      `Content-Length: ${question.length}`,
    ];
    socket.write(`${head.join("\r\n")}\r\n\r\n`);
    socket.write(question);
    return socket;
  }
  const slots = () => gateway.service.parts.slots;
  const closed = (socket: Socket) =>
    new Promise<void>((resolve) => socket.once("close", () => resolve()));

  it("is disconnected and releases its process if it reads nothing or too little", async () => {
    for (const bite of [0, 2_000]) {
      const socket = cloning(`have ${"1".repeat(39)}${bite === 0 ? 0 : 1}\n`);
      const over = closed(socket);
      await until("git runs", () => slots().running === 1);
      const reading = setInterval(() => bite > 0 && socket.read(bite), 50);
      try {
        await until("the process has ended", () => slots().running === 0, 60_000);
      } finally {
        clearInterval(reading);
      }
      socket.resume();
      await over;
      expect(socket.bytesRead).to.be.below(LARGE);
    }
  });

  it("is disconnected also from a cached response, which needs no process", async () => {
    const work = await world.checkout();
    await work.git("fetch", "-q", gateway.remote(repo), "main");
    const first = cloning();
    first.resume();
    await until("it is kept", () => slots().running === 0 && first.bytesRead > LARGE, 60_000);
    first.destroy();
    const second = cloning();
    const over = closed(second);
    // Starts to read from the connection, but takes no more than its buffer holds.
    second.read(0);
    await until("it has begun", () => second.bytesRead > 0);
    const before = performance.now();
    await until("nobody waits for it", () => performance.now() - before > 2 * PACE.stallMs);
    second.resume();
    await over;
    expect(second.bytesRead).to.be.below(LARGE);
    expect(slots().running).to.equal(0);
  });

  it("receives the whole clone if it reads at the minimum rate", async () => {
    const socket = cloning(`have ${"2".repeat(40)}\n`);
    const startedAt = performance.now();
    const reading = setInterval(() => socket.read(), 20);
    try {
      await until("all has come", () => socket.bytesRead > LARGE, 60_000);
    } finally {
      clearInterval(reading);
    }
    expect(performance.now() - startedAt).to.be.above(PACE.stallMs);
    socket.destroy();
  });
});
