/**
 * Gotenberg as the reference for PDFs, with the same browser as Trunkline. The variable GOTENBERG names the program;
 * docs/benchmarks.md explains how to build it.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { freePort } from "../../free-port.ts";
import { findChromium } from "../../tools.ts";

const START_TRIES_MAX = 600;
const POLL_MS = 50;
const NO_TOOL = "/bin/true";

export class Gotenberg implements AsyncDisposable {
  readonly #process: ChildProcess;
  readonly #folder: string;
  readonly #url: string;

  static async start(program: string): Promise<Gotenberg> {
    const folder = await mkdtemp(join(tmpdir(), "gotenberg-bench-"));
    const port = await freePort();
    // Runs Gotenberg in its own process namespace: its supervisor kills every Chromium process that it can see, and
    // must not see Trunkline's.
    const apart = ["--pid", "--fork", "--mount-proc", "--kill-child", program];
    const settings = ["--chromium-auto-start", "--log-level=error", "--api-timeout=300s"];
    const child = spawn("unshare", [...apart, `--api-port=${port}`, ...settings], {
      cwd: folder,
      stdio: ["ignore", "ignore", "inherit"],
      env: {
        PATH: process.env.PATH,
        HOME: folder,
        TMPDIR: folder,
        CHROMIUM_BIN_PATH: findChromium(),
        CHROMIUM_HYPHEN_DATA_DIR_PATH: folder,
        // Gotenberg does not start without these programs, but does not use them to print a page.
        ...{ EXIFTOOL_BIN_PATH: NO_TOOL, PDFCPU_BIN_PATH: NO_TOOL, PDFTK_BIN_PATH: NO_TOOL },
        ...{ QPDF_BIN_PATH: NO_TOOL, PDFENGINES_CONVERT_ENGINES: "" },
        OTEL_TRACES_EXPORTER: "none",
        OTEL_METRICS_EXPORTER: "none",
        OTEL_LOGS_EXPORTER: "none",
      },
    });
    const gotenberg = new Gotenberg(child, folder, `http://127.0.0.1:${port}`);
    await gotenberg.#untilReady();
    return gotenberg;
  }

  constructor(child: ChildProcess, folder: string, url: string) {
    this.#process = child;
    this.#folder = folder;
    this.#url = url;
    process.once("exit", () => this.#process.kill("SIGKILL"));
  }

  get pid(): number {
    if (this.#process.pid === undefined) throw new Error("Cannot name a pid: nothing runs");
    return this.#process.pid;
  }

  async print(page: { html: string } | { url: string }): Promise<ArrayBuffer> {
    const form = new FormData();
    // Trunkline and puppeteer also create tagged PDFs by default.
    form.append("generateTaggedPdf", "true");
    if ("url" in page) form.append("url", page.url);
    else form.append("files", new Blob([page.html], { type: "text/html" }), "index.html");
    const route = `forms/chromium/convert/${"url" in page ? "url" : "html"}`;
    const answer = await fetch(`${this.#url}/${route}`, { method: "POST", body: form });
    if (answer.ok) return await answer.arrayBuffer();
    throw new Error(`Cannot print with Gotenberg: ${answer.status} ${await answer.text()}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#process.exitCode === null && this.#process.signalCode === null) {
      const exited = once(this.#process, "exit");
      // Because of `--kill-child`, this ends all processes of the namespace.
      this.#process.kill("SIGKILL");
      await exited;
    }
    await rm(this.#folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 });
  }

  async #untilReady(): Promise<void> {
    for (let tries = 0; tries < START_TRIES_MAX; tries++) {
      const answer = await fetch(`${this.#url}/health`).catch(() => undefined);
      if (answer?.ok) return;
      await setTimeout(POLL_MS);
    }
    throw new Error("Cannot start Gotenberg: it is not ready");
  }
}
