/** Compares the clock of this machine with the clocks of the servers of the bus. */
import { parseJson } from "../../../schemas/parse-json.ts";
import { type DoctorContext, type Finding, good } from "./check.ts";

/** Maximum difference without a warning. Clocks that NTP sets differ by less. */
const WARNING_MS = 1_000;
/** Above this difference, signatures of webhooks are refused, and tokens expire too early or too late. */
const FAILURE_MS = 300_000;
export const MEND_CLOCK = "timedatectl set-ntp true";

/** Compares the clock for each stream, because the leaders of the streams run on several servers. */
export async function checkClock({ bus, clock }: DoctorContext): Promise<readonly Finding[]> {
  const connected = await bus;
  if (connected === undefined) return [];
  const names = await Array.fromAsync(connected.jetstream.streams.names());
  let worst = { offsetMs: 0, toleranceMs: 0 };
  for (const name of names) {
    const before = clock.now();
    const answer = await connected.connection.request(`$JS.API.STREAM.INFO.${name}`);
    const after = clock.now();
    const at = timeOf(parseJson(answer.string()));
    if (at === undefined) continue;
    const offsetMs = at - (before + after) / 2;
    if (Math.abs(offsetMs) > Math.abs(worst.offsetMs)) {
      worst = { offsetMs, toleranceMs: (after - before) / 2 };
    }
  }
  return names.length === 0 ? [] : [findingOf(worst, "the bus")];
}

/**
 * Turns the measured difference to another clock into a finding. First subtracts the part that the network delay of
 * the reply may explain.
 */
export function findingOf(
  { offsetMs, toleranceMs }: { offsetMs: number; toleranceMs: number },
  other: string,
): Finding {
  const apart = Math.max(0, Math.abs(offsetMs) - toleranceMs);
  const found = `${Math.round(apart) / 1_000} s between this machine and ${other}`;
  const wanted = `at most ${WARNING_MS / 1_000} s`;
  if (apart <= WARNING_MS) return good("clock", found, wanted);
  const level = apart > FAILURE_MS ? "failure" : "warning";
  return { level, about: "clock", found, wanted, mend: MEND_CLOCK };
}

function timeOf(answer: unknown): number | undefined {
  if (typeof answer !== "object" || answer === null || !("ts" in answer)) return undefined;
  const at = Date.parse(String(answer.ts));
  return Number.isNaN(at) ? undefined : at;
}
