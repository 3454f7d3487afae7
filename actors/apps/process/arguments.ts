/** The start of an app's process, so that it can read its code and write its databases, and reach nothing else. */
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { APP_HEAP_MB_MAX } from "../../../schemas/apps/limits.ts";
import { moduleBeside } from "../../../schemas/module-beside.ts";

/**
 * Old objects are not looked through below this: with V8's few MB a busy app did so every 200 events, a tenth of its
 * processor.
 */
const HEAP_MB_FIRST = 64;

export interface ProcessFolders {
  /** With the bundle; read only. */
  bundleFolder: string;
  /** For databases while they are open, of this process alone: best in memory, as nothing in it need outlive it. */
  workFolder: string;
  heapMb?: number;
}

/** For `fork(main, [], options)`; whose user id it runs under is the host's to say. */
export interface ProcessArguments {
  main: string;
  options: {
    /** Node where it is absent. */
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
        // Code comes from the bundle alone: what is made of text would be outside of the rules for imports.
        "--disallow-code-generation-from-strings",
        "--no-addons",
        "--no-experimental-webstorage",
        // A signal would open the debugger's port.
        "--disable-sigusr1",
        "--disable-warning=ExperimentalWarning",
        "--disable-warning=SecurityWarning",
      ],
      // The process gets nothing of the host's environment. Its time zone is the same on every host.
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
