/** A render worker without a browser, for tests of the gateway. The HTML of the page says what it "prints". */
import { once } from "node:events";
import { newSecretKey, SecretBox } from "../../actors/apps/lib/app-secrets/secret-box.ts";
import { JobTasks, jobFailed } from "../../actors/rendering/workers/render/job-tasks.ts";
import { systemClock } from "../../actors/runtime/lib/clock.ts";
import { defineWorker } from "../../actors/runtime/workers/define-worker.ts";
import { NO_APP } from "../../schemas/apps/outgoing-webhook.ts";
import { ActorError, type ErrorCode } from "../../schemas/errors.ts";
import { render } from "../../schemas/rendering/render.ts";
import { type RequestKeyQuestion, requestKeyName } from "../../schemas/rendering/request-key.ts";
import { MemoryObjects } from "../../scripts/testing/memory-objects.ts";

export const CHUNK = Buffer.alloc(64 * 1024, "p");

interface Page {
  html?: string | undefined;
}

interface ReadTask {
  parameters: Page;
  cacheTtlS?: number | undefined;
}

const NO_META = ',"meta":{"status":null,"title":""}';

export interface TestPrinter {
  worker: ReturnType<typeof defineWorker<typeof render.messages>>;
  /** Chunks that were taken so far. */
  taken: number;
  /** Resolves when a task was cancelled while it waited or printed. */
  cancelled: Promise<void>;
  /** Resolves when the first task begins. */
  begun: Promise<void>;
  /** Tasks begun. */
  tasks: number;
  /** How long the result of the latest task may be cached. */
  cacheTtlS: number | undefined;
}

/**
 * Returns the worker. The HTML of the page is a command. `chunks <n>` prints n chunks. `stream <n>` prints n chunks
 * without announcing their number. `refuse <code>` refuses after 12 ms of browser time. `blame <pointer>` reports
 * that a field is wrong. `break <n>` announces n + 1 chunks, but fails after n. `status <n>` reports that the site
 * answered with this status. `hang` prints nothing until the task is cancelled. `fault` throws an unexpected error.
 * Any other text is printed itself.
 */
export function testPrinter(
  slots = 4,
  objects = new MemoryObjects(),
  secrets = new SecretBox([newSecretKey()]),
): TestPrinter {
  const { promise: cancelled, resolve: cancel } = Promise.withResolvers<void>();
  const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
  const printer: TestPrinter = {
    worker: define(),
    taken: 0,
    tasks: 0,
    cacheTtlS: undefined,
    cancelled,
    begun,
  };
  return printer;

  function define() {
    const calls = {
      pdf({ parameters, cacheTtlS }: ReadTask, { signal }: { signal: AbortSignal }) {
        printer.cacheTtlS = cacheTtlS;
        return print(parameters, signal);
      },
      screenshot: ({ parameters }: ReadTask, { signal }: { signal: AbortSignal }) =>
        sized(parameters, signal),
      content: read("page", NO_META),
      markdown: read("page"),
      links: read([]),
      scrape: read([]),
      snapshot: read({ content: "page" }, NO_META),
      json: read({}),
      accessibilityTree: read({ accessibilityTree: null }),
    };
    const requestKeys = {
      async open({ account: accountId, job, sealed }: RequestKeyQuestion) {
        return secrets.open(sealed, { accountId, app: NO_APP, name: requestKeyName(job) });
      },
    };
    const jobs = new JobTasks({ objects, requestKeys, clock: systemClock, handlers: calls });
    return defineWorker(render, {
      slots: { interactive: slots, batch: 1 },
      handlers: {
        ...calls,
        job: (input, task) => jobs.run(input, task),
        purge: (input) => jobs.purge(input),
      },
      failures: {
        ...{ pdf: none, screenshot: none, content: none, markdown: none, links: none },
        ...{ scrape: none, snapshot: none, json: none, accessibilityTree: none },
        ...{ job: jobFailed, purge: none },
      },
    });
  }

  async function sized(parameters: Page, signal: AbortSignal) {
    const { reply, chunks } = await print(parameters, signal);
    const { browserMs, bytes, status } = { status: undefined, ...reply };
    if (bytes === null) throw new Error("it knows its length");
    return { reply: { browserMs, bytes, ...(status !== undefined && { status }) }, chunks };
  }

  /** Returns a handler that answers with this result for every page. */
  function read(result: unknown, meta = "") {
    return async (input: ReadTask, { signal }: { signal: AbortSignal }) => {
      printer.cacheTtlS = input.cacheTtlS;
      const { reply } = await sized(input.parameters, signal);
      const members = Buffer.from(`"result":${JSON.stringify(result)}${meta}`);
      return { reply: { ...reply, bytes: members.length }, chunks: one(members) };
    };
  }

  async function print(parameters: Page, signal: AbortSignal) {
    printer.tasks++;
    signal.addEventListener("abort", () => cancel());
    begin();
    const [word, argument = ""] = (parameters.html ?? "").split(" ");
    if (word === "refuse") {
      const code = argument as ErrorCode;
      throw new ActorError(code, `Cannot print: ${code}`, { browserMs: 12 });
    }
    if (word === "blame") {
      const fault = { pointer: argument, message: "Expected something else" };
      throw new ActorError("invalid_request", "Cannot print", { faults: [fault] });
    }
    if (word === "fault") throw new Error("the printer is on fire");
    if (word === "hang") await once(signal, "abort");
    signal.throwIfAborted();
    const count = Number(argument);
    if (word === "stream") {
      return {
        reply: { browserMs: 34, bytes: null, pages: null },
        chunks: repeat(count, false),
      };
    }
    if (word === "chunks" || word === "break") {
      const breaks = word === "break";
      const bytes = (count + Number(breaks)) * CHUNK.length;
      return { reply: { browserMs: 34, bytes, pages: 1 }, chunks: repeat(count, breaks) };
    }
    const status = word === "status" ? { status: count } : {};
    const bytes = Buffer.from(`%PDF-1.7\n${JSON.stringify(parameters)}`);
    const reply = { browserMs: 34, bytes: bytes.length, pages: 1, ...status };
    return { reply, chunks: one(bytes) };
  }

  async function* repeat(count: number, breaks: boolean) {
    for (let i = 0; i < count; i++) {
      printer.taken++;
      yield CHUNK;
    }
    if (breaks) throw new Error("the printer caught fire");
  }
}

const none = () => [];

async function* one(bytes: Buffer) {
  yield bytes;
}
