/** `process` for app code: the parts that libraries read, and nothing that affects the process itself. */
import { hrtime as realHrtime, nextTick as realNextTick } from "node:process";

const real = globalThis.process;
const started = performance.now();

function refuse(name: string) {
  return () => {
    throw new Error(`process.${name} is not available to apps`);
  };
}

const quiet = () => safeProcess;

const safeProcess = {
  title: "trunkline-app",
  version: real.version,
  versions: Object.freeze({ ...real.versions }),
  platform: real.platform,
  arch: real.arch,
  release: Object.freeze({ name: "node" }),
  pid: 1,
  ppid: 0,
  argv: [] as string[],
  execArgv: [] as string[],
  env: {} as Record<string, string>,
  exitCode: undefined,
  features: Object.freeze({}),
  browser: false,
  cwd: () => "/",
  uptime: () => (performance.now() - started) / 1000,
  nextTick: (callback: (...args: unknown[]) => void, ...args: unknown[]) =>
    realNextTick(callback, ...args),
  hrtime: Object.assign((time?: [number, number]) => realHrtime(time), {
    bigint: () => realHrtime.bigint(),
  }),
  memoryUsage: Object.assign(() => ({ ...real.memoryUsage() }), {
    rss: () => real.memoryUsage().rss,
  }),
  emitWarning: (warning: unknown) => console.warn(String(warning)),
  // These functions do nothing, because only the platform handles events of the process.
  on: quiet,
  once: quiet,
  off: quiet,
  addListener: quiet,
  removeListener: quiet,
  removeAllListeners: quiet,
  emit: () => false,
  listeners: () => [] as unknown[],
  listenerCount: () => 0,
  exit: refuse("exit"),
  abort: refuse("abort"),
  kill: refuse("kill"),
  binding: refuse("binding"),
  dlopen: refuse("dlopen"),
  chdir: refuse("chdir"),
};

export default safeProcess;
export const {
  argv,
  arch,
  cwd,
  emitWarning,
  env,
  hrtime,
  nextTick,
  platform,
  uptime,
  version,
  versions,
} = safeProcess;
