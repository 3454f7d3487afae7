/** Sends many signed webhooks to agents, while sockets watch the state of these agents. */

import { AppStorm, STORM_APP, STORM_CODE, STORM_CONFIG, STORM_SECRET } from "../app-storm.ts";
import type { SeededRandom } from "../seeded-random.ts";
import type { ChaosClient } from "./chaos-client.ts";
import { type ChaosLoad, Tally } from "./chaos-load.ts";

const OPTIONS = { sockets: 24, pauseMsMax: 2_000, reopens: true };

export class WebhookLoad implements ChaosLoad {
  readonly name = "webhooks";
  readonly #client: ChaosClient;
  readonly #storm: AppStorm;

  constructor(client: ChaosClient, random: SeededRandom) {
    this.#client = client;
    this.#storm = new AppStorm(client, random, OPTIONS);
  }

  get tally(): Tally {
    const tally = new Tally();
    tally.acknowledged = this.#storm.taken;
    tally.unknown = this.#storm.again;
    return tally;
  }

  /** Number of closed sockets that were reopened. */
  get reopened(): number {
    return this.#storm.reopened;
  }

  async start(): Promise<void> {
    const app = this.#client.accountPath(`/apps/${STORM_APP}`);
    await this.#client.insist("PUT", `${app}/secrets/HOOK`, { value: STORM_SECRET });
    const config = { name: STORM_APP, compatibility_date: "2026-11-20", ...STORM_CONFIG };
    await this.#client.insist("PUT", app, { config, bundle: STORM_CODE });
    await this.#storm.start();
  }

  stop(): Promise<void> {
    return this.#storm.stop();
  }

  async findProblems(): Promise<string[]> {
    await this.#storm.compare();
    return this.#storm.faults;
  }

  dispose(): void {
    this.#storm.close();
  }
}
