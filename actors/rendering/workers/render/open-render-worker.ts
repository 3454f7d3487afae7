/** Opens the browser worker of a process with the threads and connections that its outputs share. */
import { RENDER_JOBS_STORE } from "../../../../schemas/subjects.ts";
import { EgressAgents } from "../../../egress/egress-fetch.ts";
import type { EgressGuard } from "../../../egress/egress-guard.ts";
import type { Bus } from "../../../runtime/bus/bus.ts";
import type { Clock } from "../../../runtime/lib/clock.ts";
import { ObjectStore } from "../../../runtime/store/object-store.ts";
import { TtlStore } from "../../../runtime/store/ttl-store.ts";
import { JsonChecker } from "../../lib/ai/json-checker.ts";
import { JsonExtractor, type OperatorsAi } from "../../lib/ai/json-extractor.ts";
import type { BrowserPool } from "../../lib/browser/browser-pool.ts";
import { MarkdownPool } from "../../lib/extract/markdown-pool.ts";
import { RequestKeys } from "../../lib/request-keys/request-keys.ts";
import { type RenderLimits, renderWorker } from "./render.ts";
import { KeptAnswer, RenderCache } from "./render-cache.ts";

interface RenderWorkerParts {
  bus: Bus;
  clock: Clock;
  guard: EgressGuard;
  pool: BrowserPool;
  ai: OperatorsAi | undefined;
}

/** Creates the worker. Close it when no task is running. */
export function openRenderWorker(
  { bus, clock, guard, pool, ai }: RenderWorkerParts,
  limits: RenderLimits,
) {
  const cache = new RenderCache({ store: new TtlStore(bus, "render", KeptAnswer), clock });
  // Rendering has its own pool, so that no request waits behind pages of crawls.
  const markdown = new MarkdownPool({ threads: limits.batch });
  const checker = new JsonChecker();
  const agents = new EgressAgents({ guard });
  const extractor = new JsonExtractor({ agents, checker, clock, operators: ai });
  const objects = new ObjectStore(bus, clock, RENDER_JOBS_STORE);
  const requestKeys = new RequestKeys(bus);
  const parts = { pool, clock, cache, markdown, extractor, objects, requestKeys };
  const definition = renderWorker(parts, limits);
  return { definition, close };

  async function close(): Promise<void> {
    await Promise.all([markdown.close(), checker.close()]);
    agents.close();
  }
}
