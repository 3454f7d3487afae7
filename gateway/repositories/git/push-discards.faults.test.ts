import { request as ask, type ClientRequest } from "node:http";
import { expect } from "chai";
import { ZERO_ID } from "../../../schemas/repositories/git-names.ts";
import { until } from "../../../scripts/testing/until.ts";
import { ACCOUNT, type GitGateway, GitWorld } from "../testing/git-world.ts";
import { FLUSH, pktLine } from "./pkt-line.ts";
import { DISCARD_LIMITS, PushDiscards } from "./push-discards.ts";
import { PUSH_AHEAD_BYTES } from "./receive-pack.ts";

const LIMITS = { bytesMax: 2_000_000, wholeBytesMax: 6_000_000, wholePerAccount: 2 };
/** More bytes than the connection and the gateway may hold unread when the push is refused. */
const IN_FLIGHT_BYTES = 500_000;
const BELOW = LIMITS.bytesMax - IN_FLIGHT_BYTES;
const PAST = LIMITS.bytesMax + IN_FLIGHT_BYTES;

describe("PushDiscards", () => {
  it("has places for some pushes of each account, and for another one when one of them ends", () => {
    const discards = new PushDiscards();
    const { wholePerAccount: count, wholeBytesMax } = DISCARD_LIMITS;
    const places = Array.from({ length: count }, () => discards.enter("a"));
    for (const place of places) expect(place?.bytesMax).to.equal(wholeBytesMax);
    expect(discards.enter("a")).to.equal(undefined);
    expect(discards.enter("b")).to.not.equal(undefined);
    places[0]?.[Symbol.dispose]();
    expect(discards.enter("a")).to.not.equal(undefined);
    expect(discards.enter("a")).to.equal(undefined);
  });
});

describe("the rest of a refused push", function () {
  this.timeout(300_000);
  let world: GitWorld;
  let gateway: GitGateway;
  before(async () => {
    world = await GitWorld.start();
    gateway = await world.gateway({ discards: LIMITS });
  });
  after(() => world[Symbol.asyncDispose]());
  afterEach(() => expect(gateway.faults).to.deep.equal([]));

  /** A push whose pack has begun, and which the gateway has refused. */
  interface Refused {
    request: ClientRequest;
    headBytes: number;
    /** The response so far. */
    said: string;
    isAnswered: boolean;
    isClosed: boolean;
  }

  /** Sends the start of a push. Resolves when the client has received the message of the refusal. */
  async function refused(by: GitGateway, reason: string, tags = 0): Promise<Refused> {
    const repo = await world.repo();
    const request = ask(`${by.url}${repo.path}/git-receive-pack`, {
      method: "POST",
      headers: {
        Authorization: `Basic ${Buffer.from(`x:${repo.token}`).toString("base64")}`,
        "Content-Type": "application/x-git-receive-pack-request",
      },
    });
    const push = { request, headBytes: 0, said: "", isAnswered: false, isClosed: false };
    request.on("error", () => {});
    request.once("close", () => {
      push.isClosed = true;
    });
    request.once("response", (response) => {
      response.setEncoding("latin1").on("data", (text: string) => {
        push.said += text;
      });
      response.on("error", () => {});
      response.once("end", () => {
        push.isAnswered = true;
      });
    });
    const capabilities = "report-status side-band-64k";
    const command = `${ZERO_ID} ${"a".repeat(40)} refs/`;
    const more = Array.from({ length: tags }, (_, number) => pktLine(`${command}tags/${number}`));
    const head = Buffer.concat([pktLine(`${command}heads/main\0${capabilities}\n`), ...more]);
    push.headBytes = head.length;
    request.write(head);
    request.write(FLUSH);
    request.write(Buffer.from("PACK\0\0\0\u0002\0\0\0\u0001", "latin1"));
    request.write(Buffer.alloc(PUSH_AHEAD_BYTES));
    await until("the message", () => {
      if (push.said.includes(`\u0002${reason}`)) return true;
      // The gateway learns that git has ended when it passes on the next bytes.
      request.write(Buffer.alloc(100));
      return false;
    });
    return push;
  }

  /** The gateway shows the words of git, which cannot read the pack. */
  const BROKEN = "";
  const sent = (request: ClientRequest, bytes: number) =>
    new Promise((resolve) => request.write(Buffer.alloc(bytes), resolve));
  const cutOff = (push: Refused) => until("the connection is closed", () => push.isClosed);

  async function answered(push: Refused): Promise<void> {
    push.request.end();
    await until("the report", () => push.isAnswered);
    expect(push.said).to.contain("ng refs/heads/main");
  }

  it("is read before the response ends, for proxies that close the connection then", async () => {
    const push = await refused(gateway, BROKEN);
    await sent(push.request, BELOW);
    expect([push.isAnswered, push.said.includes("refs/heads/main")]).to.deep.equal([false, false]);
    await answered(push);
  });

  it("is read past the limit if the account has a place, and only up to it otherwise", async () => {
    const { pushDiscards } = gateway.service.parts;
    using _other = pushDiscards.enter(ACCOUNT);
    const push = await refused(gateway, BROKEN);
    await sent(push.request, PAST);
    // Both places are taken now.
    const late = await refused(gateway, BROKEN);
    void sent(late.request, PAST);
    await cutOff(late);
    const small = await refused(gateway, BROKEN);
    await sent(small.request, BELOW);
    await answered(small);
    await answered(push);
    const next = await refused(gateway, BROKEN);
    await sent(next.request, PAST);
    await answered(next);
  });

  it("counts its commands until the response ends, because the report needs them", async () => {
    const { bodies, pushDiscards } = gateway.service.parts;
    await until("no earlier push counts", () => bodies.bytes === 0);
    using _other = pushDiscards.enter(ACCOUNT);
    const push = await refused(gateway, BROKEN, 1_000);
    await sent(push.request, PAST);
    await until("its rest is discarded", () => {
      using place = pushDiscards.enter(ACCOUNT);
      return place === undefined;
    });
    expect(bodies.bytes).to.be.greaterThan(push.headBytes);
    await answered(push);
    await until("the bytes are free", () => bodies.bytes === 0);
  });

  it("is not read past the size of the largest pack", async () => {
    const push = await refused(gateway, BROKEN);
    void sent(push.request, LIMITS.wholeBytesMax + IN_FLIGHT_BYTES);
    await cutOff(push);
  });

  it("is read only up to the limit if the gateway is overloaded", async () => {
    const busy = await world.gateway({ bodiesBytesMax: 100_000, discards: LIMITS });
    using others = busy.service.parts.bodies.open([ACCOUNT]);
    others.take(90_000);
    const reason = "Cannot read body: too many large requests are in progress";
    const small = await refused(busy, reason);
    await sent(small.request, BELOW - PUSH_AHEAD_BYTES);
    await answered(small);
    const large = await refused(busy, reason);
    void sent(large.request, PAST);
    await cutOff(large);
    expect(busy.faults).to.deep.equal([]);
  });

  it("is not read any further when the gateway stops", async () => {
    const stopping = await world.gateway({ discards: LIMITS });
    const push = await refused(stopping, BROKEN);
    await sent(push.request, BELOW);
    stopping.service.leave();
    await cutOff(push);
    expect(push.said).to.contain("ng refs/heads/main");
    const later = await refused(stopping, BROKEN);
    await cutOff(later);
    expect(later.said).to.contain("ng refs/heads/main");
  });
});
