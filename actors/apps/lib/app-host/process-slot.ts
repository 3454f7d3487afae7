/** A process of an app from its start to its end, as its host counts it. */
import type { ServingApp } from "../../../../schemas/apps/app.ts";
import { AGENT_TURN_MS_MAX } from "../../../../schemas/apps/limits.ts";
import type { Clock } from "../../../runtime/lib/clock.ts";
import type { AppProcess } from "../app-process/app-process.ts";

/** A running process with the serving version of an app's code. */
export interface Running {
  readonly process: AppProcess;
  /** Aborts when another version or changed secrets replace this process. */
  readonly outdated: AbortSignal;
}

export interface Slot {
  key: string;
  /** Id of the app. Hosts of earlier versions reply without it. */
  appId: string | undefined;
  starting: Promise<Running>;
  /** Set when the process has started. */
  running: Running | undefined;
  outdated: AbortController;
  idleSince: number | undefined;
  /** True after the process was ended to make room for another. */
  hasGivenWay?: true;
  /** True when this host has noticed that the app was deleted. */
  isDeleted?: true;
  /** Releases the place of the process. */
  release(): void;
}

/** Returns whether the slot runs or will run this revision of this app; false if it did not start. */
export async function isOf({ starting }: Slot, { id, revision }: ServingApp): Promise<boolean> {
  try {
    const { serving } = (await starting).process;
    return serving.revision === revision && serving.id === id;
  } catch {
    return false;
  }
}

/** Ends a retired process when nothing uses it, or its time is over. */
export async function drainSlot({ starting }: Slot, clock: Clock, stopped: AbortSignal) {
  try {
    const { process } = await starting;
    const giveUpAt = clock.monotonic() + AGENT_TURN_MS_MAX + DRAIN_MARGIN_MS;
    while (process.users > 0 && clock.monotonic() < giveUpAt && !process.isEnded) {
      await clock.wait(DRAIN_POLL_MS, stopped);
    }
    process.kill("another version took its place");
  } catch {
    // The process never started.
  }
}

/** Time added to AGENT_TURN_MS_MAX before a retired process is killed. Its agents close before that. */
const DRAIN_MARGIN_MS = 2_000;
const DRAIN_POLL_MS = 20;
