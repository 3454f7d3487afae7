/**
 * Pushes by git and commits by REST compete for one branch, other pushes move two branches together, and readers
 * clone the repositories meanwhile.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { systemClock as clock } from "../../../actors/runtime/lib/clock.ts";
import { Checkout } from "../../../gateway/repositories/testing/git-world.ts";
import type { SeededRandom } from "../seeded-random.ts";
import { until } from "../until.ts";
import type { ChaosClient } from "./chaos-client.ts";
import { type ChaosLoad, Clients, Tally } from "./chaos-load.ts";

const REPOS = 2;
const FILES = 10;
const PAUSE_MS_MAX = 1_500;
const READ_PAUSE_MS_MAX = 4_000;
/** Deadline for a clone of each repository after the faults. */
const READABLE_MS_MAX = 90_000;

const KINDS = {
  race: "pushes in a race",
  pair: "pushes of two branches",
  commit: "commits by REST",
  clone: "clones",
};

interface Known {
  name: string;
  /** Path of the remote, and a token for it. */
  path: string;
  token: string;
  /** The commits that were acknowledged on the contested branch, each with its parent. */
  won: { head: string; parent: string }[];
  /**
   * The heads that a single pusher pushed to its own branch and to that branch's twin. `acknowledged` is the index of
   * the last acknowledged head.
   */
  own: { heads: string[]; acknowledged: number };
}

export class PushLoad implements ChaosLoad {
  readonly name = "pushes and commits";
  readonly tally = new Tally(Object.values(KINDS));
  readonly #client: ChaosClient;
  readonly #random: SeededRandom;
  readonly #folder: string;
  readonly #clients = new Clients();
  #known: Known[] = [];
  #raceAgain: (() => Promise<void>) | undefined;

  constructor(client: ChaosClient, random: SeededRandom, folder: string) {
    this.#client = client;
    this.#random = random;
    this.#folder = folder;
  }

  get #space(): string {
    return this.#client.accountPath("/artifacts/namespaces/pushes");
  }

  async start(): Promise<void> {
    this.#known = await Promise.all(Array.from({ length: REPOS }, (_, at) => this.#create(at)));
    for (const known of this.#known) {
      const work = await this.#checkout();
      const own = await this.#checkout();
      const [first, second, third] = [
        this.#random.fork(),
        this.#random.fork(),
        this.#random.fork(),
      ];
      this.#raceAgain = () => this.#race(known, work, first);
      this.#clients.add(() => this.#race(known, work, first));
      this.#clients.add(() => this.#pushBoth(known, own, second));
      this.#clients.add(() => this.#commit(known, third));
    }
    const random = this.#random.fork();
    this.#clients.add(async () => {
      await clock.wait(random.next() * READ_PAUSE_MS_MAX);
      const failure = await this.#clone(random.pick(this.#known));
      if (failure !== undefined) this.#countFailure(failure);
    });
  }

  stop(): Promise<void> {
    return this.#clients.stop();
  }

  async findProblems(): Promise<string[]> {
    // On a busy machine the commits by REST can win every race. Then the load pushes once more without a rival, and
    // this push must succeed.
    if (this.tally.successesOf(KINDS.race) === 0) await this.#raceAgain?.();
    const problems = [...this.tally.problems, ...this.#clients.problems];
    for (const known of this.#known) {
      let why: string | undefined;
      const isRead = async () => {
        why = await this.#clone(known);
        return why === undefined;
      };
      await until(`${known.name} can be cloned`, isRead, READABLE_MS_MAX).catch((error: Error) =>
        problems.push(`${error.message}: ${why}`),
      );
      const parents = known.won.map(({ parent }) => parent);
      const twice = parents.filter((parent, at) => parents.indexOf(parent) !== at);
      if (twice.length > 0) problems.push(`${known.name}: two commits won over ${twice}`);
    }
    return problems;
  }

  async #create(at: number): Promise<Known> {
    const name = `pushed-${at}`;
    const { json } = await this.#client.insist("POST", `${this.#space}/repos`, { name });
    const token = await this.#client.insist("POST", `${this.#space}/tokens`, {
      repo: name,
      scope: "write",
      ttl: 86_400,
    });
    const path = new URL(json.result.remote).pathname;
    const first = await this.#client.insist("POST", `${this.#space}/repos/${name}/commits`, {
      branch: "main",
      message: "first",
      changes: [{ path: "README.md", content: "Hello\n" }],
    });
    return {
      name,
      path,
      token: token.json.result.plaintext,
      won: [{ head: first.json.result.hash, parent: "" }],
      own: { heads: [], acknowledged: -1 },
    };
  }

  async #remote({ path }: Known): Promise<string> {
    const { url } = await this.#client.gateway();
    return url + path;
  }

  /** Fetches the tip of the contested branch and pushes a commit on top of it. A rival's commit may arrive first. */
  async #race(known: Known, work: Checkout, random: SeededRandom): Promise<void> {
    await clock.wait(random.next() * PAUSE_MS_MAX);
    const remote = await this.#remote(known);
    const fetched = await work.tryGit(...withToken(known), "fetch", "-q", remote, "main");
    if (fetched.code !== 0) return this.#countFailure(fetched.stderr);
    const parent = await work.git("rev-parse", "FETCH_HEAD");
    await work.git("reset", "-q", "--hard", parent);
    const head = await work.commit(`raced ${clock.monotonic()}`, fileOf(random));
    const since = clock.monotonic();
    const { code, stderr } = await work.tryGit(...withToken(known), "push", "-q", remote, "main");
    if (code !== 0) return this.#countFailure(stderr);
    known.won.push({ head, parent });
    this.tally.acknowledge(clock.monotonic() - since, KINDS.race);
  }

  /** Pushes one commit to a branch and to its twin in an atomic push. */
  async #pushBoth(known: Known, work: Checkout, random: SeededRandom): Promise<void> {
    await clock.wait(random.next() * PAUSE_MS_MAX);
    const { own } = known;
    const head = await work.commit(`own ${clock.monotonic()}`, fileOf(random));
    own.heads.push(head);
    const both = ["own", "twin"].map((branch) => `+${head}:refs/heads/${branch}`);
    const since = clock.monotonic();
    const remote = await this.#remote(known);
    const { code, stderr } = await work.tryGit(
      ...withToken(known),
      ...["push", "-q", "--atomic", remote, ...both],
    );
    if (code !== 0) return this.#countFailure(stderr);
    own.acknowledged = own.heads.length - 1;
    this.tally.acknowledge(clock.monotonic() - since, KINDS.pair);
  }

  /** Reads the tip of the contested branch and commits on top of it by REST. */
  async #commit({ name, won }: Known, random: SeededRandom): Promise<void> {
    await clock.wait(random.next() * PAUSE_MS_MAX);
    const repo = `${this.#space}/repos/${name}`;
    const refs = await this.#client.ask("GET", `${repo}/refs`);
    const tip = refs?.json?.result?.find(
      ({ name: ref }: { name: string }) => ref === "refs/heads/main",
    );
    if (refs?.status !== 200) return this.tally.countFailure(refs);
    if (!tip) throw new Error(`${name} has lost its branch main`);
    const json = {
      branch: "main",
      expected: tip.hash,
      message: "by REST",
      changes: [{ path: fileOf(random), content: `${clock.monotonic()}\n` }],
    };
    // 409 is expected: a push may have moved the branch before this commit.
    const answer = await this.tally.count(
      () => this.#client.ask("POST", `${repo}/commits`, { json }),
      { kind: KINDS.commit, expected: [409] },
    );
    if (answer) won.push({ head: answer.json.result.hash, parent: tip.hash });
  }

  /**
   * Clones and checks the repository. Returns the reason if it cannot be cloned. Throws if the clone is damaged or
   * lacks an acknowledged commit.
   */
  async #clone(known: Known): Promise<string | undefined> {
    const winners = known.won.map(({ head }) => head);
    const least = known.own.acknowledged;
    const copy = await this.#checkout();
    try {
      const remote = await this.#remote(known);
      const fetched = await copy.tryGit(
        ...withToken(known),
        ...["fetch", "-q", remote, "+refs/heads/*:refs/x/*"],
      );
      if (fetched.code !== 0) return fetched.stderr;
      await copy.git("fsck", "--full", "--strict");
      const history = new Set((await copy.git("rev-list", "refs/x/main")).split("\n"));
      const lost = winners.filter((head) => !history.has(head));
      if (lost.length > 0) throw new Error(`${known.name} has lost ${lost}`);
      const [own, twin] = await Promise.all(["own", "twin"].map((ref) => tipOf(copy, ref)));
      if (own !== twin) throw new Error(`${known.name} has half of a push: ${own} and ${twin}`);
      const place = own === "" ? -1 : known.own.heads.indexOf(own ?? "");
      if (place < least) throw new Error(`${known.name}: own is at ${place}, not ${least}`);
      this.tally.succeed(KINDS.clone);
      return undefined;
    } finally {
      await rm(copy.folder, { recursive: true, force: true, maxRetries: 10 });
    }
  }

  get clones(): number {
    return this.tally.successesOf(KINDS.clone);
  }

  #countFailure(stderr: string): void {
    const outcome = gitOutcome(stderr);
    if (outcome === "unknown") this.tally.unknown += 1;
    else if (outcome === "refused") this.tally.refuse(stderr.trim().slice(0, 300));
  }

  async #checkout(): Promise<Checkout> {
    const checkout = new Checkout(await mkdtemp(join(this.#folder, "work-")));
    await checkout.git("init", "-q", "-b", "main");
    return checkout;
  }
}

/** Matches a push that lost a race, and results of the platform that ask for the same push again. */
const EXPECTED = /\[(remote )?rejected\].*\((fetch first|non-fast-forward|stale info|.*push again)/;
/** Matches connection errors of git and curl, and HTTP statuses of 500 and above. */
const NO_ANSWER =
  /returned error: 5\d\d|RPC failed; (curl|HTTP 5)|Failed to connect|Could ?n.t connect|Connection (reset|refused|timed out)|Recv failure|Send failure|Empty reply|hung up|unexpected disconnect|early EOF|Operation timed out|was not closed cleanly|expected flush|transfer closed/i;

/** Classifies a failed git command by its error output. Only "refused" is a fault of the platform. */
export function gitOutcome(stderr: string): "expected" | "unknown" | "refused" {
  if (EXPECTED.test(stderr)) return "expected";
  return NO_ANSWER.test(stderr) ? "unknown" : "refused";
}

/**
 * Makes git send the token with the first request. With a token in the URL, git first gets a 401. If the connection
 * then fails, git reports "authentication failed".
 */
function withToken({ token }: Known): string[] {
  const value = Buffer.from(`x:${token}`).toString("base64");
  return ["-c", `http.extraHeader=Authorization: Basic ${value}`];
}

const fileOf = (random: SeededRandom) => `file-${random.integer(0, FILES - 1)}`;

const tipOf = async (copy: Checkout, branch: string) =>
  (await copy.tryGit("rev-parse", "--verify", "-q", `refs/x/${branch}`)).stdout.trim();
