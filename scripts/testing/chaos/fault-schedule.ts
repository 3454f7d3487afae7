/**
 * Injects the faults of a chaos run in an order that a seed decides. One lane breaks processes and one lane breaks
 * servers of the bus, so faults of the two lanes overlap.
 */
import { systemClock as clock } from "../../../actors/runtime/lib/clock.ts";
import { childrenOf, isOfApp, stopProcess } from "../process-children.ts";
import type { SeededRandom } from "../seeded-random.ts";
import type { TcpProxy } from "../tcp-proxy.ts";
import { until } from "../until.ts";
import { type ChaosCluster, type ChaosPlace, type ChaosRole, ROLES } from "./chaos-cluster.ts";

/** One fault. `at` and `until` are its start and its end by the machine's clock. */
export interface Fault {
  what: string;
  at: number;
  until: number;
}

const QUIET_MS_MAX = 4_000;
/**
 * Maximum time for which a process or server is suspended. It is longer than a lease, and longer than the silence
 * after which the other servers elect a new leader.
 */
const STOPPED_MS_MAX = 8_000;
const CUT_MS_MAX = 6_000;
const DOWN_MS_MAX = 5_000;
/**
 * Maximum time for a restarted server to connect to its peers, find the leader and fetch the messages that it missed,
 * on a busy machine.
 */
const CURRENT_MS_MAX = 120_000;
const LOOK_MS = 200;
/**
 * Maximum time for processes to become ready. They start slowly on a busy machine, and start again if they could not
 * reach the bus.
 */
const READY_MS_MAX = 200_000;
/** Maximum time for a process to exit after SIGTERM, because it finishes its current work first. */
const LEAVE_MS_MAX = 90_000;

const PROCESS_FAULTS = ["kill", "roll", "stop", "cut", "stall", "way", "app", "role"] as const;
const SERVER_FAULTS = ["kill", "stop", "roll", "all"] as const;

export class FaultSchedule {
  /** Every fault so far. */
  readonly faults: Fault[] = [];
  /** Descriptions of faults from which the cluster did not recover as it should. */
  readonly problems: string[] = [];
  readonly #cluster: ChaosCluster;
  readonly #random: SeededRandom;
  readonly #print: (line: string) => void;
  /** Restarts of processes that are in progress. Other faults happen meanwhile. */
  readonly #restarting = new Set<Promise<void>>();

  constructor(cluster: ChaosCluster, random: SeededRandom, print: (line: string) => void) {
    this.#cluster = cluster;
    this.#random = random;
    this.#print = print;
  }

  /**
   * Injects faults until the monotonic time `endAt`, then ends the last faults. Resolves when every process runs
   * again.
   */
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

  /** Injects each fault of the list equally often, in an order that the seed decides. */
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
      // Each fault has its own random generator, so that the number of values it draws does not change later faults.
      await strike(what, random.fork()).catch((error: Error) => {
        this.problems.push(`${what}: ${error.message}`);
      });
    }
  }

  async #breakProcess(what: (typeof PROCESS_FAULTS)[number], random: SeededRandom): Promise<void> {
    const role = random.pick(ROLES);
    // Waits for both processes of the role, so that at least one of them is ready or starting. Only the fault `role`
    // kills both.
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
        // Stalls the connection to one server only. The process must connect to another server.
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
    // Waits until all replicas are current, as an operator does before working on the next server. If two of three
    // servers missed writes, the loss of the third server could lose these writes.
    await until(
      `all copies are current after ${name}: ${what}`,
      () => this.#isCurrent(),
      CURRENT_MS_MAX,
    );
  }

  /** Ends processes and starts them again in the background, so that other faults overlap with the restart. */
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

  /** Kills one app process, if there is one. */
  async #killApp(random: SeededRandom): Promise<void> {
    const hosts = this.#cluster.placesOf("actors");
    const running = hosts.flatMap(({ instance }) => (instance ? childrenOf(instance.pid) : []));
    const pids = running.filter(isOfApp);
    if (pids.length === 0) return;
    await this.#during("process of an app killed", async () => {
      process.kill(random.pick(pids), "SIGKILL");
    });
  }

  /** Runs the action of a fault, and records when the fault starts and ends. `details` are printed with the fault. */
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
