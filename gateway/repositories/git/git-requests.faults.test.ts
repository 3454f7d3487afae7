import { randomBytes } from "node:crypto";
import { connect } from "node:net";
import { gzipSync } from "node:zlib";
import { expect } from "chai";
import { SMALL_BODY_BYTES_MAX } from "../../../schemas/memory-limits.ts";
import { ZERO_ID } from "../../../schemas/repositories/git-names.ts";
import { until } from "../../../scripts/testing/until.ts";
import { ACCOUNT, type GitGateway, GitWorld, type TestRepo } from "../testing/git-world.ts";
import { post, pushBody } from "../testing/raw-push.ts";
import { PUSH_AHEAD_BYTES } from "./receive-pack.ts";

/** The bytes of requests that one account may hold: a push that waits for a slot, and half a MiB. */
const SHARE = 1.5 * PUSH_AHEAD_BYTES;

describe("the memory for requests of git", function () {
  this.timeout(240_000);
  let world: GitWorld;
  let gateway: GitGateway;
  let repo: TestRepo;
  before(async () => {
    world = await GitWorld.start();
    gateway = await world.gateway({ bodiesBytesMax: 2 * SHARE });
    repo = await world.repo();
    const work = await world.checkout();
    await work.commit("first");
    await work.git("push", "-q", gateway.remote(repo), "main");
  });
  after(() => world[Symbol.asyncDispose]());

  const held = () => gateway.service.parts.bodies.bytes;
  const gzip = { "Content-Encoding": "gzip" };

  /** Sends a body except for its last bytes. */
  function unfinished(service: string, body: Uint8Array, headers: string[] = []) {
    const socket = connect(Number(new URL(gateway.url).port), "127.0.0.1");
    socket.on("error", () => {});
    const head = [
      `POST ${repo.path}/${service} HTTP/1.1`,
      "Host: x",
      `Authorization: Bearer ${repo.token}`,
      `Content-Type: application/x-${service}-request`,
      `Content-Length: ${body.length}`,
      ...headers,
    ];
    socket.write(`${head.join("\r\n")}\r\n\r\n`);
    socket.write(body.subarray(0, -4));
    return socket;
  }
  /** Clones the repository: its requests are small. */
  const clones = async () => {
    const work = await world.checkout();
    await work.git("fetch", "-q", gateway.remote(repo), "main");
  };

  it("counts the decompressed bytes of fetches, up to an account's share and not one more", async () => {
    const packed = (bytes: number) => new Uint8Array(gzipSync(Buffer.alloc(bytes, "0")));
    const sizes = [PUSH_AHEAD_BYTES, SHARE - PUSH_AHEAD_BYTES];
    const sockets = sizes.map((bytes) => {
      expect(packed(bytes).length).to.be.below(10_000);
      return unfinished("git-upload-pack", packed(bytes), ["Content-Encoding: gzip"]);
    });
    await until("the requests are held", () => held() === SHARE);
    const body = packed(SMALL_BODY_BYTES_MAX + 1);
    const refused = await post(gateway, repo, "git-upload-pack", body, gzip);
    expect(refused.status).to.equal(503);
    expect(Number(refused.headers.get("retry-after"))).to.be.above(0);
    expect(await refused.text()).to.contain("try again");
    await clones();
    for (const socket of sockets) socket.destroy();
    await until("the requests are released", () => held() === 0);
    expect(gateway.faults).to.deep.equal([]);
  });

  it("counts a push until it has a slot, and its pack no more from then on", async () => {
    const command = { old: ZERO_ID, value: "1".repeat(40), ref: "refs/heads/x" };
    const bytes = PUSH_AHEAD_BYTES - 1_000;
    const body = pushBody([command], Buffer.alloc(bytes));
    const socket = unfinished("git-receive-pack", body);
    await until("the push is held", () => held() === body.length - 4);
    const refused = await post(gateway, repo, "git-receive-pack", body);
    expect(refused.status).to.equal(503);
    expect(Number(refused.headers.get("retry-after"))).to.be.above(0);
    await clones();
    socket.destroy();
    await until("the push is released", () => held() === 0);

    using others = gateway.service.parts.bodies.open([ACCOUNT]);
    others.take(SMALL_BODY_BYTES_MAX + 1);
    const work = await world.checkout();
    await work.commit(randomBytes(2 * SHARE).toString("base64"));
    await work.git("push", "-q", gateway.remote(repo), "HEAD:refs/heads/large");
    await until("the push is released", () => held() === SMALL_BODY_BYTES_MAX + 1);
    expect(gateway.faults).to.deep.equal([]);
  });
});
