import { once } from "node:events";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { createGzip } from "node:zlib";
import { expect } from "chai";
import { agent } from "../../../../schemas/apps/agent.ts";
import { APP_ANSWER_BYTES_MAX } from "../../../../schemas/apps/limits.ts";
import { ActorError } from "../../../../schemas/errors.ts";
import {
  type AgentWorld,
  keyOf,
  startAgentWorld,
} from "../../../../scripts/testing/agent-world.ts";
import { until } from "../../../../scripts/testing/until.ts";
import { createAddressPolicy } from "../../../egress/address-policy.ts";
import { createEgressGuard } from "../../../egress/egress-guard.ts";
import { APP_ARRIVING_BYTES_MAX, Arriving } from "../app-process/arriving.ts";

const CODE = `
import { Agent } from "trunkline/agents";
const outcome = (url) => fetch(url).then(
  async (answer) => answer.status + " " + (await answer.text()).slice(0, 20),
  (error) => error.cause?.message ?? error.message,
);
export class Fetcher extends Agent {
  async onRequest(request) {
    return Response.json(await Promise.all((await request.json()).map(outcome)));
  }
}
export default {};
`;

/**
 * Apps may reach the address OUTSIDE, as if it were public. INSIDE is an address of the machine itself, which apps
 * must not reach.
 */
const OUTSIDE = "127.0.0.2";
const INSIDE = "127.0.0.1";

describe("fetch of a hostile app", function () {
  this.timeout(120_000);
  let world: AgentWorld;
  let answer: RequestListener;
  let outside: Server;
  let inside: Server;
  let asked = 0;
  const addresses: string[][] = [];
  const portOf = (server: Server) => (server.address() as AddressInfo).port;
  const url = (path = "/", host = OUTSIDE) => `http://${host}:${portOf(outside)}${path}`;

  before(async () => {
    world = await startAgentWorld();
    await world.host("first", {
      guard: createEgressGuard({
        policy: createAddressPolicy({ allow: [`${OUTSIDE}/32`] }),
        lookup: async () => addresses.shift() ?? [INSIDE],
      }),
    });
    await world.deploy("hostile", CODE, {
      agents: [{ binding: "Fetcher", class_name: "Fetcher" }],
    });
    // Both servers use the same port, so that they differ in the address only. The loop finds a port that is free at
    // both addresses.
    await until("one port is free at both", async () => {
      outside = createServer((request, response) => answer(request, response));
      inside = createServer((_request, response) => {
        asked += 1;
        response.end("inside");
      });
      await once(outside.listen(0, OUTSIDE), "listening");
      try {
        await once(inside.listen(portOf(outside), INSIDE), "listening");
        return true;
      } catch {
        outside.close();
        return false;
      }
    });
  });
  after(async () => {
    await world[Symbol.asyncDispose]();
    for (const server of [outside, inside]) {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    }
  });

  const outcomes = async (...urls: string[]): Promise<string[]> => {
    const request = {
      method: "POST",
      url: "http://app/",
      headers: [],
      body: { text: JSON.stringify(urls) },
    };
    const told = await world.client.call(
      agent,
      keyOf("hostile", "Fetcher", "a"),
      "request",
      request,
      {
        deadlineMs: 50_000,
      },
    );
    return JSON.parse(told.body && "text" in told.body ? told.body.text : "[]");
  };

  it("follows no redirect to an inner address, however it is written", async () => {
    const port = portOf(outside);
    const targets = [
      `http://${INSIDE}:${port}/`,
      `http://localhost:${port}/`,
      `http://2130706433:${port}/`,
      `http://0x7f.1:${port}/`,
      `http://0.0.0.0:${port}/`,
      `http://[::1]:${port}/`,
      `http://[::ffff:${INSIDE}]:${port}/`,
      "http://169.254.169.254/latest/meta-data/",
      "http://10.0.0.1/",
      "http://metadata.google.internal/",
      "file:///etc/passwd",
      "data:text/plain,inside",
    ];
    answer = ({ url = "" }, response) => {
      const target = targets[Number(url.slice(1))] ?? "";
      response.writeHead(302, { location: target }).end();
    };
    const told = await outcomes(...targets.map((_, index) => url(`/${index}`)));
    for (const [index, text] of told.entries()) expect(text, targets[index]).to.match(/^Cannot/);
    expect(asked).to.equal(0);
  });

  it("connects to the checked address, even if the name resolves to another one then", async () => {
    answer = (_request, response) => response.writeHead(200, { connection: "close" }).end("out");
    addresses.push([OUTSIDE]);
    expect(await outcomes(url("/", "rebinding.test"))).to.deep.equal(["200 out"]);
    const [again] = await outcomes(url("/", "inside.test"));
    expect(again).to.include("its address is not one this service fetches");
    expect(asked).to.equal(0);
  });

  it("ends although an answer never ends, packed or not", async () => {
    const zeros = function* () {
      for (;;) yield Buffer.alloc(1_000_000);
    };
    answer = ({ url = "" }, response) => {
      if (url === "/plain") Readable.from(zeros()).pipe(response);
      else {
        response.setHeader("content-encoding", "gzip");
        Readable.from(zeros()).pipe(createGzip()).pipe(response);
      }
    };
    const told = await outcomes(url("/plain"), url("/packed"));
    const text = `the answer is larger than ${APP_ANSWER_BYTES_MAX} bytes`;
    for (const one of told) expect(one).to.include(text);
  });

  it("has so much on its way and no more: others are refused, and its host takes no harm", async () => {
    const most = Buffer.alloc(APP_ANSWER_BYTES_MAX, "x");
    const waiting: (() => void)[] = [];
    answer = (_request, response) => {
      // Each response lacks its last byte until all requests have arrived.
      response.write(most.subarray(1));
      waiting.push(() => response.end("x"));
      if (waiting.length === COUNT) for (const end of waiting) end();
    };
    const COUNT = 20;
    const told = await outcomes(...Array.from({ length: COUNT }, () => url()));
    const refused = told.filter((one) => one.includes(`${APP_ARRIVING_BYTES_MAX} bytes are on`));
    const taken = told.filter((one) => one.startsWith("200 x"));
    expect(refused.length + taken.length).to.equal(COUNT);
    expect(taken.length).to.be.at.most(Math.floor(APP_ARRIVING_BYTES_MAX / APP_ANSWER_BYTES_MAX));
    expect(refused.length).to.be.greaterThan(0);
    answer = (_request, response) => response.end("well");
    expect(await outcomes(url())).to.deep.equal(["200 well"]);
  });

  it("Arriving takes APP_ARRIVING_BYTES_MAX and not one more", () => {
    const arriving = new Arriving();
    arriving.add(APP_ARRIVING_BYTES_MAX);
    expect(() => arriving.add(1)).to.throw(ActorError, "Cannot take more");
    arriving.remove(1);
    arriving.add(1);
  });
});
