/**
 * Creates `env` for app code, and replaces web functions with outside effects: their requests go through the host, or
 * are refused.
 */
import { Console } from "node:console";
import { Writable } from "node:stream";
import { format } from "node:util";
import type { StartProcess } from "../../../schemas/apps/app-process.ts";
import { running } from "../package/current-agent.ts";
import { AgentNamespace } from "../package/namespace.ts";
import { AgentRefusal } from "../package/refusal.ts";
import { agentCalls } from "./agent-calls.ts";
import { artifactsBinding } from "./artifacts-binding.ts";
import { browserBinding } from "./browser-binding.ts";
import { toProcessRequest, toResponse } from "./exchange.ts";
import { replaceTimers } from "./gated-timers.ts";
import type { HostLink } from "./host-link.ts";
import { restBinding } from "./rest-binding.ts";

export function makeEnv({ env, limits }: StartProcess, link: HostLink): object {
  const bound: Record<string, unknown> = { ...structuredClone(env.values) };
  for (const { binding, className } of env.agents) {
    bound[binding] = new AgentNamespace(className, agentCalls(className, link, limits.answerBytes));
  }
  for (const { binding, namespace } of env.artifacts) {
    const rest = restBinding(link, "artifacts", namespace, limits.answerBytes);
    bound[binding] = artifactsBinding(rest, namespace);
  }
  if (env.browser !== undefined) {
    bound[env.browser] = browserBinding(
      restBinding(link, "browser", undefined, limits.answerBytes),
    );
  }
  return Object.freeze(bound);
}

/** Replaces the globals that would reach the network or the process's own output. */
export function replaceGlobals(link: HostLink, bodyBytesMax: number): void {
  const put = (name: string, value: unknown) =>
    Object.defineProperty(globalThis, name, { value, writable: true, configurable: true });
  put("fetch", makeFetch(link, bodyBytesMax));
  put("console", makeConsole(link));
  replaceTimers(put);
  // Node's permissions would also refuse these APIs, but with an unhelpful error.
  for (const name of ["WebSocket", "EventSource", "localStorage", "sessionStorage", "Worker"]) {
    Reflect.deleteProperty(globalThis, name);
  }
}

function makeFetch(link: HostLink, bytesMax: number) {
  const local = globalThis.fetch;
  return async function fetch(
    input: string | URL | Request,
    init?: RequestInit,
  ): Promise<Response> {
    const request = new Request(input, init);
    // These URLs contain their data, so no request leaves the process.
    if (/^(data|blob):/i.test(request.url)) return local(request);
    const { signal } = request;
    signal.throwIfAborted();
    const wire = await toProcessRequest(request, bytesMax);
    signal.throwIfAborted();
    const { open } = running() ?? {};
    const aborted = Promise.withResolvers<never>();
    const abort = () => aborted.reject(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
    try {
      const operation = link.operate(
        { type: "fetch", request: wire, redirect: request.redirect },
        open && { number: open.number, after: open.gate.after() },
      );
      const result = await Promise.race([operation, aborted.promise]);
      if (result.type !== "answer") throw new TypeError("fetch failed");
      return toResponse(result.answer, link, result.url ?? request.url);
    } catch (error) {
      if (!(error instanceof AgentRefusal)) throw error;
      // `fetch` fails with this error on every platform. The reason is in `cause`.
      throw new TypeError("fetch failed", { cause: error });
    } finally {
      signal.removeEventListener("abort", abort);
    }
  };
}

function makeConsole(link: HostLink): Console {
  const write = (level: "debug" | "info" | "warn" | "error", text: string) =>
    link.log(level, text, running()?.open?.number);
  const sink = (level: "info" | "error") =>
    new Writable({
      decodeStrings: false,
      write(chunk, _encoding, done) {
        write(level, String(chunk).trimEnd());
        done();
      },
    });
  const console = new Console({ stdout: sink("info"), stderr: sink("error") });
  for (const level of ["debug", "info", "warn", "error"] as const) {
    console[level] = (...values: unknown[]) => write(level, format(...values));
  }
  console.log = console.info;
  return console;
}
