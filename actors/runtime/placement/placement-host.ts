/** The dependencies of placement, and the actions of the actor host that placement starts. */
import type { Logger } from "pino";
import type { Bus } from "../bus/bus.ts";
import type { Clock } from "../lib/clock.ts";
import type { StateStore } from "../state/state-store.ts";
import type { Epoch } from "./epoch.ts";

export interface PlacementParts {
  bus: Bus;
  /** One store per state bucket. The data of shard `p` is in store `p mod stores.length`. */
  stores: readonly StateStore[];
  host: PlacementHost;
  clock: Clock;
  logger: Logger;
  /** The start of this host's id, for operators; a random part makes it unique. */
  hostName: string;
}

/** The actions of a host on its shards that placement starts. */
export interface PlacementHost {
  /** Opens the journal of the host name `host` in the shard's bucket. Must run before any epoch has this name. */
  openJournal(shard: number, host: string): Promise<void>;
  /** Writes the pending commits of former owners to the shard's keys. Runs after the new epoch is written. */
  replay(
    shard: number,
    epoch: number,
    sources: Pick<Epoch, "from" | "firstJournals">,
  ): Promise<void>;
  /** Loads the shard and takes its messages. Rejects if this fails; placement then takes the shard again. */
  open(shard: number, epoch: number, host: string): Promise<void>;
  /**
   * Finishes and commits the messages that the shard has taken. Resolves when no data of the shard is left in memory,
   * with true if the shard's keys hold all its commits.
   */
  handOver(shard: number): Promise<boolean>;
  /** Drops the shard immediately, because another host owns it or may own it. */
  drop(shard: number): void;
  /** Called when the host continues under another name. The host must write nothing more under the former name. */
  renamed(): void;
  /** Asks the leaders whether a journal of this host is stored. */
  hasJournal(host: string): Promise<boolean>;
  /** Removes the journal of a host. Called when nobody needs the journal any more. */
  forgetJournal(host: string): Promise<void>;
  /** Frees the memory of a journal that was replayed here. */
  releaseJournal(host: string): void;
}
