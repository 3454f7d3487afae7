/** A PDF of one page through the HTTP API, against puppeteer in a warm process with a fresh context for each. */
import { alternate, type Benchmark, type Figure, type Load, loadFigures } from "../benchmark.ts";
import { Child } from "../child.ts";
import { Instance } from "../instance.ts";
import { runLoad } from "../run-load.ts";

const ROUND_MS = 4_000;
const TARGET = { atMost: 1.3 };

const ROWS = Array.from({ length: 12 }, (_, row) => {
  const price = 17 * (row + 1);
  return `<tr><td>Item ${row + 1}</td><td>${row + 2}</td><td>${price}.00</td></tr>`;
}).join("");
const HTML = `<!doctype html><title>Invoice</title>
<style>body { font-family: sans-serif } table { width: 100% } td { border-bottom: 1px solid #ccc }</style>
<h1>Invoice 1234</h1><p>To be paid within 30 days.</p><table>${ROWS}</table>`;

export const pdf: Benchmark = {
  name: "pdf",
  async run() {
    await using instance = await Instance.start();
    await using browser = await Child.start("rendering/browser-process");
    const print = instance.printer();
    const figures: Figure[] = [];
    for (const inFlight of [1, 4]) {
      const volume = { inFlight, ms: ROUND_MS };
      const rounds = await alternate(
        () => browser.ask<Load>({ ...volume, html: HTML }),
        () => runLoad(volume, () => print(HTML)),
      );
      figures.push(...loadFigures(`pdf, ${inFlight} in flight`, rounds, { p50: TARGET }));
    }
    return figures;
  },
};
