/** The browser worker: its tasks, and the output that each task creates from a loaded page. */

import type { RenderCall } from "../../../../schemas/rendering/http/render-calls.ts";
import { PAGES_PER_COMPUTING_PAGE } from "../../../../schemas/rendering/limits.ts";
import { render } from "../../../../schemas/rendering/render.ts";
import type { Clock } from "../../../runtime/lib/clock.ts";
import { defineWorker, type WorkerDefinition } from "../../../runtime/workers/define-worker.ts";
import type { BrowserPool } from "../../lib/browser/browser-pool.ts";
import { JobTasks, jobFailed } from "./job-tasks.ts";
import { accessibilityTree } from "./outputs/accessibility-tree.ts";
import { content } from "./outputs/content.ts";
import { checkQuestion, type Extractor, jsonOutput } from "./outputs/json.ts";
import { links } from "./outputs/links.ts";
import { type Converter, markdownOutput } from "./outputs/markdown.ts";
import { scrape } from "./outputs/scrape.ts";
import { snapshotOutput } from "./outputs/snapshot.ts";
import type { RenderCache } from "./render-cache.ts";
import { failed, RenderTasks } from "./render-tasks.ts";

export interface RenderLimits {
  /**
   * Maximum pages that compute at the same time. Pages that wait for the network are allowed in addition. The same
   * number limits all pages of one account, whether they compute or wait.
   */
  interactive: number;
  batch: number;
  /** Limit of each account's browser time per day in milliseconds; 0 means no limit. */
  browserMsPerDay: number;
}

interface RenderParts {
  /** The object store with the requests and results of jobs. */
  objects: ConstructorParameters<typeof JobTasks>[0]["objects"];
  requestKeys: ConstructorParameters<typeof JobTasks>[0]["requestKeys"];
  pool: BrowserPool;
  clock: Clock;
  cache: RenderCache;
  markdown: Converter;
  extractor: Extractor;
}

export function renderWorker(parts: RenderParts, limits: RenderLimits) {
  const { markdown, extractor, objects, requestKeys, ...shared } = parts;
  const { interactive, batch, browserMsPerDay } = limits;
  const tasks = new RenderTasks({ ...shared, browserMsPerDay });
  const extract = tasks.read("json", jsonOutput(markdown, extractor));
  const calls: Pick<WorkerDefinition<(typeof render)["messages"]>["handlers"], RenderCall> = {
    pdf: (input, task) => tasks.pdf(input, task),
    screenshot: (input, task) => tasks.screenshot(input, task),
    content: tasks.read("content", content),
    markdown: tasks.read("markdown", markdownOutput(markdown)),
    links: tasks.read("links", links),
    scrape: tasks.read("scrape", scrape),
    snapshot: tasks.read("snapshot", snapshotOutput(markdown)),
    async json(input, task) {
      const { account, parameters } = input;
      await checkQuestion(extractor, parameters, { account, signal: task.signal });
      return extract(input, task);
    },
    accessibilityTree: tasks.read("accessibilityTree", accessibilityTree),
  };
  const jobs = new JobTasks({ objects, requestKeys, clock: parts.clock, handlers: calls });
  return defineWorker(render, {
    slots: { interactive: interactive * PAGES_PER_COMPUTING_PAGE, batch },
    turns: { interactive: { computing: interactive, perKey: interactive, reserved: interactive } },
    handlers: {
      ...calls,
      job: (input, task) => jobs.run(input, task),
      purge: (input) => jobs.purge(input),
    },
    failures: {
      ...{ pdf: failed, screenshot: failed, content: failed, markdown: failed, links: failed },
      ...{ scrape: failed, snapshot: failed, json: failed, accessibilityTree: failed },
      job: jobFailed,
      // Nothing to do after a failed purge: the store removes the remaining objects by their age.
      purge: () => [],
    },
  });
}
