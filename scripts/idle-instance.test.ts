import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "@nats-io/transport-node";
import { expect } from "chai";
import { readBusAddress } from "../actors/runtime/bus/bus-address.ts";
import { freePort } from "./free-port.ts";
import { ChildProgram } from "./testing/child-program.ts";
import { startCommand, startVariables } from "./testing/start-command.ts";
import { until } from "./testing/until.ts";

/**
 * Packages that an instance loads only when a request needs them: for browsers, bundles, AI models, Markdown, OAuth and
 * traces.
 */
const FOR_WORK = [
  "puppeteer-core",
  "@puppeteer/browsers",
  "esbuild",
  "ai",
  "@ai-sdk/openai-compatible",
  "ajv",
  "turndown",
  "parse5",
  "marked",
  "lowlight",
  "highlight.js",
  "preact",
  "swagger-ui-dist",
  "jsonc-parser",
  "croner",
  "@cantoo/pdf-lib",
  "@zxcvbn-ts/language-common",
  "oidc-provider",
  "koa",
  "jose",
  "@opentelemetry/exporter-trace-otlp-http",
  "@opentelemetry/resources",
  "@opentelemetry/sdk-trace-node",
];
/** Parts of puppeteer-core that an idle instance may load: its errors and devices, see driver-parts.ts. */
const LIGHT = /\/puppeteer-core\/lib\/puppeteer\/common\/(Device|Errors)\.js$/;
/** Number of lease renewals during which messages are counted. The host renews its lease twice a second. */
const RENEWALS = 12;
/**
 * Number of times that messages are counted. An instance that stands still for two seconds takes its shards anew, with
 * hundreds of messages, so the count with the fewest messages is the one of an idle instance.
 */
const COUNTS_MAX = 5;
/**
 * Maximum number of messages on the bus for each renewal. Now it is 8. It was 95 while readers of a single server used
 * short heartbeats, and 34 while workers requested tasks every second from lanes without tasks.
 */
const MESSAGES_MAX = 20;

/** Code that the instance preloads: on a signal, it writes the URLs of all loaded modules to a file. */
const LISTING = `
  import { writeFileSync } from "node:fs";
  import { Session } from "node:inspector";
  process.once("SIGUSR2", () => {
    const urls = [];
    const session = new Session();
    session.connect();
    session.on("Debugger.scriptParsed", ({ params }) => urls.push(params.url));
    session.post("Debugger.enable", () => {
      session.disconnect();
      writeFileSync(process.env.TEST_LOADED, JSON.stringify(urls));
    });
  });`;

describe("an idle instance", function () {
  this.timeout(180_000);
  let folder: string;
  let program: ChildProgram;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "trunkline-idle-"));
    const [node = "", ...rest] = startCommand();
    const listing = `data:text/javascript,${encodeURIComponent(LISTING)}`;
    program = new ChildProgram([node, "--import", listing, ...rest], {
      ...startVariables(),
      TRUNKLINE_DATA: join(folder, "data"),
      TRUNKLINE_PORT: String(await freePort()),
      TEST_LOADED: join(folder, "loaded"),
    });
    await program.line("Trunkline runs");
  });
  after(async () => {
    program.signal("SIGTERM");
    await program.exit();
    await program[Symbol.asyncDispose]();
    await rm(folder, { recursive: true });
  });

  it("has loaded no package that only work needs", async () => {
    program.signal("SIGUSR2");
    const read = async () => JSON.parse(await readFile(join(folder, "loaded"), "utf8"));
    const loaded: string[] = await until("modules", () => read().catch(() => undefined));
    expect(loaded.length).to.be.above(500);
    const packageOf = (url: string) => /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url)?.[1];
    const heavy = loaded.filter(
      (url) => FOR_WORK.includes(packageOf(url) ?? "") && !LIGHT.test(url),
    );
    expect(heavy).to.deep.equal([]);
  });

  it(`exchanges fewer than ${MESSAGES_MAX} messages on the bus for each renewal of its lease`, async () => {
    const url = await readFile(join(folder, "data/nats.url"), "utf8");
    const watcher = await connect(readBusAddress(url.trim()));
    let messages = 0;
    /** The number of messages before each renewal. */
    const renewals: number[] = [];
    watcher.subscribe(">", {
      callback: (_error, { subject }) => {
        if (subject.includes(".lease.")) renewals.push(messages);
        messages += 1;
      },
    });
    const fewest = () =>
      Math.min(...renewals.slice(RENEWALS).map((count, index) => count - (renewals[index] ?? 0)));
    const isEnough = () =>
      fewest() < RENEWALS * MESSAGES_MAX || renewals.length > COUNTS_MAX * RENEWALS;
    await until("renewals", isEnough, 80_000);
    await watcher.close();
    expect(fewest() / RENEWALS).to.be.below(MESSAGES_MAX);
  });
});
