/** A transition of a site while its handler builds it. */
import type { DeepReadonly } from "../../../schemas/contract.ts";
import { CRAWL_DELAY_MS } from "../../../schemas/crawl/limits.ts";
import type { Scheme } from "../../../schemas/crawl/site.ts";
import { Draft } from "../../runtime/draft.ts";
import type { HandlerContext } from "../../runtime/kinds/define-actor.ts";
import { type Steady, steadyToStore } from "../../runtime/lib/steady-clock.ts";
import type { Moment, Pace } from "./pace-state.ts";
import { atPresent } from "./set-clock.ts";
import type { RobotsFile, SiteRow, SiteState } from "./site-state.ts";

export type State = DeepReadonly<SiteState>;

export class SiteDraft extends Draft<SiteState, SiteRow, "look"> {
  /** Whether this transition has learned a robots.txt. */
  hasLearned = false;
  readonly #steady: Steady | undefined;

  constructor(state: State, context: HandlerContext<SiteRow>) {
    super(state, context);
    this.#steady = context.steady?.();
    Object.assign(this.state, atPresent(state, { ...this.moment, steady: this.#steady }));
  }

  get pace(): Pace {
    return this.state.pace;
  }

  set pace(pace: Pace) {
    this.state.pace = pace;
  }

  get moment(): Moment {
    return { delayMs: delayOf(this.state), now: this.now };
  }

  /** Records by which clock the times of the state were written. */
  recordClock(): void {
    const clock = steadyToStore(this.state.clock, this.#steady);
    if (clock !== this.state.clock) this.state.clock = clock;
  }

  setRobots(scheme: Scheme, file: DeepReadonly<RobotsFile>): void {
    this.state.robots = { ...this.state.robots, [scheme]: file };
  }
}

/** Both schemes share the host, so the longer delay of their files applies. A Crawl-delay replaces our own delay. */
function delayOf({ robots }: State): number {
  const delays = [robots.http, robots.https].flatMap((file) => {
    if (file?.policy === undefined) return [];
    return file.policy.kind === "rules"
      ? (file.policy.crawlDelayMs ?? CRAWL_DELAY_MS)
      : CRAWL_DELAY_MS;
  });
  return delays.length === 0 ? CRAWL_DELAY_MS : Math.max(...delays);
}
