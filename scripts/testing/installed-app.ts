/** Installs npm packages outside of the repository, and deploys apps that use them. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { cp, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stop } from "esbuild";
import { readAppConfig } from "../cli/app-config-file.ts";
import { bundleApp } from "../cli/bundle-app.ts";
import type { AppPlatform } from "./app-platform.ts";

/** A folder with installed packages and their dependencies. Apps in its subfolders can import these packages. */
export class InstalledPackages implements AsyncDisposable {
  readonly folder: string;

  static async install(versions: Readonly<Record<string, string>>): Promise<InstalledPackages> {
    const folder = await mkdtemp(join(tmpdir(), "trunkline-packages-"));
    const names = Object.entries(versions).map(([name, version]) => `${name}@${version}`);
    await writeFile(join(folder, "package.json"), '{ "private": true }');
    const quiet = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
    // Uses a separate cache, because npm fails if another program cleans the shared cache during the installation.
    const cache = ["--cache", join(folder, "cache")];
    const npm = spawn("npm", ["install", ...cache, ...quiet, ...names], {
      cwd: folder,
      stdio: ["ignore", "ignore", "inherit"],
    });
    const [code] = await once(npm, "exit");
    if (code !== 0) throw new Error(`Cannot install ${names.join(", ")}: npm ended with ${code}`);
    return new InstalledPackages(folder);
  }

  constructor(folder: string) {
    this.folder = folder;
  }

  /** Bundles and deploys an app from its code or from a folder, as the command line does. */
  async deploy(
    platform: AppPlatform,
    name: string,
    app: { code: string; config?: object } | { source: string },
  ): Promise<void> {
    const folder = join(this.folder, name);
    if ("source" in app) await cp(app.source, folder, { recursive: true });
    else {
      await mkdir(folder);
      await writeFile(join(folder, "index.ts"), app.code);
      const config = { name, main: "index.ts", compatibility_date: "2026-11-20", ...app.config };
      await writeFile(join(folder, "trunkline.jsonc"), JSON.stringify(config));
    }
    const file = readAppConfig(join(folder, "trunkline.jsonc"));
    const bundle = await bundleApp(file);
    const { body } = await platform.deploy(name, bundle, file.config);
    if (!body.success) throw new Error(`Cannot deploy ${name}: ${JSON.stringify(body.errors)}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await stop();
    await rm(this.folder, { recursive: true, force: true, maxRetries: 10 });
  }
}
