/** Runs the calls that read a page, as a worker does, with the test's own browser, threads and AI providers. */
import { EgressAgents } from "../../actors/egress/egress-fetch.ts";
import { JsonChecker } from "../../actors/rendering/lib/ai/json-checker.ts";
import { JsonExtractor } from "../../actors/rendering/lib/ai/json-extractor.ts";
import { renderWorker } from "../../actors/rendering/workers/render/render.ts";
import { systemClock } from "../../actors/runtime/lib/clock.ts";
import type { ActorError } from "../../schemas/errors.ts";
import { PAGE_CALLS, type PageCallName } from "../../schemas/rendering/http/page-calls.ts";
import { guard, openPool, renderParts } from "./printer.ts";
import { refusalOf } from "./refusal.ts";
import { taskContext } from "./task-context.ts";

export interface PageReader {
  worker: ReturnType<typeof renderWorker>;
  /** Resolves to the members of the response's envelope, and to the reply that precedes these members. */
  run(
    name: PageCallName,
    request: object,
    setWaiting?: (isWaiting: boolean) => void,
    // biome-ignore lint/suspicious/noExplicitAny: a test looks at the result of whatever call it runs.
  ): Promise<any>;
  /** Does the same as `run` with parameters that are already parsed. Also supports calls whose response is bytes. */
  // biome-ignore lint/suspicious/noExplicitAny: as above.
  runParsed(name: PageCallName | "pdf" | "screenshot", parameters: object): Promise<any>;
  refused(name: PageCallName, request: object): Promise<ActorError>;
  close(): Promise<void>;
}

/** `providers` replaces the real AI providers. Its keys are the names of the providers. */
export function openPageReader(providers: Record<string, string> = {}): PageReader {
  const pool = openPool();
  const agents = new EgressAgents({ guard });
  const checker = new JsonChecker();
  const extractor = new JsonExtractor({ agents, checker, clock: systemClock, providers });
  const parts = { ...renderParts(pool), extractor };
  const worker = renderWorker(parts, { interactive: 2, batch: 1, browserMsPerDay: 0 });
  const run: PageReader["run"] = (name, request, setWaiting) =>
    runParsed(name, PAGE_CALLS[name].request.parse(request), setWaiting);
  const runParsed = async (
    name: PageCallName | "pdf" | "screenshot",
    parameters: object,
    setWaiting = (_: boolean) => {},
  ) => {
    const input = { account: "a", parameters };
    // Safe: the message and its request come from one row of the table.
    const handle = worker.handlers[name] as typeof worker.handlers.content;
    const { reply, chunks } = await handle(input as never, taskContext({ setWaiting }));
    const members = Buffer.concat(await Array.fromAsync(chunks ?? []));
    return { ...JSON.parse(`{${members}}`), reply, members: members.length };
  };
  return {
    worker,
    run,
    runParsed: (name, parameters) => runParsed(name, parameters),
    refused: (name, request) => refusalOf(run(name, request)),
    async close() {
      await Promise.all([parts.markdown.close(), checker.close(), pool.close()]);
      agents.close();
    },
  };
}
