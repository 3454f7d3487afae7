/** The seeded faults of a chaos run: one lane breaks processes, the other servers, so faults of both overlap. */
import { systemClock as clock } from "../../../actors/runtime/lib/clock.ts";
import { childrenOf, isOfApp, stopProcess } from "../process-children.ts";
import type { SeededRandom } from "../seeded-random.ts";
import type { TcpProxy } from "../tcp-proxy.ts";
import { until } from "../until.ts";
import { type ChaosCluster, type ChaosPlace, type ChaosRole, ROLES } from "./chaos-cluster.ts";

/** One fault, with its begin and end by the machine's clock. */
export interface Fault {
  what: string;
  at: number;
  until: number;
}

const QUIET_MS_MAX = 4_000;
/** Longer than a lease, and than a server's silence that makes others elect a leader. */
const STOPPED_MS_MAX = 8_000;
const CUT_MS_MAX = 6_000;
const DOWN_MS_MAX = 5_000;
/** A server that starts anew finds its peers, its leader and what it missed, on a busy machine. */
const CURRENT_MS_MAX = 120_000;
const LOOK_MS = 200;
/** Processes of a busy machine start slowly, and again where the bus was away. */
const READY_MS_MAX = 200_000;
/** A process that leaves finishes what it has begun. */
const LEAVE_MS_MAX = 90_000;

const PROCESS_FAULTS = ["kill", "roll", "stop", "cut", "stall", "way", "app", "role"] as const;
const SERVER_FAULTS = ["kill", "stop", "roll", "all"] as const;

export class FaultSchedule {
  /** Every fault so far. */
  readonly faults: Fault[] = [];
  /** Faults that the cluster did not survive as it should, in words. */
  readonly problems: string[] = [];
  readonly #cluster: ChaosCluster;
  readonly #random: SeededRandom;
  readonly #print: (line: string) => void;
  /** Processes that start again, while other things are broken. */
  readonly #restarting = new Set<Promise<void>>();

  constructor(cluster: ChaosCluster, random: SeededRandom, print: (line: string) => void) {
    this.#cluster = cluster;
    this.#random = random;
    this.#print = print;
  }

  /** Breaks things until this monotonic time, and mends the last of them. Every process runs then. */
  async run(endAt: number): Promise<void> {
    const lanes = [
      this.#runLane(endAt, PROCESS_FAULTS, (what, random) => this.#breakProcess(what, random)),
      this.#runLane(endAt, SERVER_FAULTS, (what, random) => this.#breakServer(what, random)),
    ];
    await Promise.all(lanes);
    await Promise.all(this.#restarting);
  }

  /** How often each fault was made. */
  get counts(): Map<string, number> {
    const words = this.faults.map(({ what }) => what.replace(/-\d.*|\d+ ms/g, "").trim());
    return new Map(
      Array.from(Map.groupBy(words, (word) => word)).map(([word, all]) => [word, all.length]),
    );
  }

  /** Makes every fault of the list as often as every other, in an order that the seed decides. */
  async #runLane<F extends string>(
    endAt: number,
    all: readonly F[],
    strike: (what: F, random: SeededRandom) => Promise<void>,
  ): Promise<void> {
    const random = this.#random.fork();
    let left: F[] = [];
    for (;;) {
      await clock.wait(random.integer(0, QUIET_MS_MAX));
      if (clock.monotonic() >= endAt) return;
      if (left.length === 0) left = [...all];
      const what = random.pick(left);
      left.splice(left.indexOf(what), 1);
      // Each fault draws from a generator of its own, so what one draws changes no later fault.
      await strike(what, random.fork()).catch((error: Error) => {
        this.problems.push(`${what}: ${error.message}`);
      });
    }
  }

  async #breakProcess(what: (typeof PROCESS_FAULTS)[number], random: SeededRandom): Promise<void> {
    const role = random.pick(ROLES);
    // One place of each role is always there or on its way: `role` alone takes both away.
    const places = await this.#readyPlaces(role);
    const place = random.pick(places);
    const { name, proxies } = place;
    switch (what) {
      case "kill":
        return this.#restart([place], "SIGKILL", `${name} killed`);
      case "roll":
        return this.#restart([place], "SIGTERM", `${name} rolled`);
      case "role":
        return this.#restart(places, "SIGKILL", `every ${role} killed`);
      case "stop":
        return await this.#stop(name, place.instance?.pid, random);
      case "cut":
        return await this.#cutOff(name, "cut", proxies, random);
      case "stall":
        return await this.#cutOff(name, "stall", proxies, random);
      case "way":
        // One way only: the process finds another server.
        return await this.#cutOff(name, "stall", [random.pick(proxies)], random);
      case "app":
        return await this.#killApp(random);
      default:
        what satisfies never;
    }
  }

  /** Resolves when both processes of the role are ready. */
  #readyPlaces(role: ChaosRole): Promise<ChaosPlace[]> {
    const places = this.#cluster.placesOf(role);
    const areReady = async () => {
      await clock.wait(LOOK_MS);
      return places.every(({ isReady }) => isReady) && places;
    };
    return until(`every ${role} is ready`, areReady, READY_MS_MAX);
  }

  async #breakServer(what: (typeof SERVER_FAULTS)[number], random: SeededRandom): Promise<void> {
    const { servers } = this.#cluster;
    const server = random.pick(servers);
    const name = `nats-server-${servers.indexOf(server)}`;
    const downMs = random.integer(0, DOWN_MS_MAX);
    switch (what) {
      case "kill":
        await this.#during(`${name} killed for ${downMs} ms`, async () => {
          await server.kill();
          await clock.wait(downMs);
          await server.start();
        });
        break;
      case "roll":
        await this.#during(`${name} rolled`, () => server.restart());
        break;
      case "all":
        await this.#during(`every nats-server killed for ${downMs} ms`, async () => {
          await Promise.all(servers.map((one) => one.kill()));
          await clock.wait(downMs);
          await Promise.all(servers.map((one) => one.start()));
        });
        break;
      case "stop":
        await this.#stop(name, server.pid, random);
        break;
      default:
        what satisfies never;
    }
    // As an operator does before the next server: two that miss writes could lose the third's.
    await until(
      `all copies are current after ${name}: ${what}`,
      () => this.#isCurrent(),
      CURRENT_MS_MAX,
    );
  }

  /** Ends processes and starts them again. Other things break meanwhile. */
  #restart(places: readonly ChaosPlace[], signal: "SIGKILL" | "SIGTERM", what: string): void {
    const details: string[] = [];
    const restart = async () => {
      const restarts = places.map(async (place) => {
        const since = clock.monotonic();
        const code = await this.#cluster.endProcess(place, signal);
        const leftMs = Math.round(clock.monotonic() - since);
        if (signal === "SIGTERM" && (code !== 0 || leftMs > LEAVE_MS_MAX)) {
          this.problems.push(`${place.name} left with code ${code} after ${leftMs} ms`);
        }
        details.push(`${place.name} had left after ${leftMs} ms`);
        await this.#cluster.startProcess(place);
      });
      await Promise.all(restarts);
    };
    const restarting = this.#during(what, restart, details)
      .catch((error: Error) => void this.problems.push(`${what}: ${error.message}`))
      .finally(() => this.#restarting.delete(restarting));
    this.#restarting.add(restarting);
  }

  async #stop(name: string, pid: number | undefined, random: SeededRandom): Promise<void> {
    const ms = random.integer(200, STOPPED_MS_MAX);
    if (pid === undefined) return;
    await this.#during(`${name} stopped for ${ms} ms`, async () => {
      await stopProcess(pid);
      await clock.wait(ms);
      process.kill(pid, "SIGCONT");
    });
  }

  async #cutOff(
    name: string,
    how: "cut" | "stall",
    proxies: readonly TcpProxy[],
    random: SeededRandom,
  ): Promise<void> {
    const ms = random.integer(0, CUT_MS_MAX);
    const from = proxies.length === 1 ? "from one server" : "from all servers";
    await this.#during(`${name}: ${how} ${from} for ${ms} ms`, async () => {
      for (const proxy of proxies) proxy[how]();
      await clock.wait(ms);
      for (const proxy of proxies) proxy.open();
    });
  }

  /** Kills a process that runs code of an app, if there is one. */
  async #killApp(random: SeededRandom): Promise<void> {
    const hosts = this.#cluster.placesOf("actors");
    const running = hosts.flatMap(({ instance }) => (instance ? childrenOf(instance.pid) : []));
    const pids = running.filter(isOfApp);
    if (pids.length === 0) return;
    await this.#during("process of an app killed", async () => {
      process.kill(random.pick(pids), "SIGKILL");
    });
  }

  /** Notes the time of a fault. `details` are printed with it. */
  async #during(
    what: string,
    action: () => Promise<unknown>,
    details: readonly string[] = [],
  ): Promise<void> {
    const fault = { what, at: Date.now(), until: Number.POSITIVE_INFINITY };
    this.faults.push(fault);
    await action();
    fault.until = Date.now();
    const time = new Date(fault.at).toISOString().slice(11, 23);
    this.#print([`${time} ${what}; ${fault.until - fault.at} ms`, ...details].join("; "));
  }

  async #isCurrent(): Promise<boolean> {
    await clock.wait(LOOK_MS);
    const infos = await Array.fromAsync(this.#cluster.bus.jetstream.streams.list()).catch(() => []);
    return (
      infos.length > 0 &&
      infos.every(({ cluster, config }) => {
        const replicas = cluster?.replicas ?? [];
        return (
          cluster?.leader !== undefined &&
          replicas.length === config.num_replicas - 1 &&
          replicas.every(({ current, offline }) => current && !offline)
        );
      })
    );
  }
}
