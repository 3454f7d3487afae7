/** `trunkline dev`: deploys an app to the local platform after each save, and prints the app's log. */
import { watch } from "node:fs";
import { basename } from "node:path";
import { type BuildContext, type BuildResult, context } from "esbuild";
import { type AppConfigFile, CONFIG_FILE, readAppConfig } from "./app-config-file.ts";
import { bundleOptions, checkedBundle, linesOf } from "./bundle-app.ts";
import {
  CONFIG_HELP,
  CONFIG_OPTION,
  type Command,
  CommandFailure,
  readParameters,
} from "./command.ts";
import { putApp, warnOfFuture } from "./deploy.ts";
import { followLogs, lineText } from "./follow-logs.ts";
import { openPlatform, type Platform } from "./platform.ts";
import { untilStopped } from "./stop-signal.ts";

const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/;

export const dev: Command = {
  name: "dev",
  usage: "[--config <file>] [--remote]",
  summary: "deploy the app to the local platform at each save, and print its log",
  help: `Deploys under the app's own name. If a saved version does not compile or start, dev says why, and the former version
goes on. Ctrl-C ends dev; the app stays deployed.

${CONFIG_HELP}
  --remote              allow a platform on another machine`,
  async run(parameters, environment) {
    const { values } = readParameters(parameters, {
      options: { ...CONFIG_OPTION, remote: { type: "boolean" } },
    });
    const path = (values.config as string | undefined) ?? CONFIG_FILE;
    // A fault in the configuration at the start ends `dev`. A later fault does not, because the file may be in the
    // middle of an edit.
    readAppConfig(path);
    const platform = await openPlatform(environment);
    const { hostname } = new URL(platform.apiUrl);
    if (values.remote !== true && !LOOPBACK.test(hostname)) {
      throw new CommandFailure(
        `Cannot deploy at each save to ${hostname}: it is not this machine; pass --remote to deploy there`,
      );
    }
    await new Development(platform, path, untilStopped()).run();
  },
};

interface Saved {
  file: AppConfigFile;
  bundle: string;
}

class Development {
  readonly #platform: Platform;
  readonly #path: string;
  readonly #signal: AbortSignal;
  #building: BuildContext | undefined;
  #opening: Promise<void> = Promise.resolve();
  /** The newest saved version that is not deployed yet. Older versions that are not deployed are skipped. */
  #next: Saved | undefined;
  #deployed = "";
  #isDeploying = false;
  #following: AbortController | undefined;
  #followed = "";

  constructor(platform: Platform, path: string, signal: AbortSignal) {
    this.#platform = platform;
    this.#path = path;
    this.#signal = signal;
  }

  /** Watches and deploys until the signal aborts. */
  async run(): Promise<void> {
    const stopped = Promise.withResolvers<void>();
    this.#signal.addEventListener("abort", () => stopped.resolve(), { once: true });
    const { folder, path } = readAppConfig(this.#path);
    // Watches the folder instead of the file, because many editors save by replacing the file.
    const watcher = watch(folder, (_event, name) => {
      if (name === basename(path)) this.#reopen();
    });
    this.#reopen();
    await stopped.promise;
    watcher.close();
    this.#following?.abort();
    await this.#opening;
    await this.#building?.dispose();
  }

  #reopen(): void {
    this.#opening = this.#opening.then(() => this.#open());
  }

  async #open(): Promise<void> {
    try {
      const file = readAppConfig(this.#path);
      warnOfFuture(file);
      const { plugins, ...options } = bundleOptions(file);
      const told = {
        name: "what was saved",
        setup: (build: { onEnd(listener: (result: BuildResult) => Promise<void>): void }) =>
          build.onEnd((result) => this.#built(file, result)),
      };
      const building = await context({ ...options, plugins: [...plugins, told] });
      await this.#building?.dispose();
      this.#building = building;
      await building.watch();
    } catch (error) {
      printError(error);
    }
  }

  async #built(file: AppConfigFile, { errors, warnings, outputFiles }: BuildResult): Promise<void> {
    for (const line of await linesOf(warnings, "warning")) console.error(line);
    for (const line of await linesOf(errors, "error")) console.error(line);
    const [bundle] = outputFiles ?? [];
    if (errors.length > 0 || bundle === undefined) return this.#stays();
    try {
      this.#next = { file, bundle: checkedBundle(bundle.text) };
    } catch (error) {
      printError(error);
      return this.#stays();
    }
    void this.#deploy(); // It never rejects.
  }

  async #deploy(): Promise<void> {
    if (this.#isDeploying) return;
    this.#isDeploying = true;
    for (let saved = this.#next; saved && !this.#signal.aborted; saved = this.#next) {
      this.#next = undefined;
      const content = JSON.stringify([saved.file.config, saved.bundle]);
      if (content === this.#deployed) continue;
      try {
        const app = await putApp(this.#platform, saved.file, saved.bundle);
        this.#deployed = content;
        console.error(`Version ${app.serving_version} serves at ${app.url}`);
        this.#follow(app.name);
      } catch (error) {
        printError(error);
        this.#stays();
      }
    }
    this.#isDeploying = false;
  }

  #stays(): void {
    if (this.#deployed !== "") console.error("The previous version keeps serving");
  }

  #follow(app: string): void {
    if (this.#followed === app) return;
    this.#followed = app;
    this.#following?.abort();
    const following = new AbortController();
    this.#following = following;
    const { signal } = following;
    const print = (line: Parameters<typeof lineText>[0]) => console.log(lineText(line));
    followLogs(this.#platform, { app, earlier: 0, signal, print }).catch((error: unknown) => {
      printError(error);
      // Following the log failed, perhaps because the app was deleted. The next save starts to follow it again.
      if (this.#followed === app) this.#followed = "";
    });
  }
}

function printError(error: unknown): void {
  console.error(error instanceof Error ? error.message : error);
}
