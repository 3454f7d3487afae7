/** Prints PDFs continuously, and checks that each response is a complete document or an error. */
import { systemClock as clock } from "../../../actors/runtime/lib/clock.ts";
import type { SeededRandom } from "../seeded-random.ts";
import type { ChaosClient } from "./chaos-client.ts";
import { type ChaosLoad, Clients, Tally } from "./chaos-load.ts";

const CLIENTS = 2;
const PAUSE_MS_MAX = 1_500;

export class PdfLoad implements ChaosLoad {
  readonly name = "PDFs";
  readonly tally = new Tally();
  readonly #client: ChaosClient;
  readonly #random: SeededRandom;
  readonly #clients = new Clients();
  #printed = 0;

  constructor(client: ChaosClient, random: SeededRandom) {
    this.#client = client;
    this.#random = random;
  }

  async start(): Promise<void> {
    for (let index = 0; index < CLIENTS; index++) {
      const random = this.#random.fork();
      this.#clients.add(async () => {
        await clock.wait(random.next() * PAUSE_MS_MAX);
        await this.#print();
      });
    }
  }

  stop(): Promise<void> {
    return this.#clients.stop();
  }

  async findProblems(): Promise<string[]> {
    return [...this.tally.problems, ...this.#clients.problems];
  }

  async #print(): Promise<void> {
    const path = this.#client.accountPath("/browser-rendering/pdf?cacheTTL=0");
    const json = { html: `<h1>Page ${++this.#printed}</h1>` };
    // 429 is expected: the browsers that still run have no free slot.
    const answer = await this.tally.count(() => this.#client.ask("POST", path, { json }), {
      expected: [429],
    });
    const body = answer?.body.toString("latin1") ?? "%PDF-%%EOF";
    if (!body.startsWith("%PDF-") || !body.trimEnd().endsWith("%%EOF")) {
      throw new Error(`A PDF is not whole: ${body.length} bytes, ${body.slice(0, 100)}`);
    }
  }
}
