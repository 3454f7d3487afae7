/**
 * Fixed results for libraries that use closed modules while they load: the system's name, terminal tests, a clock,
 * and channels without subscribers. No result depends on the machine.
 */
import safeProcess from "./safe-process.ts";

/** Returns the parts of a closed module that work nevertheless. */
export function harmlessParts(name: string): Record<string, unknown> {
  switch (name) {
    case "os":
      return systemParts();
    case "tty":
      return { isatty: () => false };
    case "perf_hooks":
      return { performance };
    case "diagnostics_channel":
      return channelParts();
    default:
      return {};
  }
}

function systemParts() {
  const answers = {
    arch: safeProcess.arch,
    availableParallelism: 1,
    cpus: [],
    endianness: "LE",
    freemem: 0,
    homedir: "/",
    hostname: "localhost",
    loadavg: [0, 0, 0],
    networkInterfaces: {},
    platform: safeProcess.platform,
    release: "",
    tmpdir: "/tmp",
    totalmem: 0,
    type: "",
    uptime: 0,
    version: "",
  };
  return Object.fromEntries(
    Object.entries(answers).map(([name, value]) => [name, () => structuredClone(value)]),
  );
}

/**
 * Returns channels without subscribers. Node's own channels would reveal the activity of other code in the process.
 */
function channelParts() {
  const silent = { hasSubscribers: false, subscribe() {}, unsubscribe: () => false };
  const channel = (name: string | symbol) => ({
    ...silent,
    name,
    publish() {},
    bindStore() {},
    unbindStore: () => false,
    runStores: run,
  });
  const tracingChannel = () => ({
    ...silent,
    ...Object.fromEntries(EVENTS.map((event) => [event, channel(event)])),
    traceSync: (work: Work, ...rest: unknown[]) => run(undefined, work, ...rest.slice(1)),
    tracePromise: (work: Work, ...rest: unknown[]) => run(undefined, work, ...rest.slice(1)),
    traceCallback: (work: Work, ...rest: unknown[]) => run(undefined, work, ...rest.slice(2)),
  });
  return { ...silent, hasSubscribers: () => false, channel, tracingChannel };
}

type Work = (...args: unknown[]) => unknown;

const EVENTS = ["start", "end", "asyncStart", "asyncEnd", "error"];

function run(_data: unknown, work: Work, self?: unknown, ...args: unknown[]): unknown {
  return Reflect.apply(work, self, args);
}
