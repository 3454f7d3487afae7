/**
 * Compares pages that Trunkline captures as soon as they have settled with pages that plain puppeteer captures after
 * five seconds.
 */
import { DomUtils, parseDocument } from "htmlparser2";
import { type Benchmark, type Figure, median } from "../benchmark.ts";
import { Child } from "../child.ts";
import { Instance } from "../instance.ts";
import { CORPUS } from "./corpus/pages.ts";

/** A page as one side captured it: its HTML, a PNG in base64, and the elapsed time. */
export interface Taken {
  html: string;
  picture: string;
  ms: number;
}

const HIDDEN = new Set(["script", "style", "template", "title", "noscript"]);

export const settled: Benchmark = {
  name: "settled",
  async run() {
    await using instance = await Instance.start();
    await using site = await Child.start("rendering/corpus/site-process");
    await using patient = await Child.start("rendering/corpus/patient-process");
    const origin = await site.ask<string>({});
    const request = instance.requester();
    const snapshot = async (url: string): Promise<Taken> => {
      const startedAt = performance.now();
      const answer = await request("POST", "browser-rendering/snapshot?cacheTTL=0", {
        url,
        formats: ["content", "screenshot"],
        viewport: { width: 1280, height: 720 },
      });
      const { result } = (await answer.json()) as { result: Record<string, string> };
      const { content = "", screenshot = "" } = result;
      return { html: content, picture: screenshot, ms: performance.now() - startedAt };
    };
    // The first page starts the browsers.
    const first = `${origin}/pages/static-text`;
    await Promise.all([snapshot(first), patient.ask<Taken>({ url: first })]);
    const pages: { name: string; ours: Taken; reference: Taken }[] = [];
    for (const { name } of CORPUS) {
      const url = `${origin}/pages/${name}`;
      pages.push({ name, ours: await snapshot(url), reference: await patient.ask<Taken>({ url }) });
    }
    const differ = (of: (taken: Taken) => string) =>
      pages.filter(({ ours, reference }) => of(ours) !== of(reference)).map(({ name }) => name);
    const texts = differ(({ html }) => textOf(html));
    const pictures = differ(({ picture }) => picture);
    for (const [what, names] of Object.entries({ text: texts, pixels: pictures })) {
      if (names.length > 0) console.error(`settled: other ${what}: ${names.join(", ")}`);
    }
    const ms = (side: "ours" | "reference") => median(pages.map((page) => page[side].ms));
    const figure = (name: string, rest: Omit<Figure, "name">) => ({
      name: `settled, ${name}`,
      ...rest,
    });
    return [
      figure("a page's time in the median", {
        ...{ unit: "ms", ours: ms("ours"), reference: ms("reference") },
        target: { atMost: 1 / 3 },
      }),
      figure("pages with another text", { unit: "", ours: texts.length, target: { atMost: 0 } }),
      figure("pages with other pixels", { unit: "", ours: pictures.length, target: { atMost: 0 } }),
    ];
  },
};

/** Returns the visible text of a page's HTML, with single spaces between words. */
function textOf(html: string): string {
  const document = parseDocument(html);
  const hidden = DomUtils.findAll(({ name }) => HIDDEN.has(name), document.children);
  for (const element of hidden) DomUtils.removeElement(element);
  return DomUtils.textContent(document).replace(/\s+/g, " ").trim();
}
