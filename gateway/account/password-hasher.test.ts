import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { promisify } from "node:util";
import type { Worker } from "node:worker_threads";
import { expect } from "chai";
import { networkOf } from "./network-of.ts";
import {
  PASSWORD_HASHES_AT_ONCE,
  PASSWORD_HASHES_PER_NETWORK_MAX,
  PASSWORD_HASHES_PER_SOURCE_MAX,
  PASSWORD_HASHES_WAITING_MAX,
  PasswordHasher,
  startPasswordThread,
} from "./password-hasher.ts";
import type { HashWork } from "./password-thread.ts";

/** Work that takes a millisecond. */
const quick = (): HashWork => ({
  scheme: "argon2id",
  parameters: {
    message: "s3cret",
    nonce: randomBytes(16),
    parallelism: 1,
    tagLength: 32,
    memory: 8,
    passes: 1,
  },
});

/** A source in a network of its own, or in this network. */
const at = (from: string, network = from) => ({ from, network });

describe("PasswordHasher", function () {
  this.timeout(60_000);

  it("accepts hashes up to the limits of running and waiting ones, and refuses one more at once", async () => {
    const hasher = new PasswordHasher();
    const { known, unknown } = PASSWORD_HASHES_WAITING_MAX;
    const many = (count: number, kind: string) =>
      Array.from({ length: count }, (_, index) => hasher.hash(quick(), at(`${kind} ${index}`)));
    const all = [
      ...many(PASSWORD_HASHES_AT_ONCE, "session"),
      ...many(known, "browser"),
      ...many(unknown, "network"),
    ];
    for (const more of ["browser more", "network more"]) {
      const refused = await failureOf(hasher.hash(quick(), at(more)));
      expect(refused).to.deep.include({ code: "busy", details: { retryAfterS: 2 } });
    }
    expect(await Promise.all(all)).to.have.length(PASSWORD_HASHES_AT_ONCE + known + unknown);
    for (const more of ["browser more", "network more"]) {
      expect(await hasher.hash(quick(), at(more))).to.have.length(32);
    }
  });

  it("lets known people in, before strangers from many networks that fill their part of the queue", async () => {
    const hasher = new PasswordHasher();
    const order: string[] = [];
    const hash = async (from: string) => {
      await hasher.hash(quick(), at(from));
      order.push(from);
    };
    const strangers = Array.from({ length: 5 * PASSWORD_HASHES_PER_SOURCE_MAX }, (_, index) =>
      failureOf(hash(`network ${index % 5}`)),
    );
    await hash("browser");
    await hash("session");
    // Others are served in between: those that ran already, and one after three known people.
    expect(order.length).to.be.below(PASSWORD_HASHES_WAITING_MAX.unknown);
    const failures = (await Promise.all(strangers)).filter((failure) => failure !== undefined);
    expect(failures.length).to.be.above(0);
    for (const failure of failures) expect(failure).to.include({ code: "busy" });
  });

  it("counts the strangers of a /48 as one source, and its known people as one network", async () => {
    const hasher = new PasswordHasher();
    const networkAt = (index: number) => networkOf(`2001:db8:0:${index.toString(16)}::1`);
    const hash = (kind: string, index: number) => {
      const network = networkAt(index);
      const from = kind === "network" ? `network ${network}` : `${kind} ${index}`;
      return hasher.hash(quick(), { from, network });
    };
    const ofStrangers = PASSWORD_HASHES_PER_SOURCE_MAX;
    const strangers = Array.from({ length: ofStrangers }, (_, index) => hash("network", index));
    expect(await failureOf(hash("network", 99))).to.include({ code: "queue_full" });
    const ofKnown = PASSWORD_HASHES_PER_NETWORK_MAX - ofStrangers;
    const known = Array.from({ length: ofKnown }, (_, index) => hash("browser", index));
    expect(await failureOf(hash("browser", 99))).to.include({ code: "queue_full" });
    const other = networkOf("2001:db8:1::1");
    for (const from of [`network ${other}`, "browser other"]) {
      expect(await hasher.hash(quick(), { from, network: other })).to.have.length(32);
    }
    await Promise.all([...strangers, ...known]);
    expect(await hash("network", 99)).to.have.length(32);
  });

  it("keeps half of the queue for others if one network has many browsers", async () => {
    const hasher = new PasswordHasher();
    const running = Array.from({ length: PASSWORD_HASHES_PER_NETWORK_MAX }, (_, index) =>
      hasher.hash(quick(), at(`browser ${index}`, "one")),
    );
    const refused = await failureOf(hasher.hash(quick(), at("browser more", "one")));
    expect(refused).to.include({ code: "queue_full" });
    expect(await hasher.hash(quick(), at("browser more", "other"))).to.have.length(32);
    await Promise.all(running);
    expect(await hasher.hash(quick(), at("browser more", "one"))).to.have.length(32);
  });

  it("limits the hashes of one source, and accepts those of others meanwhile", async () => {
    const hasher = new PasswordHasher();
    const count = PASSWORD_HASHES_PER_SOURCE_MAX;
    const all = Array.from({ length: count }, () => hasher.hash(quick(), at("one")));
    const refused = await failureOf(hasher.hash(quick(), at("one")));
    expect(refused).to.deep.include({ code: "queue_full", details: { retryAfterS: 2 } });
    expect(await hasher.hash(quick(), at("other"))).to.have.length(32);
    await Promise.all(all);
    expect(await hasher.hash(quick(), at("one"))).to.have.length(32);
  });

  it("refuses a hash that waits too long for a thread, and then accepts others", async () => {
    const hasher = new PasswordHasher({ waitMsMax: 1 });
    const slow = (): HashWork => ({
      scheme: "scrypt",
      password: "s3cret",
      salt: randomBytes(16),
      bytes: 32,
      cost: { N: 2 ** 17, r: 8, p: 1, maxmem: 2 ** 28 },
    });
    const running = Array.from({ length: PASSWORD_HASHES_AT_ONCE }, () =>
      hasher.hash(slow(), at("a")),
    );
    const refused = await failureOf(hasher.hash(quick(), at("b")));
    expect(refused).to.deep.include({ code: "busy", details: { retryAfterS: 2 } });
    await Promise.all(running);
    expect(await hasher.hash(quick(), at("b"))).to.have.length(32);
  });

  it("computes a hash again if its thread ends, and fails if the next thread ends too", async () => {
    let started = 0;
    const ending = (count: number) => () => {
      const worker = startPasswordThread();
      if (++started <= count) void worker.terminate();
      return worker;
    };
    const hasher = new PasswordHasher({ startThread: ending(1) });
    expect(await hasher.hash(quick(), at("a"))).to.have.length(32);
    expect(started).to.equal(2);
    const always = new PasswordHasher({ startThread: ending(Number.POSITIVE_INFINITY) });
    const callers = Array.from({ length: PASSWORD_HASHES_AT_ONCE + 2 }, () =>
      failureOf(always.hash(quick(), at("a"))),
    );
    for (const failure of callers) expect(String(await failure)).to.contain("2 threads ended");
  });

  it("starts another thread if an idle one has ended", async () => {
    const workers: Worker[] = [];
    const hasher = new PasswordHasher({ startThread: () => added(workers, startPasswordThread()) });
    await hasher.hash(quick(), at("a"));
    await hasher.hash(quick(), at("a"));
    expect(workers).to.have.length(1);
    await workers[0]?.terminate();
    expect(await hasher.hash(quick(), at("a"))).to.have.length(32);
    expect(workers).to.have.length(2);
  });

  it("ends a thread that has no work", async () => {
    const workers: Worker[] = [];
    const startThread = () => added(workers, startPasswordThread());
    const hasher = new PasswordHasher({ startThread, idleMs: 1 });
    await hasher.hash(quick(), at("a"));
    const [worker] = workers;
    if (worker && worker.threadId !== -1) await once(worker, "exit");
    expect(worker?.threadId).to.equal(-1);
    expect(await hasher.hash(quick(), at("a"))).to.have.length(32);
  });

  it("fails a hash whose stored cost is invalid, and keeps the thread", async () => {
    const workers: Worker[] = [];
    const hasher = new PasswordHasher({ startThread: () => added(workers, startPasswordThread()) });
    const work = quick();
    if (work.scheme === "argon2id") work.parameters.memory = 1;
    expect(String(await failureOf(hasher.hash(work, at("a"))))).to.match(
      /Cannot check password: .*memory/,
    );
    expect(await hasher.hash(quick(), at("a"))).to.have.length(32);
    expect(workers).to.have.length(1);
  });

  it("does not raise the priority of a process that has a lower one", async () => {
    expect(await nicenessOfThread(["nice", "-n", "19"])).to.equal("19");
  });

  it("has threads of low priority that do not keep a process alive", async () => {
    expect(await nicenessOfThread([])).to.equal("10");
  });
});

/** Hashes in a process of its own. Resolves to the niceness of the thread when the process has ended. */
async function nicenessOfThread(prefix: string[]): Promise<string> {
  const hasher = JSON.stringify(new URL("./password-hasher.ts", import.meta.url));
  const stat = JSON.stringify(new URL("../../scripts/testing/process-stat.ts", import.meta.url));
  const code = `
    import { readdirSync } from "node:fs";
    import { PasswordHasher } from ${hasher};
    import { processStat } from ${stat};
    const hasher = new PasswordHasher({ idleMs: 1_000_000 });
    const cost = { N: 2, r: 1, p: 1 };
    const work = { scheme: "scrypt", password: "a", salt: new Uint8Array(16), bytes: 32, cost };
    await hasher.hash(work, { from: "a", network: "a" });
    const threads = readdirSync("/proc/self/task").map((thread) => processStat("self", thread));
    console.log(threads.find(({ name }) => name === "password").niceness);`;
  const [program = "", ...parameters] = [...prefix, process.execPath, "--input-type=module", "-e"];
  const { stdout } = await promisify(execFile)(program, [...parameters, code]);
  return stdout.trim();
}

const failureOf = (work: Promise<unknown>) => work.catch((error: unknown) => error);

function added(workers: Worker[], worker: Worker): Worker {
  workers.push(worker);
  return worker;
}
