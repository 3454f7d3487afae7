/** Computes the arguments of an app's process, so that it can only read its code and write its databases. */
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { APP_HEAP_MB_MAX } from "../../../schemas/apps/limits.ts";
import { moduleBeside } from "../../../schemas/module-beside.ts";

/**
 * The heap size at which V8 first collects old objects. V8's default is a few MB. With it, a busy app collected
 * garbage every 200 events, which took a tenth of its processor time.
 */
const HEAP_MB_FIRST = 64;

export interface ProcessFolders {
  /** The folder with the bundle; read only. */
  bundleFolder: string;
  /**
   * The folder for the open databases of this process only. It should be in memory, because its files need not
   * outlive the process.
   */
  workFolder: string;
  heapMb?: number;
}

/** Arguments for `fork(main, [], options)`. The host adds the user id. */
export interface ProcessArguments {
  main: string;
  options: {
    /** Defaults to Node. */
    execPath?: string;
    execArgv: string[];
    env: Record<string, string>;
    cwd: string;
    serialization: "advanced";
  };
}

export function processArguments({
  bundleFolder,
  workFolder,
  heapMb = APP_HEAP_MB_MAX,
}: ProcessFolders): ProcessArguments {
  const here = import.meta.dirname;
  const repository = join(here, "../../..");
  const readable = [
    join(here, "../package"),
    here,
    join(repository, "schemas"),
    join(repository, "package.json"),
    packageFolder("croner"),
    bundleFolder,
    workFolder,
  ];
  return {
    main: fileURLToPath(moduleBeside(import.meta.url, "./main")),
    options: {
      execArgv: [
        "--permission",
        ...readable.map((path) => `--allow-fs-read=${path}`),
        `--allow-fs-write=${workFolder}`,
        `--max-old-space-size=${heapMb}`,
        `--initial-old-space-size=${HEAP_MB_FIRST}`,
        // Code comes only from the bundle: code made from text would escape the rules for imports.
        "--disallow-code-generation-from-strings",
        "--no-addons",
        "--no-experimental-webstorage",
        // The signal SIGUSR1 would open the debugger's port.
        "--disable-sigusr1",
        "--disable-warning=ExperimentalWarning",
        "--disable-warning=SecurityWarning",
      ],
      // The process inherits no environment variables of the host. Its time zone is the same on every host.
      env: { TZ: "UTC" },
      cwd: workFolder,
      serialization: "advanced",
    },
  };
}

function packageFolder(name: string): string {
  const entry = fileURLToPath(import.meta.resolve(name));
  const last = entry.lastIndexOf(join("node_modules", name));
  return last < 0 ? dirname(entry) : entry.slice(0, last + join("node_modules", name).length);
}
