/**
 * Runs one instance of Trunkline: starts the bus, then the roles; on a signal stops them in reverse and loses
 * nothing.
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
import type { Role } from "./settings.ts";
import { StopSignal } from "./stop-signal.ts";
import { startTracing } from "./tracing.ts";
import { needlessSettings, unknownSettings } from "./unknown-settings.ts";

/** Time for the bus to stop after the drain. */
const BUS_STOP_MS_MAX = 3_000;

const LISTENING: readonly RoleStart["role"][] = ["gateway", "health"];

/** The part of the drain's time that one role may use. The rest is for roles that stop after it. */
export const DRAIN_SHARE = 0.5;

export interface RoleContext {
  readonly config: Config;
  readonly logger: Logger;
  /** How each role reaches the embedded server, or the outside ones. */
  readonly access: BusAccess;
  /** The disk of the embedded server; undefined beside outside ones. */
  readonly disk: DiskRoom | undefined;
  /** Aborts when the instance stops, which ends starts that still wait. */
  readonly signal: AbortSignal;
}

export interface RunningRole {
  readonly name: string;
  /** Makes clients use another process, and continues to serve. Called TRUNKLINE_LEAVE_SECONDS before `stop`. */
  leave?(): void;
  /** Finishes work in flight or hands it over. */
  stop(): Promise<void>;
}

export interface RoleStart {
  /** `health` replaces the gateway in a process without one; `metrics` is there when they have a port of their own. */
  readonly role: Role | "health" | "metrics";
  /** Throws one line about a setting that prevents this role, before anything starts. */
  check?(config: Config): void;
  start(context: RoleContext): Promise<RunningRole>;
}

interface ProgramOptions {
  environment: NodeJS.ProcessEnv;
  /** Roles in the order in which they start. They stop in reverse. */
  roles: readonly RoleStart[];
  /** A listener that began before the program was loaded. */
  stopping?: StopSignal;
  /** Called when every role has started. */
  onReady(config: Config): void;
}

/** Starts, runs until a signal, and drains. Resolves with the exit code. A failed start prints one line. */
export async function runProgram(options: ProgramOptions): Promise<number> {
  try {
    return await run(options);
  } catch (error) {
    // A plain Error tells the operator what to do. Other errors are bugs, so their stack is printed.
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
  await using bus = await startBus(config, logger);
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
    // A start that the signal aborted is no failure.
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

async function startBus(config: Config, logger: Logger): Promise<ProgramBus> {
  makeDataDir(config.dataDir);
  if (config.natsUrl !== undefined) {
    const access = await outsideAccess(config, config.natsUrl, config.roles);
    return { access, disk: undefined, [Symbol.asyncDispose]: async () => {} };
  }
  const lock = lockDataDir(config.dataDir);
  const disk = await DiskRoom.start(config.dataDir, logger);
  const server = await EmbeddedNats.start(config.dataDir, { logger, disk });
  const abandon = () => server.abandon();
  process.once("exit", abandon);
  return {
    access: server.access,
    disk,
    async [Symbol.asyncDispose]() {
      if (!(await within(BUS_STOP_MS_MAX, server.stop())))
        logger.error({}, "nats-server did not end");
      await disk.stop();
      process.removeListener("exit", abandon);
      lock.release();
      logger.info({}, "stopped");
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

/** Load balancers check health only from time to time, and send requests until they notice that this process leaves. */
async function leave(running: readonly RunningRole[], seconds: number): Promise<void> {
  const leaving = running.filter((role) => role.leave);
  if (leaving.length === 0 || seconds === 0) return;
  for (const role of leaving) role.leave?.();
  await wait(seconds * 1_000);
}

/** Stops the roles, last started first. Returns false when a role did not finish in time. */
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

/** Resolves to whether the promise settled in time. */
async function within(timeMs: number, promise: Promise<unknown>): Promise<boolean> {
  const late = Promise.withResolvers<false>();
  const timer = setTimeout(() => late.resolve(false), timeMs);
  try {
    return await Promise.race([promise.then(() => true), late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

/** Resolves when the signal aborts, and keeps the process alive until then. */
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
