import { expect } from "chai";
import type { ActorHost } from "../../actors/runtime/actor-host.ts";
import { listDeadLetters, retryDeadLetter } from "../../actors/runtime/mail/dead-letters.ts";
import { addressOf, mailSubject, STREAMS, shardOf } from "../../schemas/subjects.ts";
import { startWorld, type World } from "../testing/actor-world.ts";
import { trunkline } from "../testing/command-line.ts";
import { counter, counterActor } from "../testing/counter.ts";
import { until } from "../testing/until.ts";
import { adminDead } from "./admin-dead.ts";
import { UsageError } from "./usage-error.ts";

describe("admin dead", function () {
  this.timeout(120_000);
  let world: World;
  beforeEach(async () => {
    world = await startWorld({ definitions: [counterActor] });
  });
  afterEach(() => world[Symbol.asyncDispose]());

  const run = (...parameters: string[]) => trunkline(["admin", "dead", ...parameters], world.url);
  const letters = () => world.count(STREAMS.dead);

  it("list, show, retry and drop find nothing where nothing failed", async () => {
    for (const parameters of [["list"], ["retry", "--all"], ["drop", "--all"]]) {
      expect(await run(...parameters)).to.deep.equal({
        code: 0,
        stdout: "No dead letters\n",
        stderr: "",
      });
    }
    for (const verb of ["show", "retry", "drop"]) {
      expect(await run(verb, "7")).to.deep.equal({
        code: 1,
        stdout: "",
        stderr: "Cannot find dead letter 7: there is none of that number\n",
      });
    }
  });

  it("list and show tell what failed, of whom, when and why", async () => {
    await world.host();
    await world.client.send(counter, "a b", "stumble", { times: -1 });
    await until("the letter", async () => (await letters()) === 1);
    const { stdout } = await run("list");
    expect(stdout).to.match(
      /^1 {2}\d{4}-\d\d-\d\dT[\d:.]+Z {2}counter\.a=20b {2}stumble {2}1 try {2}Cannot count: refused as asked\n$/,
    );
    const shown = await run("show", "1");
    const { buriedAt, ...letter } = JSON.parse(shown.stdout);
    expect(letter).to.deep.equal({
      sequence: 1,
      address: "counter.a=20b",
      message: "stumble",
      input: { times: -1 },
      error: "Cannot count: refused as asked",
      tries: 1,
    });
    expect(Date.now() - Date.parse(buriedAt)).to.be.within(0, 120_000);
  });

  it("show names the field of an input that was refused", async () => {
    await world.host();
    const address = addressOf("counter", "x");
    const mail = { from: "older.1", message: "receive", input: { by: "one" } };
    const { jetstream } = world.bus;
    await jetstream
      .jetstream()
      .publish(mailSubject(shardOf(address), address), JSON.stringify(mail));
    await until("the letter", async () => (await letters()) === 1);
    const { error } = JSON.parse((await run("show", "1")).stdout);
    expect(error).to.match(/^Cannot read receive: \/by: .*expected number/);
  });

  it("retry brings the effect once what was missing is there, and forgets the letter", async () => {
    await buryMail("x", 2);
    await world.host();
    expect(await run("retry", "1")).to.deep.equal({
      code: 0,
      stdout: "1  counter.x  receive  sent again\n",
      stderr: "",
    });
    await until("the effect", async () => (await count("x")) === 2);
    expect((await run("retry", "1")).stderr).to.include("there is none of that number");
    expect((await run("list")).stdout).to.equal("No dead letters\n");
    expect(await count("x")).to.equal(2);
  });

  it("retry that is cut off before it forgets the letter sends it once all the same", async () => {
    await buryMail("x", 2);
    const [letter] = await Array.fromAsync(listDeadLetters(world.bus));
    if (!letter) throw new Error("no letter");
    await retryDeadLetter(world.bus, letter);
    await retryDeadLetter(world.bus, letter); // Also as a second operator at the same time.
    expect(await world.mailWaiting()).to.equal(1);
    await world.host();
    await until("the effect", async () => (await count("x")) === 2);
  });

  it("--all takes every letter there is, and not those that its own work makes", async () => {
    await world.host();
    for (const key of ["x", "y", "z"]) {
      await world.client.send(counter, key, "stumble", { times: -1 });
    }
    await until("the letters", async () => (await letters()) === 3);
    const { stdout } = await run("retry", "--all");
    expect(stdout.trimEnd().split("\n")).to.have.length(3);
    // The retried letters are refused again.
    await until("new letters", async () => (await letters()) === 3);
    const dropped = await run("drop", "4");
    expect(dropped.stdout).to.match(/^4 {2}counter\.[xyz] {2}stumble {2}dropped\n$/);
    expect((await run("drop", "--all")).stdout.trimEnd().split("\n")).to.have.length(2);
    expect(await letters()).to.equal(0);
  });

  const mistakes: [string[], string][] = [
    [[], 'Cannot run "admin dead": expected list, show, retry or drop after it'],
    [["list", "5"], 'Cannot run "admin dead list": expected nothing after it'],
    [["show"], 'Cannot run "admin dead show": expected one number after it'],
    [["retry"], 'Cannot run "admin dead retry": expected one number, or --all, after it'],
    [["drop", "1", "2"], 'Cannot run "admin dead drop": expected one number, or --all, after it'],
    ...["--all", "0", "-1", "1e2", "1.5", "x", "99999999999999999"].map(
      (found): [string[], string] => [
        ["show", found],
        `Cannot find dead letter: expected its number, found "${found}"`,
      ],
    ),
  ];
  for (const [parameters, problem] of mistakes) {
    it(`refuses "${parameters.join(" ")}" before it asks the bus`, async () => {
      const failure = await adminDead(parameters, {}).catch((error: unknown) => error);
      expect(failure).to.be.instanceOf(UsageError);
      expect(failure).to.have.property("message", problem);
    });
  }

  /** Mail that a host finds no kind for, as when its program is older than the sender's. */
  async function buryMail(key: string, by: number): Promise<void> {
    const older: ActorHost = await world.host({ name: "older", definitions: [] });
    await world.client.send(counter, key, "receive", { by });
    await until("the letter", async () => (await letters()) === 1);
    await older.stop();
    const subject = mailSubject(shardOf(addressOf("counter", key)), addressOf("counter", key));
    await until("no mail", async () => (await world.count(STREAMS.mail, subject)) === 0);
  }

  async function count(key: string): Promise<number> {
    return (await world.client.call(counter, key, "get", {})).count;
  }
});
