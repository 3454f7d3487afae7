/** One transition of a site in the making: its state, rows and sends, each as it will be. */
import type { DeepReadonly, Envelope } from "../../../schemas/contract.ts";
import { CRAWL_DELAY_MS } from "../../../schemas/crawl/limits.ts";
import type { Scheme } from "../../../schemas/crawl/site.ts";
import type { HandlerContext } from "../../runtime/define-actor.ts";
import type { Moment, Pace } from "./pace-state.ts";
import type { RobotsFile, SiteRow, SiteState } from "./site-state.ts";

export type State = DeepReadonly<SiteState>;
export type Row = DeepReadonly<SiteRow>;

export class Step {
  readonly before: State;
  state: State;
  readonly rows: Record<string, Row | null> = {};
  readonly send: Envelope[] = [];
  readonly context: HandlerContext<SiteRow>;
  /** A robots.txt has become known. */
  hasLearned = false;

  constructor(state: State, context: HandlerContext<SiteRow>) {
    this.before = state;
    this.state = state;
    this.context = context;
  }

  get now(): number {
    return this.context.now;
  }

  get pace(): Pace {
    return this.state.pace;
  }

  /** A pace that is as it was leaves the state as it was, which costs no commit. */
  set pace(pace: Pace) {
    if (pace !== this.state.pace) this.state = { ...this.state, pace };
  }

  get moment(): Moment {
    return { delayMs: delayOf(this.state), now: this.now };
  }

  row(name: string): Row | undefined {
    const written = this.rows[name];
    return written === undefined ? this.context.rows.get(name) : (written ?? undefined);
  }

  setRobots(scheme: Scheme, file: DeepReadonly<RobotsFile>): void {
    this.state = { ...this.state, robots: { ...this.state.robots, [scheme]: file } };
  }
}

/** The schemes share the host, so the slower of their files holds. Crawl-delay overrides our own either way. */
function delayOf({ robots }: State): number {
  const delays = [robots.http, robots.https].flatMap((file) => {
    if (file?.policy === undefined) return [];
    return file.policy.kind === "rules"
      ? (file.policy.crawlDelayMs ?? CRAWL_DELAY_MS)
      : CRAWL_DELAY_MS;
  });
  return delays.length === 0 ? CRAWL_DELAY_MS : Math.max(...delays);
}
