/** A page load for tests of loaders. Its request may leave at once. */
import { systemClock } from "../../../../runtime/lib/clock.ts";
import type { Departure } from "../../../lib/departure/departure.ts";
import type { PageLoad } from "../../../lib/load/page-loader.ts";

export type Watched = Partial<Omit<PageLoad, "url">>;

export function pageLoad(url: string, watched: Watched = {}): PageLoad {
  const startBy = systemClock.monotonic() + 60_000;
  return {
    ...departure(),
    url,
    isStart: false,
    isAlone: false,
    startBy,
    onLarge: async () => {},
    ...watched,
  };
}

export function departure(watched: Partial<Departure> = {}): Departure {
  return {
    signal: new AbortController().signal,
    due: async () => {},
    mayLeave: () => true,
    onUnseen: () => {},
    onStarting: () => {},
    onStarted: () => {},
    oneMore: async () => true,
    ...watched,
  };
}
