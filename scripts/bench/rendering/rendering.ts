/**
 * Benchmarks PDFs through the HTTP API, compared with Gotenberg and plain puppeteer. Also measures how much other
 * calls slow down meanwhile.
 */
import { setTimeout } from "node:timers/promises";
import { type Benchmark, type Figure, type Load, median, quantile } from "../benchmark.ts";
import { Child } from "../child.ts";
import { Instance } from "../instance.ts";
import { browserProcesses, processorMsOfTree } from "../process-tree.ts";
import { runLoad } from "../run-load.ts";
import { Gotenberg } from "./gotenberg.ts";
import { INVOICE } from "./invoice.ts";

const AT_ONCE = [1, 4, 16];
const ROUNDS = 7;
const ROUND_MS = 2_000;
const FIRST_PDFS = 6;
const IDLE_SECONDS = 2;
const LONG_IDLE_MS = 5 * 60_000;
/** Number of PDFs printed with a warm browser. It is high enough to use up the prepared browser contexts. */
const WARM_PDFS = 10;
const POLL_MS = 50;

type Page = { html: string } | { url: string };
type Volume = { inFlight: number; ms: number };

/** A program that prints PDFs. Its `run` measures one round. */
interface Side {
  pid: number;
  run(volume: Volume): Promise<Load>;
}
interface Round extends Load {
  cpuMs: number;
}

export const renderingHtml: Benchmark = {
  name: "rendering-html",
  run: () => measurePdfs("html", async () => ({ html: INVOICE }), { ofPuppeteer: 1.2 }),
};

export const renderingUrl: Benchmark = {
  name: "rendering-url",
  async run() {
    await using site = await Child.start("rendering/invoice-process");
    const open = async () => ({ url: await site.ask<string>({}) });
    return await measurePdfs("url", open, { ofPuppeteer: 1.35 });
  },
};

async function measurePdfs(
  form: string,
  open: () => Promise<Page>,
  { ofPuppeteer }: { ofPuppeteer: number },
): Promise<Figure[]> {
  const page = await open();
  await using instance = await Instance.start();
  await using browser = await Child.start("rendering/browser-process");
  const { GOTENBERG: program } = process.env;
  if (program === undefined) console.error("GOTENBERG names no program: it is not measured");
  await using gotenberg = program === undefined ? undefined : await Gotenberg.start(program);
  const render = instance.renderer();
  const ours: Side = {
    pid: instance.pid,
    run: (volume) => runLoad(volume, () => render("pdf", page)),
  };
  const puppeteer: Side = {
    pid: browser.pid,
    run: (volume) => browser.ask<Load>({ ...volume, page }),
  };
  const other: Side | undefined = gotenberg && {
    pid: gotenberg.pid,
    run: (volume) => runLoad(volume, () => gotenberg.print(page)),
  };
  const figures: Figure[] = [];
  for (const inFlight of AT_ONCE) {
    const rounds = await alternate([ours, puppeteer, other], { inFlight, ms: ROUND_MS });
    const [mine = [], bare = [], theirs] = rounds;
    const name = `pdf by ${form}, ${inFlight} at once`;
    figures.push({
      ...{ name: `${name}, beside puppeteer`, unit: "ms p50", target: { atMost: ofPuppeteer } },
      ...{ ours: median(mine.map(middle)), reference: median(bare.map(middle)) },
    });
    figures.push({
      ...{ name: `${name}, beside puppeteer`, unit: "cpu ms" },
      ...{ ours: median(mine.map(cpuOfOne)), reference: median(bare.map(cpuOfOne)) },
    });
    if (theirs === undefined || theirs.length === 0) continue;
    figures.push({
      ...{ name: `${name}, beside Gotenberg`, unit: "/s", target: { atLeast: 1.15 } },
      ...{ ours: median(mine.map(rate)), reference: median(theirs.map(rate)) },
    });
    figures.push({
      ...{ name: `${name}, beside Gotenberg`, unit: "cpu ms", target: { atMost: 1 } },
      ...{ ours: median(mine.map(cpuOfOne)), reference: median(theirs.map(cpuOfOne)) },
    });
  }
  return figures;
}

/** Measures the sides one after the other in several rounds. Omits the first round, which only warms up. */
async function alternate(
  sides: readonly (Side | undefined)[],
  volume: Volume,
): Promise<(Round[] | undefined)[]> {
  const rounds: Round[][] = sides.map(() => []);
  for (let round = 0; round <= ROUNDS; round++) {
    for (const [index, side] of sides.entries()) {
      if (side === undefined) continue;
      const before = processorMsOfTree(side.pid);
      const load = await side.run({ ...volume, ms: round === 0 ? volume.ms / 3 : volume.ms });
      const cpuMs = processorMsOfTree(side.pid) - before;
      if (round > 0) rounds[index]?.push({ ...load, cpuMs });
    }
  }
  return rounds;
}

const middle = ({ latencies }: Load) => quantile(latencies, 0.5);
const rate = ({ operations, ms }: Load) => (operations / ms) * 1_000;
const cpuOfOne = ({ cpuMs, operations }: Round) => cpuMs / operations;

export const renderingCalls: Benchmark = {
  name: "rendering-calls",
  async run() {
    await using site = await Child.start("rendering/invoice-process");
    const url = await site.ask<string>({});
    await using instance = await Instance.start();
    const render = instance.renderer();
    const timed = (call: string, page: object) => async () => {
      const load = await runLoad({ inFlight: 1, ms: ROUND_MS / 3 }, () => render(call, page));
      return middle(load);
    };
    const compare = async (one: () => Promise<number>, other: () => Promise<number>) => {
      const rounds: [number, number][] = [];
      for (let round = 0; round <= 2 * ROUNDS; round++) rounds.push([await one(), await other()]);
      const measured = rounds.slice(1);
      return [median(measured.map(([ms]) => ms)), median(measured.map(([, ms]) => ms))] as const;
    };
    const figures: Figure[] = [];
    for (const [form, page] of Object.entries({ html: { html: INVOICE }, url: { url } })) {
      const formats = ["content", "screenshot", "markdown"];
      const [three, one] = await compare(
        timed("snapshot", { ...page, formats }),
        timed("screenshot", page),
      );
      figures.push({
        ...{ name: `snapshot of three formats by ${form}, beside screenshot`, unit: "ms p50" },
        ...{ ours: three, reference: one, target: { atMost: 1.3 } },
      });
      const waits = (waitUntil: string) =>
        timed("content", { ...page, gotoOptions: { waitUntil } });
      const [settled, load] = await compare(waits("settled"), waits("load"));
      figures.push({
        ...{ name: `static page by ${form}, settled over load`, unit: "ms" },
        ...{ ours: settled - load, target: { atMost: 60 } },
      });
    }
    return figures;
  },
};

/** Measures the first PDF after idle time in two cases: the idle browser was closed, or the settings keep it open. */
export const renderingIdle: Benchmark = {
  name: "rendering-idle",
  async run() {
    return [await firstOfEnded(), await firstOfKept()];
  },
};

async function firstOfEnded(): Promise<Figure> {
  await using instance = await Instance.start({
    TRUNKLINE_BROWSER_IDLE_SECONDS: String(IDLE_SECONDS),
  });
  const print = printer(instance);
  const first: number[] = [];
  const warm: number[] = [];
  await print();
  for (let round = 0; round < FIRST_PDFS; round++) {
    while (browserProcesses(instance.pid) > 0) await setTimeout(POLL_MS);
    first.push(await print());
    for (let next = 0; next < WARM_PDFS; next++) warm.push(await print());
  }
  return {
    ...{ name: "first PDF after the browser has ended, beside a warm one", unit: "ms" },
    ...{ ours: median(first), reference: median(warm) },
  };
}

async function firstOfKept(): Promise<Figure> {
  await using instance = await Instance.start({ TRUNKLINE_BROWSER_IDLE_SECONDS: "0" });
  const print = printer(instance);
  for (let next = 0; next < WARM_PDFS; next++) await print();
  await setTimeout(LONG_IDLE_MS);
  const first = await print();
  const warm: number[] = [];
  for (let next = 0; next < WARM_PDFS; next++) warm.push(await print());
  return {
    ...{ name: "first PDF after 5 idle minutes of a kept browser, beside a warm one", unit: "ms" },
    ...{ ours: first, reference: median(warm), target: { atMost: 1.5 } },
  };
}

/** Returns a function that prints one PDF and returns the elapsed time. */
function printer(instance: Instance): () => Promise<number> {
  const render = instance.renderer();
  return async () => {
    const startedAt = performance.now();
    await render("pdf", { html: INVOICE });
    return performance.now() - startedAt;
  };
}
