import { connect as connectTcp } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import {
  ClosedConnectionError,
  headers,
  PermissionViolationError,
  type RequestError,
  TimeoutError,
} from "@nats-io/transport-node";
import { expect } from "chai";
import { BUS_CHANGE_MS } from "../../../schemas/limits.ts";
import { startTcpServer } from "../../../scripts/testing/loopback-server.ts";
import { startCluster, startNats } from "../../../scripts/testing/nats-server.ts";
import { stopProcess } from "../../../scripts/testing/process-children.ts";
import { until } from "../../../scripts/testing/until.ts";
import { Bus, type ReceivedMessage } from "./bus.ts";

/** More refusals than the client library accepts by default: it stops at the second. */
const REFUSALS = 3;

describe("Bus", function () {
  this.timeout(180_000);

  it("connect() says in one line which servers it tried, without the password", async () => {
    await using nats = await startNats();
    const url = nats.url.replace(/:[^:@]*@/, ":wrong@");
    const failure = await Bus.connect({ url, name: "test" }).catch((error: unknown) => error);
    expect(failure).to.have.property(
      "message",
      `Cannot connect to the bus at nats://127.0.0.1:${nats.port}: the servers refuse this user: expected a user and password in TRUNKLINE_NATS_URL, or TRUNKLINE_NATS_NKEYS, that they know`,
    );
  });

  it("connect() to a cluster that refuses its password tries each server once", async () => {
    const many = Promise.withResolvers<string>();
    let refusals = 0;
    await using cluster = await startCluster(3, "", (line) => {
      if (line.includes("authentication error") && ++refusals > 6) many.resolve("tried again");
    });
    const url = cluster.urls.join(",").replace(/:[^:@]*@/g, ":wrong@");
    const refused = Bus.connect({ url, name: "test" }).then(
      () => "connected",
      (error: Error) => error.message,
    );
    expect(await Promise.race([refused, many.promise])).to.include("refuse this user");
  });

  it("connect() tries again when a server has closed the connection because the login came too late", async () => {
    await using nats = await startNats();
    let connections = 0;
    await using late = await startTcpServer((client) => {
      connections += 1;
      if (connections > 1) {
        const server = connectTcp(nats.port, "127.0.0.1");
        server.on("error", () => client.destroy());
        client.pipe(server).pipe(client);
        return;
      }
      client.write('INFO {"server_id":"LATE","version":"2.14.0","proto":1,"headers":true}\r\n');
      client.once("data", () => client.end("-ERR 'Authentication Timeout'\r\n"));
    }, "127.0.0.1");
    const bus = await Bus.connect({ url: nats.urlAt(late.port), name: "test" });
    expect(connections).to.equal(2);
    await bus.close();
  });

  it("reconnects to servers that were down at its first connection", async () => {
    await using cluster = await startCluster(3);
    const [first, second, third] = cluster.servers;
    if (!first || !second || !third)
      throw new Error("Cannot test: the cluster has no three servers");
    await Promise.all([first.kill(), second.kill()]);
    // The library tries the servers in random order, and each connection has its own.
    const connect = () => Bus.connect({ url: cluster.urls.join(","), name: "test" });
    const buses = await Promise.all(Array.from({ length: 12 }, connect));
    await Promise.all([first.start(), second.start()]);
    await third.kill();
    for (const bus of buses) {
      await until("the connection was away", () => bus.disconnections > 0);
      await until("the connection is back", () => bus.connected);
      await bus.close();
    }
  });

  it("reconnects to a bus that refused its password for a while", async () => {
    await using nats = await startNats();
    const bus = await Bus.connect({ url: nats.url, name: "test" });
    await nats.kill();
    const refused = Promise.withResolvers<void>();
    let refusals = 0;
    const onLine = (line: string) => {
      if (line.includes("authentication error") && ++refusals === REFUSALS) refused.resolve();
    };
    const other = await startNats({ port: nats.port, onLine });
    await refused.promise;
    expect(bus.connected).to.equal(false);
    await other.stop();
    await nats.start();
    await until("the connection is back", () => bus.connected);
    await bus.connection.flush();
    await bus.close();
  });

  it("isMissing is false while a connection moves to another server, and true when it stays away", async () => {
    await using nats = await startNats();
    const bus = await Bus.connect({ url: nats.url, name: "test" });
    const killedAt = performance.now();
    await nats.kill();
    await until("the connection is away", () => !bus.connected);
    // If the test was delayed before this line, the short disconnection has passed and cannot be observed.
    if (performance.now() - killedAt < BUS_CHANGE_MS) expect(bus.isMissing).to.equal(false);
    await until("it is missing", () => bus.isMissing);
    expect(performance.now() - killedAt).to.be.at.least(BUS_CHANGE_MS);
    await nats.start();
    await until("it is back", () => bus.connected);
    expect(bus.isMissing).to.equal(false);
    await bus.close();
  });

  it("hearBelow() hears other processes, and messages of its own process in order and without the server", async () => {
    await using nats = await startNats();
    const bus = await Bus.connect({ url: nats.url, name: "test" });
    const other = await Bus.connect({ url: nats.url, name: "other" });
    const heard: string[] = [];
    bus.hearBelow("_INBOX.one", (message) => {
      const code = message.headers?.get("Code") ?? "";
      heard.push(`${message.subject} ${message.string()} ${code}`);
    });
    await bus.connection.flush();
    const { outMsgs } = bus.connection.stats();
    const withCode = headers();
    withCode.set("Code", "7");
    bus.publish("_INBOX.one.1", "first");
    bus.publish("_INBOX.one.2", "second", { headers: withCode });
    expect(heard).to.deep.equal([]);
    await until("both are heard", () => heard.length === 2);
    expect(bus.connection.stats().outMsgs).to.equal(outMsgs);
    other.publish("_INBOX.one.3", "third");
    bus.publish("_INBOX.two.1", "nobody's");
    await until("the other is heard", () => heard.length === 3);
    expect(heard).to.deep.equal([
      "_INBOX.one.1 first ",
      "_INBOX.one.2 second 7",
      "_INBOX.one.3 third ",
    ]);
    await bus.close();
    await other.close();
  });

  it("hearBelow() passes on the reply subject, and leaves later messages to the server", async () => {
    await using nats = await startNats();
    const listeners = new Map();
    const bus = await Bus.connect({ url: nats.url, name: "test", listeners });
    const neighbour = await Bus.connect({ url: nats.url, name: "neighbour", listeners });
    const other = await Bus.connect({ url: nats.url, name: "other" });
    const heard: string[] = [];
    const hear = (who: string) => (message: ReceivedMessage) =>
      heard.push(`${who} ${message.subject} ${message.reply}`);
    const first = bus.hearBelow("shard.1", hear("first"));
    other.hearBelow("shard.1", hear("other"));
    await other.connection.flush();
    bus.publish("shard.1.counter.a.b", "", { reply: "_INBOX.one.1" });
    bus.publish("shard.12.counter.a", "");
    const { outMsgs } = neighbour.connection.stats();
    neighbour.publish("shard.1.counter.n", "");
    await until("both are heard here", () => heard.length === 2);
    expect(neighbour.connection.stats().outMsgs).to.equal(outMsgs);
    const second = bus.hearBelow("shard.1", hear("second"));
    first.close();
    bus.publish("shard.1.counter.b", "");
    await until("it is heard by the later one", () => heard.length === 3);
    await second.drain();
    bus.publish("shard.1.counter.c", "");
    await until("it is heard there", () => heard.length === 4);
    expect(heard).to.deep.equal([
      "first shard.1.counter.a.b _INBOX.one.1",
      "first shard.1.counter.n undefined",
      "second shard.1.counter.b undefined",
      "other shard.1.counter.c ",
    ]);
    neighbour.hearBelow("shard.2", hear("neighbour"));
    await neighbour.close();
    expect(() => neighbour.hearBelow("shard.3", hear("neighbour"))).to.throw(ClosedConnectionError);
    expect(listeners).to.have.length(0);
    await bus.close();
    await other.close();
  });

  it("hearBelow() leaves every message to the server while it has no listener here, and none while the bus is away", async () => {
    await using nats = await startNats();
    const listeners = new Map();
    const bus = await Bus.connect({ url: nats.url, name: "test", listeners });
    const other = await Bus.connect({ url: nats.url, name: "other" });
    const heard: string[] = [];
    const hear = (who: string) => (message: ReceivedMessage) =>
      heard.push(`${who} ${message.string()}`);
    let isHere = false;
    bus.hearBelow("shard.1", hear("here"), { isHere: () => isHere });
    other.hearBelow("shard.1", hear("there"));
    await other.connection.flush();
    bus.publish("shard.1.counter.a", "first");
    await until("both hear it", () => heard.length === 2);
    expect(heard).to.have.members(["here first", "there first"]);
    await nats.kill();
    await until("the bus is away", () => !bus.connected);
    bus.publish("shard.1.counter.a", "second");
    await nextTurn();
    expect(heard).to.have.length(2);
    isHere = true;
    bus.publish("shard.1.counter.a", "third");
    await nextTurn();
    expect(heard.slice(2)).to.deep.equal(["here third"]);
    await bus.close();
    await other.close();
  });

  it("hearBelow() reports that the server forbids the subscription", async () => {
    const permissions = `{ subscribe: { deny: "shard.1.>" } }`;
    const user = `{ user: trunkline, password: $TRUNKLINE_NATS_PASSWORD, permissions: ${permissions} }`;
    const config = `accounts { TRUNKLINE { jetstream: enabled, users: [${user}] }, SYS {} }`;
    await using nats = await startNats({ config });
    const bus = await Bus.connect({ url: nats.url, name: "test" });
    const failures: Error[] = [];
    bus.hearBelow("shard.1", () => {}, { failed: (error) => failures.push(error) });
    await until("it is said", () => failures.length > 0);
    expect(failures[0]).to.be.instanceOf(PermissionViolationError);
    await bus.close();
  });

  it("ask() avoids the server only if this process answers", async () => {
    await using nats = await startNats();
    const listeners = new Map();
    const bus = await Bus.connect({ url: nats.url, name: "test", listeners });
    const neighbour = await Bus.connect({ url: nats.url, name: "neighbour", listeners });
    const other = await Bus.connect({ url: nats.url, name: "other" });
    const hearing = neighbour.answerBelow("_INBOX.one", (question) => {
      const { subject, data } = question;
      if (subject.endsWith(".silent")) return;
      if (data.length === 0) question.respond();
      else question.respond(Buffer.from(`${subject} ${question.string()}`));
    });
    await neighbour.connection.flush();
    const text = async (by: Bus, step: string, question = "") =>
      Buffer.from(await by.ask(`_INBOX.one.${step}`, Buffer.from(question))).toString();
    const { outMsgs } = bus.connection.stats();
    expect(await text(bus, "a", "why")).to.equal("_INBOX.one.a why");
    expect(await text(bus, "b")).to.equal("");
    const silence = await text(bus, "silent").catch((error: unknown) => error);
    expect(silence).to.be.instanceOf(TimeoutError);
    expect(bus.connection.stats().outMsgs).to.equal(outMsgs);
    expect(await text(other, "c", "why")).to.equal("_INBOX.one.c why");
    const most = bus.connection.info?.max_payload ?? 0;
    expect(await text(bus, "d", "x".repeat(most - 100))).to.have.length(most - 100 + 13);
    expect(bus.connection.stats().outMsgs).to.equal(outMsgs);
    const large = await text(bus, "e", "x".repeat(most + 1)).catch((error: unknown) => error);
    expect(large)
      .to.be.instanceOf(Error)
      .with.property("message")
      .that.matches(/max_payload/);
    hearing.close();
    await neighbour.connection.flush();
    const left = await text(bus, "f").catch((error: unknown) => error);
    expect(left).to.satisfy((error: RequestError) => error.isNoResponders());
    for (const each of [bus, neighbour, other]) await each.close();
  });

  it("publishFirst() overtakes messages of the same turn, also within the process", async () => {
    await using nats = await startNats();
    const listeners = new Map();
    const bus = await Bus.connect({ url: nats.url, name: "test", listeners });
    const neighbour = await Bus.connect({ url: nats.url, name: "neighbour", listeners });
    const heard: string[] = [];
    neighbour.hearBelow("_INBOX.one", (message) => heard.push(message.string()));
    neighbour.connection.subscribe("live.a", {
      callback: (_, message) => void heard.push(message.string()),
    });
    await neighbour.connection.flush();
    bus.publish("_INBOX.one.1", "answer to an earlier call of this turn");
    bus.publishFirst("live.a", "change");
    bus.beforePublishing(() => bus.publish("_INBOX.one.2", "answer"));
    await nextTurn();
    expect(heard).to.deep.equal([]);
    await until("all are heard", () => heard.length === 3);
    expect(heard).to.deep.equal(["change", "answer to an earlier call of this turn", "answer"]);
    bus.publish("_INBOX.one.3", "of the next turn");
    await nextTurn();
    expect(heard.at(-1)).to.equal("of the next turn");
    await bus.close();
    await neighbour.close();
  });

  it("close() ends even if the bus goes away while it sends the rest", async () => {
    await using nats = await startNats();
    const bus = await Bus.connect({ url: nats.url, name: "test" });
    bus.hearBelow("shard.1", () => {});
    await bus.connection.flush();
    await stopProcess(nats.pid);
    const closing = bus.close();
    await until("it says the rest", () => bus.connection.isDraining());
    await nats.kill();
    await closing;
    expect(bus.connection.isClosed()).to.equal(true);
  });

  it("beforePublishing() calls back at the end of the turn, and what is published then goes with the rest", async () => {
    await using nats = await startNats();
    const bus = await Bus.connect({ url: nats.url, name: "test" });
    const heard: string[] = [];
    bus.hearBelow("_INBOX.one", (message) => heard.push(message.string()));
    bus.beforePublishing(() => {
      bus.publish("_INBOX.one.2", "second");
      bus.beforePublishing(() => bus.publish("_INBOX.one.3", "third"));
    });
    bus.publish("_INBOX.one.1", "first");
    await nextTurn();
    expect(heard).to.deep.equal(["first", "second", "third"]);
    bus.publish("_INBOX.one.4", "fourth");
    await nextTurn();
    expect(heard).to.have.length(4);
    await bus.close();
  });
});
