/** The types of a check of `trunkline admin doctor`, and the function that runs all checks in parallel. */
import type { Bus } from "../../../actors/runtime/bus/bus.ts";
import { type Clock, systemClock } from "../../../actors/runtime/lib/clock.ts";
import { within } from "../../../actors/runtime/lib/time-limit.ts";
import type { Config } from "../../config.ts";

/** `failure`: the service stops or does not start. `warning`: a part does not work, or will soon stop working. */
export const LEVELS = ["good", "warning", "failure"] as const;
export type Level = (typeof LEVELS)[number];

export interface Finding {
  level: Level;
  /** The checked thing, such as "disk speed". */
  about: string;
  found: string;
  wanted: string;
  /** The command or setting that fixes the problem. Absent if there is nothing to fix. */
  mend?: string;
}

export interface DoctorContext {
  config: Config;
  /** The site that the checks of DNS and egress use. */
  site: URL;
  clock: Clock;
  /** A connection for all checks. Undefined if the bus does not answer; the check of the bus reports this. */
  bus: Promise<Bus | undefined>;
  /** The reason why there is no connection to the bus. */
  busProblem: Promise<string | undefined>;
}

export interface Check {
  /** The subject of the check, such as "disk". */
  name: string;
  /** Timeout of the check. If it takes longer, `late` is its finding. */
  timeMs: number;
  late: Level;
  run(context: DoctorContext): Promise<readonly Finding[]>;
}

/** Runs all checks in parallel, each with its own timeout. Returns the findings in the order of the checks. */
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
  const tooLate = new Error(`no outcome after ${ms / 1_000} s`);
  try {
    return await within({ ms, error: () => tooLate, signal, clock: systemClock }, () =>
      run(context),
    );
  } catch (cause) {
    const found = cause instanceof Error ? cause.message : String(cause);
    const mend =
      cause === tooLate ? "repeat the check" : "mend what the error names, and repeat the check";
    return [{ level: late, about: name, found, wanted: "an outcome", mend }];
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
