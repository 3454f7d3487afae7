import { expect } from "chai";
import type { ActorHost } from "../../actors/runtime/actor-host.ts";
import { WriteRefused } from "../../actors/runtime/bus/atomic-batch.ts";
import { requestIdOf, traceOf } from "../../actors/runtime/lib/trace.ts";
import {
  dropDeadLetter,
  listDeadLetters,
  retryDeadLetter,
} from "../../actors/runtime/mail/dead-letters.ts";
import { Task } from "../../actors/runtime/tasks/task.ts";
import { ActorError } from "../../schemas/errors.ts";
import { LANE_TASKS_MAX } from "../../schemas/limits.ts";
import { mailIn } from "../../schemas/split-streams.ts";
import { addressOf, cacheSubject, deadSubject, STREAMS, shardOf } from "../../schemas/subjects.ts";
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
      .publish(mailIn(0).to(shardOf(address), address), JSON.stringify(mail));
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
    const { address, message, input, sequence, buriedAt } = letter;
    const payload = JSON.stringify({ from: "operator", message, input });
    const sent = { msgID: `dead-${sequence}-${buriedAt}` };
    const subject = mailIn(0).to(shardOf(address), address);
    await world.bus.jetstream.jetstream().publish(subject, payload, sent);
    await retryDeadLetter(world.bus, letter);
    expect(await letters()).to.equal(0);
    expect(await world.mailWaiting()).to.equal(1);
    await world.host();
    await until("the effect", async () => (await count("x")) === 2);
  });

  it("of operators who act on one letter at the same time, one wins, and the others learn it", async () => {
    const acts = [retryDeadLetter, dropDeadLetter, dropDeadLetter, retryDeadLetter];
    const buried = { message: "receive", error: "refused", tries: 1, buriedAt: 1 };
    for (const index of acts.keys()) {
      const subject = deadSubject(addressOf("counter", `${index}`));
      await world.bus.jetstream.jetstream().publish(subject, JSON.stringify(buried));
      const [letter] = await Array.fromAsync(listDeadLetters(world.bus));
      if (!letter) throw new Error("no letter");
      const turned = acts.map((_, at) => acts[(at + index) % acts.length] ?? dropDeadLetter);
      const before = await world.mailWaiting();
      const done = await Promise.allSettled(turned.map((act) => act(world.bus, letter)));
      const winners = turned.filter((_, at) => done[at]?.status === "fulfilled");
      expect(winners).to.have.length(1);
      const sent = (await world.mailWaiting()) - before;
      expect(sent).to.equal(winners[0] === retryDeadLetter ? 1 : 0);
      expect(await letters()).to.equal(0);
      for (const one of done) {
        if (one.status === "fulfilled") continue;
        expect(one.reason).to.be.instanceOf(ActorError);
        expect(one.reason.message).to.match(
          /^Cannot (retry|drop) dead letter \d+: another operator (retries or drops it now; list the letters again in 30 s|has retried or dropped it)$/,
        );
      }
    }
  });

  it("retry --all leaves a letter to the operator who acts on it, and one alone is an error", async () => {
    for (const key of ["x", "y"]) {
      const letter = { message: "receive", error: "refused", tries: 1, buriedAt: 1 };
      const subject = deadSubject(addressOf("counter", key));
      await world.bus.jetstream.jetstream().publish(subject, JSON.stringify(letter));
    }
    await world.bus.jetstream.jetstream().publish(cacheSubject("dead-letter.1"), "drop");
    const { code, stderr } = await run("retry", "1");
    expect([code, stderr]).to.deep.equal([
      1,
      "Cannot retry dead letter 1: another operator retries or drops it now; list the letters again in 30 s\n",
    ]);
    expect(await run("retry", "--all")).to.deep.equal({
      code: 0,
      stdout:
        "1  counter.x  receive  left to another operator\n2  counter.y  receive  sent again\n",
      stderr: "",
    });
    expect(await letters()).to.equal(1);
  });

  it("a retry sends no task to another subject than one of its kind", async () => {
    const { jetstream } = world.bus;
    const call = { message: "createToken", error: "no browser", tries: 3, buriedAt: 1 };
    for (const at of ["shard.1.account.a", "task.webhook-post.post", "task-1.render", "$KV.x.y"]) {
      const task = { subject: at, id: "one", key: "k" };
      const subject = deadSubject(addressOf("render", "k"));
      await jetstream.jetstream().publish(subject, JSON.stringify({ ...call, task }));
      const [found] = await Array.fromAsync(listDeadLetters(world.bus));
      if (!found) throw new Error("no letter");
      const refused = await retryDeadLetter(world.bus, found).catch((error: unknown) => error);
      expect(refused, at).to.have.property("code", "invalid_request");
      await jetstream.streams.purge(STREAMS.dead);
    }
  });

  it("a retry that the bus refuses leaves the letter to the next one", async () => {
    const letter = { message: "pdf", error: "no browser", tries: 3, buriedAt: 1 };
    const task = { subject: "task.render.interactive", id: "one", key: "k" };
    const { jetstream } = world.bus;
    const [subject, full] = [deadSubject(addressOf("render", "k")), JSON.stringify({ id: "t" })];
    await jetstream.jetstream().publish(subject, JSON.stringify({ ...letter, task }));
    const tasks = Array.from({ length: LANE_TASKS_MAX }, () =>
      jetstream.jetstream().publish(task.subject, full),
    );
    await Promise.all(tasks);
    const [found] = await Array.fromAsync(listDeadLetters(world.bus));
    if (!found) throw new Error("no letter");
    const refused = await retryDeadLetter(world.bus, found).catch((error: unknown) => error);
    expect(refused).to.be.instanceOf(WriteRefused);
    await jetstream.streams.purge(STREAMS.tasks, { filter: task.subject });
    // The refused retry's claim on the letter expires within a second.
    const retry = () => retryDeadLetter(world.bus, found).then(() => true);
    await until("the retry", () => retry().catch(() => false));
    expect(await letters()).to.equal(0);
    expect(await world.count(STREAMS.tasks, task.subject)).to.equal(1);
  });

  it("retry keeps the id of the request that made the letter, in mail and in tasks", async () => {
    const { jetstream } = world.bus;
    const letter = { message: "receive", input: {}, error: "refused", tries: 1, buriedAt: 1 };
    const requestId = "made.it-1";
    const task = { subject: "task.render.batch", id: "one", key: "k" };
    for (const [kind, more] of [
      ["counter", { requestId }],
      ["render", { requestId, task }],
    ] as const) {
      const subject = deadSubject(addressOf(kind, "x"));
      await jetstream.jetstream().publish(subject, JSON.stringify({ ...letter, ...more }));
    }
    expect((await run("retry", "--all")).code).to.equal(0);
    const mailOf = mailIn(0).to(shardOf(addressOf("counter", "x")), addressOf("counter", "x"));
    const mail = await jetstream.streams.getMessage(STREAMS.mail, { last_by_subj: mailOf });
    expect(requestIdOf(traceOf(mail?.header))).to.equal(requestId);
    const waiting = await jetstream.streams.getMessage(STREAMS.tasks, {
      last_by_subj: task.subject,
    });
    expect(requestIdOf(Task.parse(waiting?.json()).trace)).to.equal(requestId);
  });

  it("escapes control characters of what it prints", async () => {
    const letter = { message: "\u001b[2Jhidden", error: "\u001b]0;title\u0007\u009b2J", tries: 1 };
    await world.bus.jetstream
      .jetstream()
      .publish(deadSubject("counter.x"), JSON.stringify({ ...letter, buriedAt: 1 }));
    const { stdout: listed } = await run("list");
    expect(listed).to.include("\\u001b[2Jhidden  1 try  \\u001b]0;title\\u0007\\u009b2J\n");
    const { stdout: shown } = await run("show", "1");
    expect(JSON.parse(shown)).to.deep.include(letter);
    const { stdout: dropped } = await run("drop", "1");
    for (const text of [listed, shown, dropped]) {
      expect(text).to.not.match(/(?!\n)\p{Cc}/u);
    }
  });

  it("--all takes every letter there is, and not those that its own work makes", async () => {
    await world.host();
    for (const key of ["x", "y", "z"]) {
      await world.client.send(counter, key, "stumble", { times: -1 });
    }
    await until("the letters", async () => (await letters()) === 3);
    const { stdout } = await run("retry", "--all");
    expect(stdout.trimEnd().split("\n")).to.have.length(3);
    // The actors refuse the retried letters again, so three new letters are stored.
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

  /** Creates dead mail: its host does not know the kind, as when the host's program is older than the sender's. */
  async function buryMail(key: string, by: number): Promise<void> {
    const older: ActorHost = await world.host({ name: "older", definitions: [] });
    await world.client.send(counter, key, "receive", { by });
    await until("the letter", async () => (await letters()) === 1);
    await older.stop();
    const subject = mailIn(0).to(shardOf(addressOf("counter", key)), addressOf("counter", key));
    await until("no mail", async () => (await world.count(STREAMS.mail, subject)) === 0);
  }

  async function count(key: string): Promise<number> {
    return (await world.client.call(counter, key, "get", {})).count;
  }
});
