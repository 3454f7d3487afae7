/**
 * The turns behind the one that goes, in their order. Their workers are told whom they follow, so that requests leave at their
 * pace while nobody answers for the site: each goes a delay after it has heard that the one before has left. Such a turn
 * keeps its place until its worker gives it back or its request can leave no more, since it may leave unheard.
 */
import { LINE_DELAY_MS_MAX, TURNS_IN_LINE_MAX } from "../../schemas/crawl-limits.ts";
import type { Follow, PlacedTurn } from "../../schemas/site.ts";
import type { Pace } from "./pace-state.ts";

/** Whether turns of a host with this delay are told whom they follow: elsewhere an absence is little of their pace. */
export const hasLine = (delayMs: number) => delayMs > 0 && delayMs <= LINE_DELAY_MS_MAX;

/** Those who wait take the places that are free, in the order of their granting. */
export function lineUp(pace: Pace, delayMs: number): Pace {
  const { going, turns, line = [] } = pace;
  if (going?.place === undefined || !hasLine(delayMs)) return pace;
  const waiting = Object.entries(turns).filter(
    ([turn, { asked, startedAt, requests }]) =>
      asked && startedAt === undefined && requests === 1 && turn !== going.turn,
  );
  // The site's own go before all who have no place yet.
  if (waiting.some(([, { account }]) => account === "")) return pace;
  const free = waiting.filter(([turn]) => !line.some((one) => one.turn === turn));
  const added = free.slice(0, Math.max(0, TURNS_IN_LINE_MAX - line.length));
  if (added.length === 0) return pace;
  const { places = 0 } = pace;
  const placed = added.map(([turn], index) => ({ turn, place: places + 1 + index }));
  return { ...pace, places: places + added.length, line: [...line, ...placed] };
}

/** Whom the turn follows, if it has a place. */
export function followOf(
  { going, line = [] }: Pace,
  turn: string,
  delayMs: number,
): Follow | undefined {
  const index = line.findIndex((one) => one.turn === turn);
  const place = line[index]?.place;
  const before = line[index - 1] ?? going;
  if (place === undefined || before?.place === undefined) return undefined;
  return { place, after: { turn: before.turn, place: before.place }, delayMs };
}

/** The turn that goes next takes the first place; one that has none is given one. */
export function takeFirst(pace: Pace, turn: string): [PlacedTurn, Pace] {
  const [first, ...line] = pace.line ?? [];
  if (first !== undefined) return [first, { ...pace, line }];
  const place = (pace.places ?? 0) + 1;
  return [
    { turn, place },
    { ...pace, places: place },
  ];
}

/** Those before a turn that has left from its place have left as well; what is left of the line is behind it. */
export function leaveLine(
  pace: Pace,
  turn: string,
  place: number,
): { before: string[]; pace: Pace } | undefined {
  const { going, line = [] } = pace;
  const index = line.findIndex((one) => one.turn === turn && one.place === place);
  if (index < 0) return undefined;
  const before = line.slice(0, index).map((one) => one.turn);
  const { going: _, ...others } = pace;
  return {
    before: going === undefined ? before : [going.turn, ...before],
    pace: { ...others, line: line.slice(index + 1) },
  };
}

/** Where there is no delay nobody waits for another. */
export function withoutLine(pace: Pace): Pace {
  if (pace.line === undefined) return pace;
  const { line, ...others } = pace;
  return others;
}

/** The turn has given its place back. */
export function withoutPlace(pace: Pace, turn: string): Pace {
  const { line } = pace;
  if (!line?.some((one) => one.turn === turn)) return pace;
  return { ...pace, line: line.filter((one) => one.turn !== turn) };
}
