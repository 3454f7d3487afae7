/** The client side of the app benchmarks: sends signed webhooks and holds sockets. */
import { createHmac } from "node:crypto";
import { once } from "node:events";
import { Agent, request as ask } from "node:http";
import { WebSocket } from "ws";
import { answerParent } from "../answer-parent.ts";
import { runLoad } from "../run-load.ts";
import { BENCH_SECRET, ENTITIES, FRAME } from "./app-code.ts";

export type ClientQuestion =
  | { ask: "events"; url: string; inFlight: number; ms: number; status: number }
  | { ask: "open"; url: string; paths: string[]; count: number }
  | { ask: "broadcasts"; url: string; times: number; inFlight: number }
  | { ask: "close" };

const OPENING = 32;
/** Number of frames with which a stateful agent greets each new socket. */
const GREETING_FRAMES = 3;
const PADDING = "x".repeat(500);
const agent = new Agent({ keepAlive: true, maxSockets: 256 });
const sockets: WebSocket[] = [];
let heard = 0;
let greeted = 0;
let sent = 0;
let wake: () => void = () => {};

answerParent({
  answer: (question) => answer(question as ClientQuestion),
  async close() {
    agent.destroy();
    for (const socket of sockets) socket.terminate();
  },
});

function answer(question: ClientQuestion): Promise<unknown> {
  switch (question.ask) {
    case "events":
      return events(question);
    case "open":
      return open(question);
    case "broadcasts":
      return broadcasts(question);
    case "close":
      return close();
    default:
      return question satisfies never;
  }
}

type QuestionOf<A extends ClientQuestion["ask"]> = Extract<ClientQuestion, { ask: A }>;

function events({ url, inFlight, ms, status }: QuestionOf<"events">) {
  return runLoad({ inFlight, ms }, async (index) => {
    const body = JSON.stringify({
      repository: { full_name: `entity-${index % ENTITIES}` },
      padding: PADDING,
    });
    const digest = createHmac("sha256", BENCH_SECRET).update(body).digest("hex");
    const answered = await post(url, body, {
      "content-type": "application/json",
      "x-github-event": "push",
      "x-github-delivery": `${process.pid}.${++sent}`,
      "x-hub-signature-256": `sha256=${digest}`,
    });
    if (answered !== status) throw new Error(`Cannot send: answered ${answered} at ${url}`);
  });
}

async function open({ url, paths, count }: QuestionOf<"open">): Promise<number> {
  let next = 0;
  const wasGreeted = greeted;
  const isOfAgents = paths[0] !== "/room";
  await Promise.all(
    Array.from({ length: OPENING }, async () => {
      while (next < count) {
        const socket = new WebSocket(`${url}${paths[next++ % paths.length]}`, {
          perMessageDeflate: false,
        });
        sockets.push(socket);
        socket.on("message", (bytes: Buffer) => {
          if (bytes.length === FRAME.length) heard += 1;
          else greeted += 1;
          wake();
        });
        await once(socket, "open");
      }
    }),
  );
  if (isOfAgents) await until(() => greeted - wasGreeted >= count * GREETING_FRAMES);
  return sockets.length;
}

/** Returns the milliseconds from the first request until every socket has received every frame. */
async function broadcasts({ url, times, inFlight }: QuestionOf<"broadcasts">): Promise<number> {
  const goal = heard + times * sockets.length;
  const startedAt = performance.now();
  let left = times;
  await Promise.all(
    Array.from({ length: inFlight }, async () => {
      while (left-- > 0) await post(url, "", {});
    }),
  );
  await until(() => heard >= goal);
  return performance.now() - startedAt;
}

async function close(): Promise<null> {
  const closed = sockets.splice(0).map((socket) => {
    socket.terminate();
    return once(socket, "close");
  });
  await Promise.all(closed);
  return null;
}

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) {
    const { promise, resolve } = Promise.withResolvers<void>();
    wake = resolve;
    await promise;
  }
}

function post(url: string, body: string, headers: Record<string, string>): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const request = ask(url, { method: "POST", agent, headers }, (response) => {
    response.resume().once("end", () => resolve(response.statusCode ?? 0));
  });
  request.once("error", reject);
  request.end(body);
  return promise;
}
