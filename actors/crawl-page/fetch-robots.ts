/** Fetches a site's robots.txt in turns of the site's own, and tells the site what it found. */
import { randomBytes } from "node:crypto";
import { type Envelope, envelope } from "../../schemas/contract.ts";
import {
  ROBOTS_BYTES_MAX,
  ROBOTS_FETCH_MS_MAX,
  ROBOTS_REDIRECTS_MAX,
  ROBOTS_TRIES_MAX,
} from "../../schemas/crawl-limits.ts";
import { ActorError } from "../../schemas/errors.ts";
import { type RobotsOutcome, type Scheme, site } from "../../schemas/site.ts";
import { EgressError } from "../egress/egress-error.ts";
import { EgressAgents, egressFetch } from "../egress/egress-fetch.ts";
import type { EgressGuard } from "../egress/egress-guard.ts";
import { robotsOutcomeOf } from "../robots/robots-outcome.ts";
import type { Clock } from "../runtime/clock.ts";
import type { TaskContext } from "../runtime/define-worker.ts";
import type { Places } from "../runtime/places.ts";
import { beginTurn, type Departure, inTime, TooLate } from "./begin-turn.ts";
import { FetchDeadline } from "./fetch-deadline.ts";
import { isPassing, isPassingStatus } from "./passing-faults.ts";
import { redirectTarget } from "./redirect-target.ts";
import { awayMsOf } from "./retry-after.ts";
import { CRAWLER_USER_AGENT, PRODUCT_TOKEN } from "./user-agent.ts";

export interface RobotsFetchParts {
  guard: EgressGuard;
  clock: Clock;
  places: Places;
  ca?: string | undefined;
  fetchMs?: number;
}

export interface RobotsTask {
  host: string;
  scheme: Scheme;
  turn: string;
}

export type RobotsContext = Pick<TaskContext, "signal" | "call" | "send">;

/** What one request came to. */
type End = { kind: "end"; outcome: RobotsOutcome; retry: boolean; awayMs?: number | undefined };
type Answer = { kind: "gone" } | { kind: "redirect"; to: string | undefined } | End;

/** Each try begins anew, in the same turn. Returns what is to be sent; nothing where the site has lost the turn. */
export async function fetchRobots(
  parts: RobotsFetchParts,
  task: RobotsTask,
  context: RobotsContext,
): Promise<Envelope[]> {
  using agents = new EgressAgents({
    guard: parts.guard,
    connectionsMax: 1 + ROBOTS_REDIRECTS_MAX,
    ...(parts.ca !== undefined && { ca: parts.ca }),
  });
  const { host, scheme, turn } = task;
  const by = randomBytes(16).toString("hex");
  for (let attempt = 1; ; attempt++) {
    const answer = await new RobotsChain(parts, task, context, agents, by).follow();
    if (answer.kind === "gone") return [];
    const { outcome, retry, awayMs } = answer;
    // A host that wants to be left alone is not asked again in this turn.
    if (retry && awayMs === undefined && attempt < ROBOTS_TRIES_MAX) continue;
    return [
      envelope(site, host, "robotsFetched", { scheme, turn, outcome }),
      envelope(site, host, "turnFinished", { turn, ...(awayMs !== undefined && { awayMs }) }),
    ];
  }
}

/** One try: the file, or where it redirects to. */
class RobotsChain {
  readonly #parts: RobotsFetchParts;
  readonly #task: RobotsTask;
  readonly #context: RobotsContext;
  readonly #agents: EgressAgents;
  readonly #by: string;

  constructor(
    parts: RobotsFetchParts,
    task: RobotsTask,
    context: RobotsContext,
    agents: EgressAgents,
    by: string,
  ) {
    this.#parts = parts;
    this.#task = task;
    this.#context = context;
    this.#agents = agents;
    this.#by = by;
  }

  /** RFC 9309, section 2.3.1.2: also across authorities. */
  async follow(): Promise<Exclude<Answer, { kind: "redirect" }>> {
    let url = `${this.#task.scheme}://${this.#task.host}/robots.txt`;
    for (let hop = 0; ; hop++) {
      const answer = await this.#visit(url);
      if (answer.kind !== "redirect") return answer;
      if (answer.to === undefined || hop === ROBOTS_REDIRECTS_MAX) {
        const { host, scheme } = this.#task;
        const reader = { productToken: PRODUCT_TOKEN, url: `${scheme}://${host}/robots.txt` };
        const outcome = robotsOutcomeOf({ kind: "redirected_away" }, reader);
        return { kind: "end", outcome, retry: false };
      }
      url = answer.to;
    }
  }

  /** Asks the site whose host it is for the moment, which may be another's. */
  async #visit(url: string): Promise<Answer> {
    const { call, send } = this.#context;
    const { host } = new URL(url);
    if (host === this.#task.host) return this.#ask(url, host, this.#task.turn);
    const turn = randomBytes(16).toString("hex");
    await call(site, host, "visit", { turn });
    try {
      const answer = await this.#ask(url, host, turn);
      // The other host is too busy for a visitor: as if it could not be reached.
      return answer.kind === "gone" ? unreachable("its redirect's host is busy", true) : answer;
    } finally {
      await send([envelope(site, host, "turnFinished", { turn })]);
    }
  }

  async #ask(url: string, host: string, turn: string): Promise<Answer> {
    const { clock, places } = this.#parts;
    const { call, signal } = this.#context;
    const asked = { host, turn, urls: [url], intent: ANY_INTENT, by: this.#by };
    for (;;) {
      const begun = await beginTurn(asked, { call, clock, signal, places });
      if (begun.state === "gone") return { kind: "gone" };
      let told: Promise<unknown> = Promise.resolve();
      const tell = () => {
        told = call(site, host, "requestStarted", { turn }).catch((error: unknown) => {
          // The site then counts from the end of the turn.
          if (!(error instanceof ActorError)) throw error;
        });
      };
      try {
        return await inTime(asked, { call, clock, signal }, begun.lateAt, (departure) => {
          const onStarted = () => {
            departure.onStarted();
            tell();
          };
          return this.#request(url, { ...departure, onStarted });
        });
      } catch (error) {
        if (!(error instanceof TooLate)) throw error;
      } finally {
        begun.release();
        await told;
      }
    }
  }

  async #request(url: string, { signal, onStarting, onStarted }: Departure): Promise<Answer> {
    const { clock, fetchMs = ROBOTS_FETCH_MS_MAX } = this.#parts;
    const deadline = new FetchDeadline(signal, fetchMs, clock);
    try {
      const { status, headers, body } = await egressFetch(url, {
        agents: this.#agents,
        signal: deadline.signal,
        headers: { "user-agent": CRAWLER_USER_AGENT, accept: "text/plain,*/*;q=0.8" },
        bytesMax: Number.POSITIVE_INFINITY,
        redirectsMax: 0,
        onSending: onStarting,
        onSent: onStarted,
      });
      try {
        const target = redirectTarget(url, status, headers);
        if (target !== undefined) return { kind: "redirect", to: target.url };
        const reader = { productToken: PRODUCT_TOKEN, url };
        const isFile = status >= 200 && status < 300;
        const bytes = isFile ? await start(body) : new Uint8Array();
        return {
          kind: "end",
          outcome: robotsOutcomeOf({ kind: "answered", status, body: bytes }, reader),
          retry: isPassingStatus(status),
          awayMs: awayMsOf(status, headers.get("retry-after"), clock.now()),
        };
      } finally {
        body.destroy();
      }
    } catch (error) {
      signal.throwIfAborted();
      if (deadline.passed) return unreachable(`it took longer than ${fetchMs} ms`, true);
      if (error instanceof EgressError) return unreachable(error.message, isPassing(error));
      throw error;
    } finally {
      deadline.clear();
    }
  }
}

/** Nobody judges an address that is a robots.txt. */
const ANY_INTENT = { purposes: ["search" as const] };

function unreachable(because: string, retry: boolean): End {
  return { kind: "end", outcome: { kind: "disallow_all", because, unreachable: true }, retry };
}

/** One byte more than is read of it, so that its reader knows that there was more. */
async function start(body: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body) {
    chunks.push(chunk);
    length += chunk.length;
    if (length > ROBOTS_BYTES_MAX) break;
  }
  return Buffer.concat(chunks).subarray(0, ROBOTS_BYTES_MAX + 1);
}
