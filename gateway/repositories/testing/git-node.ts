/**
 * A machine that serves git: an actor host and a gateway with its own cache. Each of the two processes is restarted
 * whenever it has died.
 */
import { readFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { SweepTimes } from "../../../actors/repositories/pack-sweep/pack-sweep.ts";
import { ChildProgram } from "../../../scripts/testing/child-program.ts";
import type { SeededRandom } from "../../../scripts/testing/seeded-random.ts";
import { until } from "../../../scripts/testing/until.ts";
import type { TestRepo } from "./git-world.ts";

const GATEWAY = join(import.meta.dirname, "git-gateway-main.ts");
const HOST = join(import.meta.dirname, "git-host-main.ts");
/** Steps at which a gateway kills itself. */
const STEPS = ["store", "swap", "compact"].flatMap((step) => [`before-${step}`, `after-${step}`]);
const GATEWAY_STEPS = [...STEPS, "during-swap", "during-compact", "none", "none"];

export interface GitNodeOptions {
  url: string;
  name: string;
  dataDir: string;
  sweepTimes: SweepTimes;
  random: SeededRandom;
}

export class GitNode implements AsyncDisposable {
  readonly #options: GitNodeOptions;
  readonly #running: Promise<void>[];
  #host: ChildProgram | undefined;
  #gateway: ChildProgram | undefined;
  /** The port of the gateway while it serves requests. */
  #port: string | undefined;
  #isCalm = false;
  #isOver = false;
  #starts = 0;

  constructor(options: GitNodeOptions) {
    this.#options = options;
    this.#running = [this.#keepHost(), this.#keepGateway()];
  }

  /** Resolves to the gateway's URL when the gateway serves requests. */
  async url(): Promise<string> {
    const port = await until("a gateway serves", () => this.#port, 120_000);
    return `http://127.0.0.1:${port}`;
  }

  async remote({ path, token }: TestRepo): Promise<string> {
    return `${(await this.url()).replace("//", `//x:${token}@`)}${path}`;
  }

  killHost(): void {
    this.#host?.signal("SIGKILL");
  }

  killGateway(): void {
    this.#gateway?.signal("SIGKILL");
  }

  /** Kills one git process of the gateway; returns false when none runs. */
  killGit(): boolean {
    const gits = this.#gateway ? gitsBelow(this.#gateway.pid) : [];
    if (gits.length === 0) return false;
    try {
      process.kill(this.#options.random.pick(gits), "SIGKILL");
    } catch {
      // The process has ended meanwhile.
      return false;
    }
    return true;
  }

  /** Deletes the cache while the gateway uses it. */
  async wipeCache(): Promise<void> {
    // Files created meanwhile may remain.
    await rm(join(this.#options.dataDir, "git"), { recursive: true, force: true }).catch(() => {});
  }

  /** From now on the gateway does not kill itself. */
  calm(): void {
    this.#isCalm = true;
    this.killGateway();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    this.killGateway();
    this.killHost();
    await Promise.all(this.#running);
  }

  async #keepHost(): Promise<void> {
    const { url, name, sweepTimes } = this.#options;
    while (!this.#isOver) {
      this.#starts += 1;
      const times = JSON.stringify(sweepTimes);
      const command = [process.execPath, HOST, url, `${name}-${this.#starts}`, times];
      await using host = new ChildProgram(command, {});
      this.#host = host;
      await host.exit();
    }
  }

  async #keepGateway(): Promise<void> {
    const { url, dataDir, sweepTimes, random } = this.#options;
    while (!this.#isOver) {
      const step = this.#isCalm ? "none" : random.pick(GATEWAY_STEPS);
      const held = String(sweepTimes.heldMs);
      const command = [process.execPath, GATEWAY, url, dataDir, step, "upkeep", held];
      await using gateway = new ChildProgram(command, {});
      this.#gateway = gateway;
      // The gateway may end before it listens.
      const line = await gateway.line("listening").catch(() => undefined);
      this.#port = line?.split(" ")[1];
      await gateway.exit();
      this.#port = undefined;
    }
  }
}

/** Returns the git processes among the direct and indirect child processes of a process. */
function gitsBelow(pid: number): number[] {
  try {
    const text = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8");
    const children = text.split(" ").filter(Boolean).map(Number);
    const isGit = readFileSync(`/proc/${pid}/comm`, "utf8").trim() === "git";
    return [...(isGit ? [pid] : []), ...children.flatMap(gitsBelow)];
  } catch {
    // The process has ended meanwhile.
    return [];
  }
}
