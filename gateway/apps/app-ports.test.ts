import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { expect } from "chai";
import { pino } from "pino";
import { appPortsActor } from "../../actors/apps/app-ports/app-ports.ts";
import { ActorError } from "../../schemas/errors.ts";
import { freePorts } from "../../scripts/free-port.ts";
import { memoryActors } from "../../scripts/testing/memory-actors.ts";
import { AppPorts } from "./app-ports.ts";

const accountId = "a".repeat(32);
const one = { accountId, app: "one" };
const two = { accountId, app: "two" };

describe("app-ports", () => {
  let actors: ReturnType<typeof memoryActors>;
  let ports: AppPorts[];
  let others: Server[];
  let range: { first: number; last: number };
  beforeEach(async () => {
    const first = await freePorts(2);
    range = { first, last: first + 1 };
    actors = memoryActors({ actors: [appPortsActor] });
    [ports, others] = [[], []];
  });
  afterEach(() => {
    for (const server of [...ports.flatMap((each) => each.servers), ...others]) {
      server.close();
      server.closeAllConnections();
    }
  });

  /** The ports of one process. */
  function openPorts(): AppPorts {
    const logger = pino({ level: "silent" });
    const makeServer = () => createServer((_request, response) => response.end("an app"));
    const opened = new AppPorts({ actors, range, logger, makeServer });
    ports.push(opened);
    return opened;
  }

  async function take(port: number): Promise<Server> {
    const other = createServer().listen(port, "127.0.0.1");
    await once(other, "listening");
    others.push(other);
    return other;
  }

  const refusalOf = (work: Promise<unknown>) =>
    work.then(
      () => expect.fail("not refused"),
      (error: unknown) => (error instanceof ActorError ? error : expect.fail(String(error))),
    );
  const reached = (port: number) =>
    fetch(`http://127.0.0.1:${port}/`, { headers: { connection: "close" } }).then(
      (answer) => answer.text(),
      () => "nobody",
    );

  it("open() gives each app a port once, however many ask at a time", async () => {
    const opened = openPorts();
    expect(await Promise.all([opened.open(one), opened.open(one)])).to.deep.equal([true, true]);
    expect(await opened.open(two)).to.equal(true);
    expect(await opened.open(one)).to.equal(false);
    expect([opened.portOf(one), opened.portOf(two)]).to.deep.equal([range.first, range.last]);
    expect(opened.appAt(range.first)).to.include({ ...one, port: range.first });
    expect(await reached(range.first)).to.equal("an app");
    expect((await refusalOf(opened.open({ accountId, app: "three" }))).code).to.equal(
      "limit_reached",
    );
  });

  it("openAll() opens ports that another process has assigned, with the same keys", async () => {
    const before = openPorts();
    await before.open(one);
    const known = before.appAt(range.first);
    before.close(one);
    const after = openPorts();
    await after.openAll();
    expect(after.appAt(range.first)).to.deep.equal(known);
    expect(await reached(range.first)).to.equal("an app");
  });

  it("open() passes over a taken port for a new app, and names it for one that has it", async () => {
    const before = openPorts();
    await before.open(one);
    before.close(one);
    const other = await take(range.first);
    const after = openPorts();
    await after.openAll();
    expect(after.portOf(one)).to.equal(undefined);
    const refused = await refusalOf(after.open(one));
    expect(refused.code).to.equal("conflict");
    expect(refused.message).to.include(`port ${range.first} of app "one": another program uses it`);
    expect(await after.open(two)).to.equal(true);
    expect(after.portOf(two)).to.equal(range.last);
    other.close();
    await once(other, "close");
    expect(await after.open(one)).to.equal(false);
    expect(after.portOf(one)).to.equal(range.first);
  });

  it("open() leaves nothing open on a port that another program has by IPv6", async function () {
    const other = createServer().listen(range.first, "::1");
    others.push(other);
    const isListening = once(other, "listening").then(() => true);
    if (!(await Promise.race([isListening, once(other, "error").then(() => false)]))) this.skip();
    const opened = openPorts();
    await opened.open(one);
    expect(opened.portOf(one)).to.equal(range.last);
    expect(await reached(range.first)).to.equal("nobody");
  });

  it("release() closes the port and frees it", async () => {
    const opened = openPorts();
    await opened.open(one);
    await opened.release(one);
    await actors.settled();
    expect(opened.portOf(one)).to.equal(undefined);
    expect(await reached(range.first)).to.equal("nobody");
    for (const app of [two, one]) await opened.open(app);
    expect([opened.portOf(two), opened.portOf(one)]).to.deep.equal([range.last, range.first]);
  });
});
