/**
 * Provides a browser pool for tests whose egress permits only 127.0.0.2, and reads the content of the printed PDFs.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { z } from "zod";
import { createAddressPolicy } from "../../actors/egress/address-policy.ts";
import { EgressAgents } from "../../actors/egress/egress-fetch.ts";
import { createEgressGuard } from "../../actors/egress/egress-guard.ts";
import { EgressProxy } from "../../actors/egress/egress-proxy.ts";
import { JsonChecker } from "../../actors/rendering/lib/ai/json-checker.ts";
import { JsonExtractor } from "../../actors/rendering/lib/ai/json-extractor.ts";
import {
  BrowserPool,
  type BrowserPoolOptions,
} from "../../actors/rendering/lib/browser/browser-pool.ts";
import { MarkdownPool } from "../../actors/rendering/lib/extract/markdown-pool.ts";
import { type PrintedPdf, printPdf } from "../../actors/rendering/workers/render/print-pdf.ts";
import { printSources } from "../../actors/rendering/workers/render/print-sources.ts";
import { RenderCache } from "../../actors/rendering/workers/render/render-cache.ts";
import { type Clock, systemClock } from "../../actors/runtime/lib/clock.ts";
import { PdfRequest } from "../../schemas/rendering/http/pdf.ts";
import { findChromium } from "../tools.ts";
import { MemoryObjects } from "./memory-objects.ts";
import { pageTexts, tableFaults } from "./pdf-file.ts";

export const guard = createEgressGuard({
  policy: createAddressPolicy({ allow: ["127.0.0.2/32"] }),
});
const DEADLINE_MS = 50_000;
/** Long timeouts: a healthy browser may respond slowly on a busy machine, and a test's task is not retried. */
const PATIENT = { pingTimeoutMs: 40_000, contextCloseMs: 20_000 };

/** A cache that never stores or finds anything, as if the bus were unavailable. */
const lostCache = new RenderCache({
  store: { get: async () => undefined, put: async () => false },
  clock: systemClock,
});

/** Request keys for render workers that get no jobs from a gateway, so that no request is encrypted. */
const noRequestKeys = {
  open: async () => {
    throw new Error("no request of a job is encrypted here");
  },
};

/**
 * The parts of a render worker for tests that convert no page to Markdown or data. Such conversions would leave
 * threads running.
 */
export const renderParts = (pool: BrowserPool) => ({
  ...{ pool, clock: systemClock, cache: lostCache, objects: new MemoryObjects() },
  requestKeys: noRequestKeys,
  markdown: new MarkdownPool(),
  extractor: new JsonExtractor({
    ...{ agents: new EgressAgents({ guard }), checker: new JsonChecker(), clock: systemClock },
  }),
});

export const openEgress = () => EgressProxy.open({ guard });

export function openPool({ limits, ...options }: Partial<BrowserPoolOptions> = {}): BrowserPool {
  const shared = { clock: systemClock, openEgress, executablePath: findChromium() };
  return new BrowserPool({ ...shared, ...options, limits: { ...PATIENT, ...limits } });
}

export interface PrintOptions {
  signal?: AbortSignal;
  deadlineMs?: number;
  clock?: Clock;
}

/** Prints a client's request, and reads the PDF to its end. */
export async function print(
  pool: BrowserPool,
  request: z.input<typeof PdfRequest>,
  options: PrintOptions = {},
): Promise<Pdf> {
  const printed = await startPrint(pool, request, options);
  const chunks: Uint8Array[] = [];
  for await (const chunk of printed.chunks) chunks.push(chunk);
  return new Pdf(Buffer.concat(chunks), printed.trailer());
}

export async function startPrint(
  pool: BrowserPool,
  request: z.input<typeof PdfRequest>,
  {
    signal = new AbortController().signal,
    deadlineMs = DEADLINE_MS,
    clock = systemClock,
  }: PrintOptions = {},
): Promise<PrintedPdf> {
  const task = {
    parameters: PdfRequest.parse(request),
    endsAt: clock.monotonic() + deadlineMs,
  };
  const { sources } = task.parameters;
  return sources
    ? await printSources(pool, { ...task, sources }, { signal, clock })
    : await printPdf(pool, task, { signal, clock });
}

class Pdf {
  readonly bytes: Buffer;
  readonly trailer: ReturnType<PrintedPdf["trailer"]>;
  readonly #source: string;

  constructor(bytes: Buffer, trailer: ReturnType<PrintedPdf["trailer"]>) {
    this.bytes = bytes;
    this.trailer = trailer;
    this.#source = bytes.toString("latin1");
  }

  /** The document's title. The test's pages put the values that they observed into their title. */
  get title(): string {
    const [, hex, literal] =
      /\/Title (?:<([0-9A-F]+)>|\(((?:\\.|[^\\)])*)\))/s.exec(this.#source) ?? [];
    if (hex === undefined) return literal?.replace(/\\(.)/gs, "$1") ?? "";
    return Buffer.from(hex, "hex").swap16().toString("utf16le").slice(1);
  }

  /** Width and height of the first page, in points. */
  get size(): [number, number] {
    const [, width, height] = /\/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]/.exec(this.#source) ?? [];
    return [Number(width), Number(height)];
  }

  has(syntax: string): boolean {
    return this.#source.includes(syntax);
  }

  /** The text of each page, header and footer too. */
  get texts(): string[] {
    return pageTexts(this.bytes);
  }

  /** The faults of the PDF, found by its cross-reference table and, if installed, by qpdf. */
  get faults(): string {
    return [...tableFaults(this.bytes), ...this.#faultsByQpdf()].join("\n");
  }

  #faultsByQpdf(): string[] {
    const folder = mkdtempSync(join(tmpdir(), "trunkline-pdf-"));
    try {
      const file = join(folder, "checked.pdf");
      writeFileSync(file, this.bytes);
      const check = spawnSync("qpdf", ["--check", file]);
      if (check.error !== undefined || check.status === 0) return [];
      return [`${check.stdout}${check.stderr}`];
    } finally {
      rmSync(folder, { recursive: true });
    }
  }
}
