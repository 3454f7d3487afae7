/**
 * Runs an embedded nats-server beside this process: manages its store and port, restarts it, and ends a server that a
 * killed instance left behind.
 */

import { mkdir, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { DISK_POLL_MS } from "../schemas/limits.ts";
import { STORE_DISK_SHARE } from "../schemas/store-limits.ts";
import { type BusAccess, nkeyAccess } from "./bus-users/bus-access.ts";
import { makeSeeds } from "./bus-users/seeds.ts";
import { BUS_USERS } from "./bus-users/users.ts";
import type { DiskRoom } from "./disk-room.ts";
import { freePort } from "./free-port.ts";
import type { Logger } from "./logger.ts";
import { NATS_STOP_MS_MAX, NatsServer, newNatsPassword } from "./nats-server.ts";
import { processCommand } from "./process-command.ts";
import { REPOSITORY } from "./tools.ts";

/** Minimum free space to restart a nats-server after a failed write, and the pause before a further restart. */
const DISK_RESTART_BYTES = 8 * 1024 ** 2;
const DISK_RESTART_PAUSE_MS = 5_000;

/**
 * The shortest and longest pause before a crashed server is restarted. The first pause is hardly noticed. The longest
 * one protects a machine in trouble.
 */
const RESTART_MS = 100;
const RESTART_MS_MAX = 5_000;
/** A server that ran longer than this was healthy, so after its crash the pauses begin at the shortest again. */
const WELL_MS = 30_000;
const LEFTOVER_POLL_MS = 20;
/**
 * Log lines of nats-server after a failed write. The server then refuses messages for the stream of this write, or
 * for all streams.
 */
const WRITE_FAILED = /no space left on device|Critical write error|JetStream out of .*resources/;

/** The folder below the data folder with the seeds of the bus users, and the server configuration of these users. */
export const BUS_FOLDER = "bus";
/** The user for people. It has all permissions on the embedded bus; its address is in the file nats.url. */
const PERSON = "{ user: trunkline, password: $TRUNKLINE_NATS_PASSWORD }";

interface EmbeddedNatsOptions {
  logger: Logger;
  disk: DiskRoom;
  /** Ends the start. */
  signal?: AbortSignal;
  /** The oldest version of nats-server that may run. */
  versionMin?: string | undefined;
}

export class EmbeddedNats {
  /** The bus logins of the roles. Each role has a user with only the permissions that it needs. */
  readonly access: BusAccess;
  readonly #server: NatsServer;
  readonly #logger: Logger;
  readonly #stopped = new AbortController();
  #watch: Promise<void> = Promise.resolve();

  /**
   * Starts the server with its former passwords, and on its former port if that is free. The caller must have locked
   * the data folder. If the signal aborts, ends the server and rejects.
   */
  static async start(
    dataDir: string,
    { logger, disk, signal, versionMin }: EmbeddedNatsOptions,
  ): Promise<EmbeddedNats> {
    // The real path identifies a leftover server, even if this start names the folder by another path.
    const folder = await realpath(dataDir);
    const storeDir = join(folder, "nats");
    const pidFile = join(folder, "nats.pid");
    const urlFile = join(folder, "nats.url");
    const systemUrlFile = join(folder, "nats.system.url");
    await mkdir(storeDir, { recursive: true });
    await endLeftover(pidFile, logger);
    const bytesMax = Math.floor(disk.totalBytes * STORE_DISK_SHARE);
    const config = await writeConfig(join(folder, BUS_FOLDER), { logger, bytesMax });
    const [last, lastSystem] = await Promise.all([readUrl(urlFile), readUrl(systemUrlFile)]);
    const write = { hasFailed: false };
    const server = new NatsServer({
      config,
      name: "trunkline",
      storeDir,
      port: await freePort(last.port),
      // Uses the passwords of an earlier start, so that the URL stays the same.
      passwords: {
        trunkline: last.password ?? newNatsPassword(),
        system: lastSystem.password ?? newNatsPassword(),
      },
      versionMin,
      parameters: ["-P", pidFile],
      // The server runs in its own session: a Ctrl-C in the terminal must not end it before the roles have drained.
      detached: true,
      onLine(line) {
        logLine(logger, line);
        if (WRITE_FAILED.test(line)) write.hasFailed = true;
      },
      onSlowStart(seconds) {
        logger.info({ seconds }, "nats-server is not ready yet: it recovers its store");
      },
    });
    // The signal is sent before the first wait, so it also reaches the server if this process exits at once.
    const abandon = () => void server.stop();
    process.once("exit", abandon);
    await server.start(signal && { signal }).finally(() => process.removeListener("exit", abandon));
    await writeUrl(urlFile, server.url);
    await writeUrl(systemUrlFile, server.systemUrl);
    const access = await nkeyAccess({ url: server.url }, join(folder, BUS_FOLDER), BUS_USERS);
    return new EmbeddedNats(server, { access, logger, disk, write });
  }

  constructor(
    server: NatsServer,
    {
      access,
      logger,
      disk,
      write,
    }: {
      access: BusAccess;
      logger: Logger;
      disk: Pick<DiskRoom, "freeBytes">;
      write: { hasFailed: boolean };
    },
  ) {
    this.access = access;
    this.#server = server;
    this.#logger = logger;
    this.#watch = this.#keepRunning();
    void this.#restartAfterFullDisk(disk, write);
  }

  /** Ends the server. Resolves when the server has closed its store. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#watch;
    await this.#server.stop();
  }

  /** Sends the server the signal to end and does not wait. For an immediate exit of this process. */
  abandon(): void {
    this.#stopped.abort();
    void this.#server.stop(); // The signal is sent before the first wait.
  }

  /**
   * Restarts the server after a failed write, as soon as the disk has free space. Without a restart, the server would
   * keep the affected stream closed.
   */
  async #restartAfterFullDisk(
    disk: Pick<DiskRoom, "freeBytes">,
    write: { hasFailed: boolean },
  ): Promise<void> {
    const { signal } = this.#stopped;
    const pause = (ms: number) => wait(ms, undefined, { ref: false, signal }).catch(() => {});
    while (!signal.aborted) {
      await pause(DISK_POLL_MS);
      if (signal.aborted || !write.hasFailed || disk.freeBytes < DISK_RESTART_BYTES) continue;
      write.hasFailed = false;
      this.#logger.warn({ freeBytes: disk.freeBytes }, "disk has room, restarting nats-server");
      // `#keepRunning` starts it again.
      await this.#server.stop();
      await pause(DISK_RESTART_PAUSE_MS);
    }
  }

  async #keepRunning(): Promise<void> {
    const { signal } = this.#stopped;
    const stopped = new Promise<undefined>((resolve) => {
      signal.addEventListener("abort", () => resolve(undefined), { once: true });
    });
    let pauseMs = RESTART_MS;
    while (!signal.aborted) {
      const startedAt = performance.now();
      const reason = await Promise.race([this.#server.exited, stopped]);
      if (reason === undefined) return;
      if (performance.now() - startedAt > WELL_MS) pauseMs = RESTART_MS;
      this.#logger.error({ reason, pauseMs }, "nats-server ended, starting it again");
      await Promise.race([wait(pauseMs, undefined, { ref: false }), stopped]);
      if (signal.aborted) return;
      pauseMs = Math.min(2 * pauseMs, RESTART_MS_MAX);
      try {
        await this.#server.start({ signal });
        this.#logger.info({ pid: this.#server.pid }, "nats-server runs again");
      } catch (error) {
        if (!signal.aborted) this.#logger.error({ err: error }, "nats-server did not start");
      }
    }
  }
}

/**
 * Writes the configuration of the server, if it has changed: that of every server, the users of this one, and a limit
 * for the sizes of all streams. By itself, the server would not count what it stores already, and so refuse to grow
 * streams at a restart. Creates missing seeds, for example for data of an older version. Returns the path.
 */
async function writeConfig(
  folder: string,
  { logger, bytesMax }: { logger: Logger; bytesMax: number },
): Promise<string> {
  const { made, publicKeys } = await makeSeeds(folder);
  if (made.length > 0) logger.debug({ users: made }, "users of the bus made");
  // Loaded only here, because it loads the parser of YAML, which an instance with other servers does not need.
  const { SERVER_PART, serverPart } = await import("./bus-users/server-part.ts");
  await writeIfChanged(join(folder, SERVER_PART), serverPart(publicKeys, [PERSON]));
  const path = join(folder, "nats.conf");
  // nats-server resolves an included path relative to the including file.
  const basePath = join(REPOSITORY, "deploy/nats-base.conf");
  const base = relative(folder, basePath);
  const includes = [base, SERVER_PART].map((name) => `include ${JSON.stringify(name)}\n`);
  // The last block of a name counts, so it needs the settings of the first.
  const [, jetstream] = /^jetstream \{\n([^}]*)\}/m.exec(await readFile(basePath, "utf8")) ?? [];
  // Without these settings the server would start with an empty store elsewhere.
  if (jetstream === undefined)
    throw new Error(`Cannot read ${basePath}: it has no block "jetstream"`);
  const limited = `jetstream {\n${jetstream}  max_file: ${bytesMax}\n}\n`;
  await writeIfChanged(path, `${includes.join("")}${limited}`);
  return path;
}

/** Writes only changed files, because a start on a full disk must not need space for existing files. */
async function writeIfChanged(path: string, text: string): Promise<void> {
  if ((await readIfThere(path)) !== text) await writeFile(path, text);
}

/** Ends the server that a killed instance left running: two servers on one store would destroy the data. */
async function endLeftover(pidFile: string, logger: Logger): Promise<void> {
  const pid = Number(await readIfThere(pidFile));
  // Another program may have this process id now. Our server has the path of the pid file in its command line.
  if (!(pid > 0) || !processCommand(pid).includes(pidFile)) return;
  logger.warn({ pid }, "ending the nats-server of an instance that was killed");
  const deadline = performance.now() + NATS_STOP_MS_MAX;
  signalTo(pid, "SIGCONT");
  signalTo(pid, "SIGTERM");
  while (processCommand(pid).includes(pidFile)) {
    if (performance.now() > deadline) signalTo(pid, "SIGKILL");
    await wait(LEFTOVER_POLL_MS);
  }
  await rm(pidFile, { force: true });
}

function signalTo(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // The server has ended by itself.
  }
}

interface LastUrl {
  port: number | undefined;
  password: string | undefined;
}

async function readUrl(path: string): Promise<LastUrl> {
  const url = URL.parse((await readIfThere(path)).trim());
  return { port: Number(url?.port) || undefined, password: url?.password || undefined };
}

/**
 * Writes the file with the bus's URL. Only its owner may read it, because the URL gives access to all stored data.
 */
async function writeUrl(path: string, url: string): Promise<void> {
  await rm(path, { force: true });
  await writeFile(path, `${url}\n`, { mode: 0o600, flag: "wx" });
}

async function readIfThere(path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch {
    return ""; // The first start, or somebody tidied up.
  }
}

/**
 * Parses a log line `[pid] date time [LVL] text`, and writes its text to our log. Errors and warnings keep their
 * level; other lines become debug lines.
 */
function logLine(logger: Logger, line: string): void {
  // This warning does not apply: the passwords are random and only in the environment, so no file contains them.
  if (line.endsWith("Plaintext passwords detected, use nkeys or bcrypt")) return;
  const [, level, text] = /\[(INF|WRN|ERR|FTL)\] (.*)$/.exec(line) ?? [];
  if (level === "WRN") logger.warn({ text }, "nats-server warns");
  else if (level === "ERR" || level === "FTL")
    logger.error({ text }, "nats-server reports an error");
  else logger.debug({ text: text ?? line }, "nats-server log");
}
