/** The shape of a check of `trunkline admin doctor`, and the run of all of them beside each other. */
import type { Bus } from "../../../actors/runtime/bus/bus.ts";
import { type Clock, systemClock } from "../../../actors/runtime/lib/clock.ts";
import { within } from "../../../actors/runtime/lib/time-limit.ts";
import type { Config } from "../../config.ts";

/** `failure`: service stops, or does not start. `warning`: something does not work, or will not for long. */
export const LEVELS = ["good", "warning", "failure"] as const;
export type Level = (typeof LEVELS)[number];

export interface Finding {
  level: Level;
  /** The thing that was looked at, such as "disk speed". */
  about: string;
  found: string;
  wanted: string;
  /** The command or the setting that mends it; absent where nothing is to mend. */
  mend?: string;
}

export interface DoctorContext {
  config: Config;
  /** The site for the checks of DNS and egress. */
  site: URL;
  clock: Clock;
  /** A connection for all checks; undefined where the bus does not answer, which the check of the bus reports. */
  bus: Promise<Bus | undefined>;
  /** The reason why there is no connection. */
  busProblem: Promise<string | undefined>;
}

export interface Check {
  /** The subject of the check, such as "disk". */
  name: string;
  /** A check that takes longer counts as this finding. */
  timeMs: number;
  late: Level;
  run(context: DoctorContext): Promise<readonly Finding[]>;
}

/** Runs all checks beside each other, each within its time. Returns the findings in the order of the checks. */
export async function runChecks(
  checks: readonly Check[],
  context: DoctorContext,
): Promise<Finding[]> {
  const findings = await Promise.all(checks.map((check) => runCheck(check, context)));
  return findings.flat();
}

async function runCheck(check: Check, context: DoctorContext): Promise<readonly Finding[]> {
  const { name, timeMs: ms, late, run } = check;
  const { signal } = new AbortController();
  const error = () => new Error(`no outcome after ${ms / 1_000} s`);
  try {
    return await within({ ms, error, signal, clock: systemClock }, () => run(context));
  } catch (cause) {
    const found = cause instanceof Error ? cause.message : String(cause);
    return [{ level: late, about: name, found, wanted: "an outcome", mend: "repeat the check" }];
  }
}

export const good = (about: string, found: string, wanted: string): Finding => ({
  level: "good",
  about,
  found,
  wanted,
});

/** Returns the worst level. */
export function worstOf(findings: readonly Finding[]): Level {
  const worst = Math.max(0, ...findings.map(({ level }) => LEVELS.indexOf(level)));
  return LEVELS[worst] ?? "good";
}
