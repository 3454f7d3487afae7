/** A gateway with repositories on a private bus: the real actors, git, and an account with all permissions. */
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { Registry } from "prom-client";
import { accountActor } from "../../actors/account/account/account.ts";
import { apiTokenActor } from "../../actors/account/api-token/api-token.ts";
import { requestLimitActor } from "../../actors/account/request-limit/request-limit.ts";
import { userActor } from "../../actors/account/user/user.ts";
import { newSecretKey, SecretBox } from "../../actors/apps/lib/app-secrets/secret-box.ts";
import { grantListActor } from "../../actors/oauth/grant-list/grant-list.ts";
import { oauthGrantActor } from "../../actors/oauth/oauth-grant/oauth-grant.ts";
import { gitStorageActor } from "../../actors/repositories/git-storage/git-storage.ts";
import { namespaceActor } from "../../actors/repositories/namespace/namespace.ts";
import { namespaceListActor } from "../../actors/repositories/namespace-list/namespace-list.ts";
import { packSweepActor } from "../../actors/repositories/pack-sweep/pack-sweep.ts";
import { repoActor } from "../../actors/repositories/repo/repo.ts";
import { repoEventsActor } from "../../actors/repositories/repo-events/repo-events.ts";
import { repoTokenActor } from "../../actors/repositories/repo-token/repo-token.ts";
import { BusLiveUpdates } from "../../actors/runtime/bus/live.ts";
import { systemClock } from "../../actors/runtime/lib/clock.ts";
import { BlobStore } from "../../actors/runtime/store/blob-store.ts";
import { ALL_PERMISSIONS, type Permission } from "../../schemas/account/permissions.ts";
import type { GitSizes } from "../../schemas/repositories/git-sizes.ts";
import { gitUpkeep } from "../../schemas/repositories/git-upkeep.ts";
import { repoImport } from "../../schemas/repositories/repo-import.ts";
import { startWorld, type World } from "../../scripts/testing/actor-world.ts";
import { buildApp, routeTable } from "../app.ts";
import { RequestCounts } from "../http/request-counts.ts";
import { KEEP_ALIVE_MS } from "../main.ts";
import { TokenFinder } from "../oauth/tokens/token-finder.ts";
import { type GitService, gitService } from "../repositories/git/git-service.ts";
import { type OpenedRepositories, openRepositories } from "../repositories/open-repositories.ts";
import { Checkout } from "../repositories/testing/git-world.ts";
import { checkDeclared, declaredBy } from "./declared-answers.ts";
import { type Asking, giveToken, openAccount, testConfig, type Wire } from "./test-gateway.ts";

export interface ArtifactsAnswer {
  status: number;
  headers: Headers;
  bytes: Buffer;
  text: string;
  // biome-ignore lint/suspicious/noExplicitAny: a test looks at the result of whatever route it asked.
  result: any;
  errors: Wire["errors"];
  // biome-ignore lint/suspicious/noExplicitAny: of either kind of list.
  info: any;
}

const ACTORS = [
  accountActor,
  apiTokenActor,
  gitStorageActor,
  grantListActor,
  namespaceListActor,
  oauthGrantActor,
  packSweepActor,
  repoActor,
  repoEventsActor,
  repoTokenActor,
  requestLimitActor,
  userActor,
];

interface ArtifactsOptions {
  readersMax?: number | undefined;
  sizes?: Partial<GitSizes> | undefined;
  /** The actor of namespaces, for example one that handles some messages late. */
  namespaces?: typeof namespaceActor;
}

export class ArtifactsWorld {
  readonly world: World;
  readonly folder: string;
  accountId = "";
  token = "";
  url = "";
  git!: GitService;
  opened!: OpenedRepositories;
  /** Faults in the log. */
  readonly faults: unknown[] = [];
  document: Record<string, unknown> = {};
  readonly #stops: (() => Promise<unknown>)[] = [];

  static async start({
    readersMax,
    sizes,
    namespaces = namespaceActor,
  }: ArtifactsOptions = {}): Promise<ArtifactsWorld> {
    const definitions = [...ACTORS, namespaces];
    const world = await startWorld({ definitions, tasks: [gitUpkeep, repoImport] });
    await world.host();
    const started = new ArtifactsWorld(
      world,
      await mkdtemp(join(tmpdir(), "trunkline-artifacts-")),
    );
    await started.#serve({ readersMax, sizes });
    return started;
  }

  constructor(world: World, folder: string) {
    this.world = world;
    this.folder = folder;
  }

  get base(): string {
    return `/accounts/${this.accountId}/artifacts/namespaces`;
  }

  async #serve({ readersMax, sizes }: Omit<ArtifactsOptions, "namespaces">): Promise<void> {
    const actors = this.world.client;
    this.accountId = await openAccount(actors, "One");
    this.token = await giveToken(actors, this.accountId, ALL_PERMISSIONS);
    const blobs = new BlobStore(this.world.bus, systemClock);
    const now = Date.now;
    const dataDir = this.folder;
    const live = new BusLiveUpdates(this.world.bus);
    const tokens = new TokenFinder({ actors, live, now });
    this.git = await gitService({ actors, blobs, dataDir, now, tokens, sizes });
    // The keep-alive time of production. With Node's default of 5 s, the server closes a connection while a test
    // computes, as the base64 of the largest file on a slow machine. The next request then fails with ECONNRESET.
    const server = createServer({ keepAliveTimeout: KEEP_ALIVE_MS }).listen(0, "127.0.0.1");
    await once(server, "listening");
    const address = server.address();
    if (address === null || typeof address === "string") throw new Error("no port");
    this.url = `http://127.0.0.1:${address.port}`;
    this.opened = openRepositories(
      { ...this.git.parts, publicUrl: this.url, now },
      readersMax === undefined ? {} : { readersMax },
    );
    const write = (line: string) => void this.faults.push(JSON.parse(line));
    const parts = {
      actors,
      blobs,
      live,
      secrets: new SecretBox([newSecretKey()]),
      git: this.git.router,
      repositories: this.opened.repositories,
      config: { ...testConfig, publicUrl: this.url, dataDir },
      logger: pino({ level: "error" }, { write }),
      registry: new Registry(),
      counts: new RequestCounts(),
      missing: () => [],
      now,
      stopping: new AbortController().signal,
    };
    const routes = routeTable(parts);
    server.on("request", buildApp(parts, routes));
    this.document = declaredBy(routes);
    this.#stops.push(
      () => this.git.stop(),
      () => this.opened.close(),
      async () => {
        server.closeAllConnections();
        server.close();
        if (server.listening) await once(server, "close");
      },
    );
  }

  tokenWith = (...permissions: Permission[]) =>
    giveToken(this.world.client, this.accountId, permissions);

  /** Sends a request. `path` is relative to the account's namespaces. */
  async ask(path: string, asking: Asking = {}): Promise<ArtifactsAnswer> {
    const { method = "GET", token = this.token, json, body, headers } = asking;
    const sent = json === undefined ? body : JSON.stringify(json);
    const response = await fetch(`${this.url}/v4${this.base}${path}`, {
      method,
      headers: {
        ...(token === null ? {} : { Authorization: `Bearer ${token}` }),
        ...(json === undefined ? {} : { "Content-Type": "application/json" }),
        ...headers,
      },
      ...(sent === undefined ? {} : { body: sent, duplex: "half" }),
    });
    const bytes = Buffer.from(await response.arrayBuffer());
    const text = bytes.toString("utf8");
    const type = response.headers.get("content-type") ?? "";
    const isJson = type.startsWith("application/json") && text !== "";
    const parsed = isJson ? JSON.parse(text) : undefined;
    const { status } = response;
    const below = `${this.base}${path}`;
    checkDeclared(this.document, { method, path: below, status, type, body: parsed });
    return {
      status,
      headers: response.headers,
      bytes,
      text,
      result: parsed?.result,
      errors: parsed?.errors ?? [],
      info: parsed?.result_info,
    };
  }

  post = (path: string, json: unknown) => this.ask(path, { method: "POST", json });

  /** Returns the remote address of a created repository, with its token in the address. */
  remote({ remote, token }: { remote: string; token: string }): string {
    return remote.replace("//", `//x:${token.split("?")[0]}@`);
  }

  async checkout(): Promise<Checkout> {
    const checkout = new Checkout(await mkdtemp(join(this.folder, "work-")));
    await checkout.git("init", "-q", "-b", "main");
    return checkout;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const stop of this.#stops) await stop();
    await this.world[Symbol.asyncDispose]();
    // A git process that the stopped gateway had started may still write files there, so the removal is retried.
    await rm(this.folder, { recursive: true, force: true, maxRetries: 10 });
  }
}
