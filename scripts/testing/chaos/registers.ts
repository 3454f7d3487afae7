/** Reads and writes one field of OAuth clients and of repositories: their histories must be linearizable. */
import { CLIENT_CHANGES_PER_DAY_MAX } from "../../../actors/oauth/oauth-client/change-log.ts";
import { systemClock as clock } from "../../../actors/runtime/lib/clock.ts";
import { findViolation, type Operation } from "../linearizability.ts";
import type { SeededRandom } from "../seeded-random.ts";
import type { ChaosClient } from "./chaos-client.ts";
import { type ChaosLoad, Clients, Tally } from "./chaos-load.ts";

const WRITERS = 3;
const READERS = 2;
const PAUSE_MS_MAX = 300;

/** The value to write. Undefined means that the operation is a read. */
type Write = string | undefined;

const registerModel = {
  initial: "",
  step(value: string, input: Write, output: string | undefined) {
    if (input !== undefined) return input;
    return output === undefined || output === value ? value : undefined;
  },
};

/** One sort of registers: where they are and how to create one. A register is a field that clients read and write. */
interface Sort {
  name: string;
  /** The number of registers. */
  keys: number;
  /** The number of writes that the platform permits for one register. */
  writesMax: number;
  /** Creates one register with the value `first`, and returns its path. */
  create(index: number, first: string): Promise<string>;
  field: string;
}

export class RegisterLoad implements ChaosLoad {
  readonly name: string;
  readonly tally = new Tally(["writes", "reads"]);
  readonly #client: ChaosClient;
  readonly #random: SeededRandom;
  readonly #sort: Sort;
  readonly #clients = new Clients();
  readonly #history: Operation<Write, string>[] = [];
  #paths: string[] = [];
  /** The number of writes to each register, by its path. A register that has reached `writesMax` is only read. */
  readonly #written = new Map<string, number>();
  #writes = 0;

  constructor(client: ChaosClient, random: SeededRandom, sort: Sort) {
    this.#client = client;
    this.#random = random;
    this.#sort = sort;
    this.name = sort.name;
  }

  async start(): Promise<void> {
    const startedAt = clock.monotonic();
    this.#paths = await Promise.all(
      Array.from({ length: this.#sort.keys }, async (_, index) => {
        const value = `first ${index}`;
        const path = await this.#sort.create(index, value);
        const ended = { at: clock.monotonic(), output: value };
        this.#history.push({ key: path, input: value, startedAt, ended });
        return path;
      }),
    );
    for (let index = 0; index < WRITERS + READERS; index++) {
      const random = this.#random.fork();
      this.#clients.add(async () => {
        await clock.wait(random.next() * PAUSE_MS_MAX);
        const path = random.pick(this.#paths);
        const written = this.#written.get(path) ?? 0;
        const writes = index < WRITERS && written < this.#sort.writesMax;
        if (writes) this.#written.set(path, written + 1);
        await (writes ? this.#write(path) : this.#read(path));
      });
    }
  }

  stop(): Promise<void> {
    return this.#clients.stop();
  }

  async findProblems(): Promise<string[]> {
    for (const path of this.#paths) {
      const startedAt = clock.monotonic();
      const { json } = await this.#client.read(path);
      const ended = { at: clock.monotonic(), output: json.result[this.#sort.field] };
      this.#history.push({ key: path, input: undefined, startedAt, ended });
    }
    const violation = findViolation(registerModel, this.#history);
    return [
      ...this.tally.problems,
      ...this.#clients.problems,
      ...(violation ? [shown(violation)] : []),
    ];
  }

  async #write(path: string): Promise<void> {
    const value = `value ${++this.#writes}`;
    const startedAt = clock.monotonic();
    const json = { [this.#sort.field]: value };
    const unknown = this.tally.unknown;
    const ask = () => this.#client.ask("PATCH", path, { json });
    const answer = await this.tally.count(ask, { kind: "writes" });
    // The write was refused, so it had no effect and is not part of the history.
    if (!answer && this.tally.unknown === unknown) return;
    const ended = answer && { at: clock.monotonic(), output: value };
    this.#history.push({ key: path, input: value, startedAt, ...(ended && { ended }) });
  }

  async #read(path: string): Promise<void> {
    const startedAt = clock.monotonic();
    const answer = await this.tally.count(() => this.#client.ask("GET", path), { kind: "reads" });
    if (!answer) return;
    const ended = { at: clock.monotonic(), output: answer.json.result[this.#sort.field] };
    this.#history.push({ key: path, input: undefined, startedAt, ended });
  }
}

function shown({ key, state, explained, stuck }: NonNullable<ReturnType<typeof findViolation>>) {
  const next = JSON.stringify(stuck.slice(0, 10));
  return `${key} is not linearizable: ${explained} requests lead to "${state}", then none of ${next}`;
}

/** Registers in the names of OAuth clients. */
export function oauthClients(client: ChaosClient): Sort {
  const path = client.accountPath("/oauth_clients");
  return {
    name: "OAuth clients",
    keys: 24,
    // The platform's limit minus one, because the creation counts as a change.
    writesMax: CLIENT_CHANGES_PER_DAY_MAX - 1,
    field: "client_name",
    async create(_index, first) {
      const { json } = await client.insist("POST", path, {
        client_name: first,
        grant_types: ["authorization_code"],
        response_types: ["code"],
        redirect_uris: ["https://bot.example.com/callback"],
        scopes: ["account.read"],
        token_endpoint_auth_method: "client_secret_basic",
      });
      return `${path}/${json.result.client_id}`;
    },
  };
}

/** Registers in the descriptions of repositories. */
export function repositories(client: ChaosClient): Sort {
  const path = client.accountPath("/artifacts/namespaces/registers/repos");
  return {
    name: "repositories",
    keys: 6,
    writesMax: Number.POSITIVE_INFINITY,
    field: "description",
    async create(index, first) {
      const name = `register-${index}`;
      await client.insist("POST", path, { name, description: first });
      return `${path}/${name}`;
    },
  };
}
