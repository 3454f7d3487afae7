/**
 * Runs one instance of Trunkline: starts the bus and then the roles. On a signal, stops them in reverse order without
 * losing work.
 */
import { accessSync, constants, mkdirSync } from "node:fs";
import { setTimeout as wait } from "node:timers/promises";
import type { BusAccess } from "./bus-users/bus-access.ts";
import { outsideAccess } from "./bus-users/outside-access.ts";
import { type Config, configFromEnvironment } from "./config.ts";
import { lockDataDir } from "./data-lock.ts";
import { DiskRoom } from "./disk-room.ts";
import { EmbeddedNats } from "./embedded-nats.ts";
import { checkListening } from "./listening-check.ts";
import { createLogger, type Logger } from "./logger.ts";
import { NATS_STOP_MS_MAX } from "./nats-server.ts";
import type { Role } from "./settings.ts";
import { StopSignal } from "./stop-signal.ts";
import { startTracing } from "./tracing.ts";
import { needlessSettings, unknownSettings } from "./unknown-settings.ts";

const LISTENING: readonly RoleStart["role"][] = ["gateway", "health"];

/** The share of the drain's time that one role may use. The rest is for the roles that stop after it. */
export const DRAIN_SHARE = 0.5;

export interface RoleContext {
  readonly config: Config;
  readonly logger: Logger;
  /** The bus access of each role, for the embedded server or for outside servers. */
  readonly access: BusAccess;
  /** Free space of the embedded server's disk. Undefined with outside servers. */
  readonly disk: DiskRoom | undefined;
  /** Aborts when the instance stops. Starts of roles that still wait then end. */
  readonly signal: AbortSignal;
}

export interface RunningRole {
  readonly name: string;
  /**
   * Makes clients use another process, while this role continues to serve. Called TRUNKLINE_LEAVE_SECONDS before
   * `stop`.
   */
  leave?(): void;
  /** Finishes the work in progress, or hands it over to another process. */
  stop(): Promise<void>;
}

export interface RoleStart {
  /** `health` replaces the gateway in a process without one. `metrics` exists if metrics have a separate port. */
  readonly role: Role | "health" | "metrics";
  /** Throws a one-line error if a setting prevents this role. Called before any role starts. */
  check?(config: Config): void;
  start(context: RoleContext): Promise<RunningRole>;
}

interface ProgramOptions {
  environment: NodeJS.ProcessEnv;
  /** Roles in the order in which they start. They stop in reverse. */
  roles: readonly RoleStart[];
  /** The signal listener of a process that began to listen before this module was loaded. */
  stopping?: StopSignal;
  /** Called when all roles have started. */
  onReady(config: Config): void;
}

/**
 * Starts the instance, runs it until a signal, and drains it. Resolves with the exit code. A failed start prints a
 * one-line error.
 */
export async function runProgram(options: ProgramOptions): Promise<number> {
  try {
    return await run(options);
  } catch (error) {
    // A plain Error tells the operator what to do, so only its message is printed. Other errors are bugs, and their
    // stack is printed.
    const plain = error instanceof Error && error.name === "Error";
    console.error(plain ? error.message : error);
    return 1;
  }
}

async function run(options: ProgramOptions): Promise<number> {
  const { environment, roles, onReady, stopping = new StopSignal() } = options;
  const { signal } = stopping;
  const config = configFromEnvironment(environment);
  const wanted: readonly RoleStart["role"][] = [
    ...config.roles,
    ...(config.roles.includes("gateway") ? [] : (["health"] as const)),
    ...(config.metricsPort === undefined ? [] : (["metrics"] as const)),
  ];
  const chosen = roles.filter(({ role }) => wanted.includes(role));
  for (const role of chosen) role.check?.(config);
  if (chosen.some(({ role }) => LISTENING.includes(role))) await checkListening(config);
  const logger = createLogger({ level: config.logLevel });
  const warnings = [...unknownSettings(environment), ...needlessSettings(config)];
  for (const warning of warnings) logger.warn({}, warning);
  stopping.onImpatience = (name) => logger.warn({ signal: name }, "stopping at once");
  const logStopping = () => logger.info({ signal: signal.reason }, "stopping");
  if (signal.aborted) {
    logStopping();
    return 0;
  }
  signal.addEventListener("abort", logStopping, { once: true });
  const tracing = config.otlpEndpoint && (await startTracing(config.otlpEndpoint));
  await using bus = await startBus(config, logger, signal);
  if (!bus) return 0;
  const running: RunningRole[] = [];
  const { access, disk } = bus;
  const context = { config, logger, access, disk, signal };
  let failure: unknown;
  try {
    for (const { role, start } of chosen) {
      if (signal.aborted) continue;
      running.push(await start(context));
      logger.info({ role }, "role started");
    }
    if (!signal.aborted) onReady(config);
    await aborted(signal);
  } catch (error) {
    // If the stop signal aborted the start, this is not a failure.
    if (!signal.aborted) failure = error;
  }
  if (failure === undefined) await leave(running, config.leaveSeconds);
  const drained = await drain(running, config.shutdownSeconds * 1_000, logger);
  if (tracing) await tracing.stop();
  if (failure !== undefined) throw failure;
  return drained ? 0 : 1;
}

interface ProgramBus extends AsyncDisposable {
  access: BusAccess;
  disk: DiskRoom | undefined;
}

/** Resolves with undefined if the signal aborts before the bus runs. */
async function startBus(
  config: Config,
  logger: Logger,
  signal: AbortSignal,
): Promise<ProgramBus | undefined> {
  makeDataDir(config.dataDir);
  if (config.natsUrl !== undefined) {
    const access = await outsideAccess(config, config.natsUrl, config.roles);
    return { access, disk: undefined, [Symbol.asyncDispose]: async () => {} };
  }
  const lock = lockDataDir(config.dataDir);
  const disk = await DiskRoom.start(config.dataDir, logger);
  const close = async () => {
    await disk.stop();
    lock.release();
    logger.info({}, "stopped");
  };
  const server = await EmbeddedNats.start(config.dataDir, { logger, disk, signal }).catch(
    async (error: unknown) => {
      if (!signal.aborted) throw error;
      await close();
    },
  );
  if (!server) return undefined;
  const abandon = () => server.abandon();
  process.once("exit", abandon);
  return {
    access: server.access,
    disk,
    async [Symbol.asyncDispose]() {
      if (!(await within(NATS_STOP_MS_MAX, server.stop())))
        logger.error({}, "nats-server did not end");
      process.removeListener("exit", abandon);
      await close();
    },
  };
}

function makeDataDir(dataDir: string): void {
  try {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 });
    accessSync(dataDir, constants.W_OK);
  } catch (error) {
    const expected = "a folder that this user may write to";
    throw new Error(`TRUNKLINE_DATA: expected ${expected}, found "${dataDir}"`, { cause: error });
  }
}

/**
 * Marks this process as leaving, and waits. Load balancers check health only at intervals, and send requests until
 * they notice that the process leaves.
 */
async function leave(running: readonly RunningRole[], seconds: number): Promise<void> {
  const leaving = running.filter((role) => role.leave);
  if (leaving.length === 0 || seconds === 0) return;
  for (const role of leaving) role.leave?.();
  await wait(seconds * 1_000);
}

/**
 * Stops the roles in reverse order of their start. Returns false if a role failed to stop or did not finish in time.
 */
async function drain(running: RunningRole[], drainMs: number, logger: Logger): Promise<boolean> {
  let clean = true;
  const left = running.map(({ name }) => name);
  const stopped = (async () => {
    for (const role of running.toReversed()) {
      try {
        await role.stop();
      } catch (error) {
        clean = false;
        logger.error({ role: role.name, err: error }, "role failed to stop");
      }
      left.pop();
      logger.info({ role: role.name }, "role stopped");
    }
  })();
  if (await within(drainMs, stopped)) return clean;
  logger.error({ roles: left, drainMs }, "shutdown cut off: the time to stop is over");
  return false;
}

/** Resolves with true if the promise settled in time. */
async function within(timeMs: number, promise: Promise<unknown>): Promise<boolean> {
  const late = Promise.withResolvers<false>();
  const timer = setTimeout(() => late.resolve(false), timeMs);
  try {
    return await Promise.race([promise.then(() => true), late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

/** Keeps the process alive until the signal aborts, and then resolves. */
function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const alive = setInterval(() => {}, 2 ** 30);
    const done = () => {
      clearInterval(alive);
      resolve();
    };
    if (signal.aborted) done();
    else signal.addEventListener("abort", done, { once: true });
  });
}
