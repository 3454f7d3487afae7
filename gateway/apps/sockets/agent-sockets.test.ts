import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect } from "chai";
import express from "express";
import { pino } from "pino";
import { WebSocket } from "ws";
import { z } from "zod";
import type { ActorClient } from "../../../actors/runtime/calls/actor-client.ts";
import { type CallOwner, currentCallOwner } from "../../../actors/runtime/calls/call-places.ts";
import type { AnyActorDefinition } from "../../../actors/runtime/kinds/define-actor.ts";
import { agent, appEntry } from "../../../schemas/apps/agent.ts";
import type { AppRequest } from "../../../schemas/apps/app-exchange.ts";
import { SOCKETS_UNREAD_BYTES_MAX } from "../../../schemas/apps/limits.ts";
import { ActorError, type ErrorCode } from "../../../schemas/errors.ts";
import { listen } from "../../../scripts/testing/loopback-server.ts";
import { memoryActors } from "../../../scripts/testing/memory-actors.ts";
import { until } from "../../../scripts/testing/until.ts";
import { clientAddress } from "../../http/client-address.ts";
import { socketRouter } from "../../http/socket-router.ts";
import { SOCKET_BATCHES_MAX } from "./agent-socket.ts";
import { AgentSockets, SOCKET_CHECKS_MAX } from "./agent-sockets.ts";

const ACCOUNT = "a".repeat(32);
const OTHER_ACCOUNT = "b".repeat(32);
/** Long enough for a client to answer a ping on a busy machine. */
const PING_MS = 500;

setFlagsFromString("--expose-gc");
const collectGarbage: () => void = runInNewContext("gc");

interface ReceivedMessage {
  message: string;
  number: number;
  frames: number;
}

interface WorldOptions {
  socketsMax?: number;
  unreadBytesMax?: number;
  trustProxy?: string;
}

/** Starts the sockets of a gateway, an app that accepts every socket, and an agent that the test controls. */
async function world({
  socketsMax = 1_000,
  unreadBytesMax = SOCKETS_UNREAD_BYTES_MAX,
  trustProxy,
}: WorldOptions = {}) {
  const told: ReceivedMessage[] = [];
  const asked: string[] = [];
  const owners = new Set<string>();
  /** The opening requests of sockets, as long as anything references them. */
  const begun: WeakRef<object>[] = [];
  /** The clients' addresses as the app sees them. */
  const clients: (string | undefined)[] = [];
  const gave = { up: new Set<number>() };
  const at: Record<string, () => Promise<void>> = {};
  /** The app that has the name now, and the checks whether it is still the same. */
  const app: { id: string | undefined; checks: number } = { id: "1".repeat(32), checks: 0 };
  const entry = {
    ...{ contract: appEntry, state: z.object({}), initial: {}, durable: true },
    handlers: {
      upgrade(state: object, request: AppRequest) {
        clients.push(new Map(request.headers).get("x-forwarded-for"));
        return { state, reply: { accept: { className: "Room", name: "one" }, request } };
      },
    },
  } as unknown as AnyActorDefinition;
  interface Said {
    connection: { number: number };
    frames?: unknown[];
  }
  const hear = (message: string) => (state: object, said: Said) => {
    const { number } = said.connection;
    told.push({ message, number, frames: said.frames?.length ?? 0 });
    if (gave.up.has(number)) throw new ActorError("conflict", "Cannot hear: no such socket");
    return { state, reply: {} };
  };
  const room = {
    ...{ contract: agent, state: z.object({}), initial: {}, durable: true },
    handlers: Object.fromEntries(
      ["connect", "frames", "disconnect"].map((message) => [message, hear(message)]),
    ),
  } as unknown as AnyActorDefinition;
  const actors = memoryActors({ actors: [entry, room] });
  /** Calls of the agent wait, as if the agent were busy or moving to another host. */
  const call = async (...[contract, key, message, ...rest]: Parameters<ActorClient["call"]>) => {
    if (message === "getId") {
      app.checks += 1;
      await at.getId?.();
      return { id: app.id };
    }
    asked.push(message);
    owners.add(JSON.stringify(currentCallOwner()));
    await at[message]?.();
    if (message === "connect") begun.push(new WeakRef((rest[0] as { request: object }).request));
    return actors.call(contract, key, message, ...rest);
  };
  const returned: (() => void)[] = [];
  const application = express();
  if (trustProxy) application.set("trust proxy", trustProxy);
  const sockets = new AgentSockets({
    actors: { ...actors, call: call as ActorClient["call"] },
    answerOn: () => () => {},
    onReconnect(listener) {
      returned.push(listener);
      return () => {};
    },
    addresses: { publicUrl: "http://127.0.0.1", appsDomain: "apps.localhost" },
    clientOf: (request) => clientAddress(application, request),
    logger: pino({ level: "silent" }),
    pingMs: PING_MS,
    unreadBytesMax,
  });
  const router = socketRouter([sockets], { socketsMax });
  const upgrade = (request: IncomingMessage, ...rest: [Duplex, Buffer]) => {
    begun.push(new WeakRef(request));
    router.upgrade(request, ...rest);
  };
  const server = await listen(createServer().on("upgrade", upgrade), "127.0.0.2");
  const urlOf = (account: string) =>
    `ws://${server.address}:${server.port}/apps/${account}/hooks/agents/room/one`;
  return {
    ...{ told, gave, at, app, asked, owners, begun, clients, urlOf },
    /** Resolves when this gateway knows that its sockets are closed. */
    ended: () => router.close(),
    close: () => sockets.close(),
    comeBack: () => {
      for (const listener of returned) listener();
    },
    /** `pongs`: whether the client answers pings. Ordinary clients always do. */
    async open({ pongs = true, account = ACCOUNT, headers = {} } = {}) {
      const socket = new WebSocket(urlOf(account), { autoPong: pongs, headers });
      let pings = 0;
      let ended = 0;
      socket.on("ping", () => {
        pings += 1;
      });
      socket.once("close", (code) => {
        ended = code;
      });
      await once(socket, "open");
      return { socket, pings: () => pings, ended: () => ended };
    },
    async [Symbol.asyncDispose]() {
      router.terminate();
      await server.close();
      await sockets.close();
    },
  };
}

describe("AgentSockets", function () {
  this.timeout(300_000);

  it("asks whether clients are there, and ends those that say nothing twice", async () => {
    await using w = await world();
    const [alive, dead] = [await w.open(), await w.open({ pongs: false })];
    await until("it has ended", () => dead.ended() !== 0);
    await until("the other is asked again", () => alive.pings() > 5);
    expect(alive.ended()).to.equal(0);
    expect(dead.pings()).to.be.at.most(2);
  });

  it("are closed after their app was deleted, also if their clients only listen, without a message to their agents", async () => {
    await using w = await world();
    const COUNT = 40;
    const clients: Awaited<ReturnType<typeof w.open>>[] = [];
    for (let i = 0; i < COUNT; i++) clients.push(await w.open());
    await until("the agent knows all", () => w.told.length === COUNT);
    w.app.id = undefined;
    await until("all are closed", () => clients.every(({ ended }) => ended() !== 0));
    expect(new Set(clients.map(({ ended }) => ended()))).to.deep.equal(new Set([4404]));
    await w.ended();
    await w.close();
    expect(w.asked.filter((message) => message === "disconnect")).to.deep.equal([]);
  });

  it("are closed after another app took the name of theirs, which keeps its own sockets", async () => {
    await using w = await world();
    const checked = async () => {
      const { checks } = w.app;
      await until("the app is checked twice", () => w.app.checks >= checks + 2);
    };
    const first = await w.open();
    await checked();
    expect(first.ended()).to.equal(0);
    w.app.id = "2".repeat(32);
    const second = await w.open();
    await until("it is closed", () => first.ended() !== 0);
    expect(first.ended()).to.equal(4404);
    await checked();
    expect(second.ended()).to.equal(0);
  });

  it("stay open while the host of their app is of an earlier version", async () => {
    await using w = await world();
    w.app.id = undefined;
    w.at.getId = async () => {
      throw new ActorError("invalid_request", 'Cannot handle "getId"');
    };
    const { ended } = await w.open();
    await until("the app is checked three times", () => w.app.checks >= 3);
    expect(ended()).to.equal(0);
  });

  it("count all their calls for the visitors of the account", async () => {
    await using w = await world();
    const { socket } = await w.open();
    socket.send("hello");
    await until("the agent gets the frames", () => w.asked.includes("frames"));
    socket.close();
    await until("it has ended", () => w.asked.includes("disconnect"));
    const owner: CallOwner = { accountId: ACCOUNT, isVisitor: true };
    expect([...w.owners]).to.deep.equal([JSON.stringify(owner)]);
  });

  it("does not ping a socket that is not read, and treats it as alive until then", async () => {
    await using w = await world();
    const moved = Promise.withResolvers<void>();
    let asked = 0;
    w.at.connect = () => {
      asked += 1;
      return moved.promise;
    };
    // The gateway reads nothing from the socket before the agent has accepted it, so it would not read a pong.
    const waiting = await w.open();
    await until("its agent is asked", () => asked === 1);
    delete w.at.connect;
    const watch = await w.open();
    await until("the other was asked five times", () => watch.pings() > 5);
    expect([waiting.pings(), waiting.ended()]).to.deep.equal([0, 0]);
    moved.resolve();
    await until("it is asked like the other", () => waiting.pings() > 3);
    expect(waiting.ended()).to.equal(0);
  });

  it("notifies an agent of a socket that ended while the agent moved: first of its begin, then of its end, before close() resolves", async () => {
    await using w = await world();
    const moved = Promise.withResolvers<void>();
    w.at.connect = () => moved.promise;
    const { socket } = await w.open();
    await until("its agent is asked", () => w.asked.includes("connect"));
    socket.terminate();
    await w.ended();
    const closed = w.close();
    moved.resolve();
    await closed;
    expect(w.told.map(({ message }) => message)).to.deep.equal(["connect", "disconnect"]);
  });

  it("keeps nothing of the request that a socket began with", async () => {
    await using w = await world();
    const { ended } = await w.open();
    await until("its agent has it", () => w.told.length === 1);
    await until("all of it is gone", () => {
      collectGarbage();
      return w.begun.every((one) => one.deref() === undefined);
    });
    expect([w.begun.length, ended()]).to.deep.equal([2, 0]);
  });

  it("refuses a socket of an account that has its share, without a request to the app, and accepts another account's", async () => {
    await using w = await world({ socketsMax: 4 });
    for (let socket = 0; socket < 3; socket += 1) await w.open();
    const [, { statusCode }] = await once(new WebSocket(w.urlOf(ACCOUNT)), "unexpected-response");
    expect(statusCode).to.equal(503);
    expect(w.asked.filter((message) => message === "upgrade")).to.have.length(3);
    await w.open({ account: OTHER_ACCOUNT });
  });

  it("asks each agent after an absence of the bus whether it still has its sockets, some at a time, and closes the others", async () => {
    await using w = await world();
    const COUNT = SOCKET_CHECKS_MAX + 5;
    const clients: Awaited<ReturnType<typeof w.open>>[] = [];
    for (let i = 0; i < COUNT; i++) clients.push(await w.open());
    await until("all are taken", () => w.told.length === COUNT);
    const lost = w.told[3]?.number ?? 0;
    w.gave.up.add(lost);
    w.told.length = 0;
    const slow = Promise.withResolvers<void>();
    let asked = 0;
    w.at.frames = () => {
      asked += 1;
      return slow.promise;
    };
    w.comeBack();
    await until("as many are asked as may be at once", () => asked === SOCKET_CHECKS_MAX);
    await new Promise(setImmediate);
    expect(asked).to.equal(SOCKET_CHECKS_MAX);
    slow.resolve();
    await until("all are asked", () => w.told.filter(({ frames }) => frames === 0).length >= COUNT);
    expect(new Set(w.told.map(({ number }) => number)).size).to.equal(COUNT);
    await until("one is closed", () => clients.some(({ ended }) => ended() !== 0));
    const codes = clients.map(({ ended }) => ended()).filter((code) => code !== 0);
    expect(codes).to.deep.equal([1012]);
  });

  it("closes a socket with a reason that distinguishes faults of the agent's code from those of the platform", async () => {
    const closeOf = async (code: ErrorCode) => {
      await using w = await world();
      w.at.connect = () => Promise.reject(new ActorError(code, "TypeError: a secret"));
      const { socket } = await w.open();
      const [number, reason] = await once(socket, "close");
      return [number, String(reason)];
    };
    const closes = await Promise.all([
      closeOf("app_failed"),
      closeOf("app_broken"),
      closeOf("deadline_exceeded"),
    ]);
    expect(closes).to.deep.equal([
      [1011, "The agent's code failed"],
      [1011, "The agent's app does not start"],
      [1011, "The agent does not answer"],
    ]);
  });

  it("passes on the client's address that a trusted proxy reports, and that of no other", async () => {
    const headers = { "X-Forwarded-For": "203.0.113.9, 198.51.100.7" };
    const seenWith = async (trustProxy?: string) => {
      await using w = await world(trustProxy === undefined ? {} : { trustProxy });
      await w.open({ headers });
      return w.clients;
    };
    expect(await seenWith()).to.deep.equal(["127.0.0.1"]);
    expect(await seenWith("192.0.2.0/24")).to.deep.equal(["127.0.0.1"]);
    expect(await seenWith("loopback")).to.deep.equal(["198.51.100.7"]);
    expect(await seenWith("loopback,198.51.100.7")).to.deep.equal(["203.0.113.9"]);
  });

  it("delivers a client's frames beside slow batches, up to SOCKET_BATCHES_MAX of them", async () => {
    await using w = await world();
    const { socket, ended } = await w.open();
    await until("its agent has it", () => w.told.length === 1);
    const slow = Promise.withResolvers<void>();
    let asked = 0;
    w.at.frames = () => {
      asked += 1;
      return slow.promise;
    };
    for (let batch = 1; batch <= SOCKET_BATCHES_MAX; batch++) {
      socket.send(`call ${batch}`);
      await until(`batch ${batch} is brought`, () => asked === batch);
    }
    for (const text of ["one", "too many"]) socket.send(text);
    // The pong proves that the gateway has read both frames.
    socket.ping();
    await once(socket, "pong");
    expect(asked).to.equal(SOCKET_BATCHES_MAX);
    slow.resolve();
    const heard = () => w.told.reduce((sum, { frames }) => sum + frames, 0);
    await until("all are heard", () => heard() === SOCKET_BATCHES_MAX + 2);
    expect(ended()).to.equal(0);
  });

  it("closes the socket whose frames wait for longest when an account's frames are too many, and no other account's", async () => {
    const FRAME = "x".repeat(200_000);
    await using w = await world({ unreadBytesMax: 2.5 * FRAME.length });
    const slow = Promise.withResolvers<void>();
    w.at.frames = () => slow.promise;
    let asked = 0;
    const send = async (account: string) => {
      const { socket, ended } = await w.open({ account });
      socket.send(FRAME);
      asked += 1;
      await until(
        "its frame waits",
        () => w.asked.filter((one) => one === "frames").length === asked,
      );
      return { socket, ended };
    };
    const other = await send(OTHER_ACCOUNT);
    const [first, second] = [await send(ACCOUNT), await send(ACCOUNT)];
    expect(first.ended()).to.equal(0);
    const third = await send(ACCOUNT);
    await until("the first is closed", () => first.ended() !== 0);
    expect(first.ended()).to.equal(1013);
    expect([other, second, third].map(({ ended }) => ended())).to.deep.equal([0, 0, 0]);
    slow.resolve();
    const heard = () => w.told.reduce((sum, { frames }) => sum + frames, 0);
    await until("the others are heard", () => heard() >= 3);
    // What the agents have handled counts no more.
    for (let sent = 0; sent < 5; sent++) second.socket.send(FRAME);
    await until("these too", () => heard() >= 8);
    expect(second.ended()).to.equal(0);
  });
});
