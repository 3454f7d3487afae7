/**
 * The main module of an app's process: loads the bundle, opens agents from their logs, and runs the host's requests.
 */

import { join } from "node:path";
import { pathToFileURL } from "node:url";
import {
  ENTRY,
  type FromProcess,
  type StartProcess,
  type ToProcess,
} from "../../../schemas/apps/app-process.ts";
import { Agent } from "../package/agent.ts";
import { setImmediate } from "./native-timers.ts";
import "../package/index.ts";
import { verifyThrough } from "../package/tokens.ts";
import { AnswerStreams } from "./answer-streams.ts";
import { Entry, type EntryExport } from "./entry.ts";
import { makeEnv, replaceGlobals } from "./environment.ts";
import { HostLink, inspectValue } from "./host-link.ts";
import { tokenIdentifier } from "./identify-token.ts";
import { lockDown } from "./lock-down.ts";
import { ruleModules } from "./module-rules.ts";
import { type AgentClass, OpenAgent } from "./open-agent.ts";
import { isEmptyDatabase } from "./own-tables.ts";
import { toProcessError } from "./process-errors.ts";
import { readStacksOf } from "./stack-texts.ts";
import { TurnTaker } from "./take-turn.ts";

const { process } = globalThis;
const sendToHost = process.send?.bind(process);
if (sendToHost === undefined) throw new Error("An app's process is started by its host");
const exit = process.exit.bind(process);
/**
 * Limit of the messages that are sent together: this many frames of the largest size fit in one message to the host.
 */
const SAID_AT_ONCE_MAX = 64;

let said: FromProcess[] = [];
/**
 * Enqueues a message. Messages of one turn of the event loop share one write, because a write costs as much as a
 * small turn of an agent.
 */
const send = (message: FromProcess) => {
  if (said.push(message) === 1) setImmediate(sendSaid);
  // A log line is sent without delay: it may be the last message before code enters an endless loop.
  if (message.type === "log" || said.length >= SAID_AT_ONCE_MAX) sendSaid();
};
const link = new HostLink(send);
verifyThrough(tokenIdentifier(link));
const streams = new AnswerStreams((stream) =>
  send({ type: "part", stream, after: 0, part: { failed: "nobody makes it any more" } }),
);
const agents = new Map<number, { agent: OpenAgent; turns: TurnTaker }>();
let app: { start: StartProcess; env: object; classes: Map<string, AgentClass>; entry: Entry };

// Node calls this function when the channel to the host ends. App code cannot replace it.
Object.defineProperty(process, "disconnect", {
  value: () => exit(0),
  writable: false,
  configurable: false,
});
// The host may have ended before this handler existed.
if (!process.connected) exit(0);
process.on("message", (messages: ToProcess[]) => {
  for (const message of messages) void receive(message);
});
for (const event of ["uncaughtException", "unhandledRejection"] as const) {
  process.on(event, (error: unknown) => {
    link.log("error", `${event}: ${error instanceof Error ? error.stack : inspectValue(error)}`);
  });
}

/** Sends the enqueued messages. If sending fails, the messages are lost, but then the host has ended too. */
function sendSaid(): void {
  const messages = said;
  said = [];
  if (messages.length === 0 || !process.connected) return;
  sendToHost?.(messages, undefined, undefined, () => undefined);
}

async function receive(message: ToProcess): Promise<void> {
  switch (message.type) {
    case "start":
      return startApp(message);
    case "open":
      return openAgent(message);
    case "turn": {
      const { agent, ...taken } = message;
      return agents.get(agent)?.turns.take(taken);
    }
    case "entry":
      return takeEntry(message);
    case "committed":
      return agents.get(message.agent)?.agent.gate.committed(message.commit);
    case "done":
      return link.done(message.operation, message.result);
    case "failed":
      return link.failed(message.operation, message.error);
    case "gone":
      return agents.get(message.agent)?.agent.gone(message.gateway, message.numbers);
    case "close": {
      const closed = agents.get(message.agent);
      closed?.turns.close();
      closed?.agent.close();
      agents.delete(message.agent);
      return;
    }
    case "pull":
      return message.isLeft ? streams.leave(message.stream) : streams.pull(message.stream);
    case "ping":
      return send({ type: "pong", number: message.number });
    default:
      return message satisfies never;
  }
}

async function startApp(start: StartProcess): Promise<void> {
  try {
    const bundle = pathToFileURL(start.bundle).href;
    readStacksOf(start.bundle, bundle);
    const env = makeEnv(start, link);
    replaceGlobals(link, start.limits.answerBytes);
    ruleModules(bundle);
    lockDown();
    const exported = (await import(bundle)) as Record<string, unknown>;
    const classes = new Map(
      Object.entries(exported).filter((entry): entry is [string, AgentClass] =>
        isAgentClass(entry[1]),
      ),
    );
    for (const { className } of start.env.agents) {
      if (!classes.has(className)) {
        throw new Error(`The bundle exports no class ${className} that extends Agent`);
      }
    }
    const entry = new Entry(exported.default as EntryExport | undefined, env, start.limits, {
      report: (error) => link.log("error", inspectValue(error)),
      tell: (isIdle) => send({ type: "idle", agent: ENTRY, after: 0, isIdle }),
      streams,
      say: (stream, part) => send({ type: "part", stream, after: 0, part }),
    });
    app = { start, env, classes, entry };
    const hasDefault = exported.default !== undefined && exported.default !== null;
    send({ type: "ready", classes: [...classes.keys()], hasEntry: entry.exists, hasDefault });
  } catch (error) {
    send({ type: "broken", error: toProcessError(error) });
  }
}

function openAgent(message: ToProcess & { type: "open" }): void {
  const { agent: number, address, image, records, lastCommit } = message;
  try {
    const agentClass = app.classes.get(address.className);
    if (agentClass === undefined) throw new Error(`The app has no class ${address.className}`);
    const agent = new OpenAgent({
      number,
      address,
      agentClass,
      env: app.env,
      link,
      path: join(app.start.workFolder, `${number}.db`),
      image,
      records,
      lastCommit,
      limits: app.start.limits,
    });
    agents.set(number, { agent, turns: new TurnTaker(agent, streams) });
    send({ type: "opened", agent: number, isEmpty: isEmptyDatabase(agent.database) });
  } catch (error) {
    send({ type: "unopened", agent: number, error: toProcessError(error) });
  }
}

async function takeEntry({
  turn,
  request,
  isUpgrade,
}: ToProcess & { type: "entry" }): Promise<void> {
  try {
    const result = await app.entry.take(request, isUpgrade);
    send({ type: "finished", turn, after: 0, result });
  } catch (error) {
    send({ type: "refused", turn, after: 0, error: toProcessError(error) });
  }
}

function isAgentClass(value: unknown): boolean {
  return typeof value === "function" && value.prototype instanceof Agent;
}
