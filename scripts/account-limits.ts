/** The limits of one account that depend on the sizes of streams, and the sizes of streams that depend on the disk. */
import type { Logger } from "pino";
import type { Bus } from "../actors/runtime/bus/bus.ts";
import { systemClock as clock } from "../actors/runtime/lib/clock.ts";
import { whenClusterIsReady } from "../deploy/streams.ts";
import type { AgentLimits } from "../schemas/apps/app-usage.ts";
import { STORE_DISK_SHARE } from "../schemas/store-limits.ts";
import { leastBytes, type StoreSizes, storeSizes } from "../schemas/store-sizes.ts";
import { STREAMS } from "../schemas/subjects.ts";
import { AccountBound } from "./account-bound.ts";
import type { Config } from "./config.ts";
import type { DiskRoom } from "./disk-room.ts";

interface Parts {
  bus: Bus;
  logger: Logger;
  config: Config;
}

/** Returns the limits of an account's agents. The bytes follow the size of the streams. */
export async function agentLimitsOn({ bus, logger, config }: Parts): Promise<AgentLimits> {
  const { agents, bytes: setting } = config.agentLimits;
  const parts = { bus, clock, logger, store: STREAMS.agents, setting };
  const bound = await whenClusterIsReady(() => AccountBound.start(parts));
  return {
    agents,
    get bytes() {
      return bound.bytes;
    },
  };
}

/** Returns a function that returns the bytes that an account may store in repositories; 0 means no limit. */
export async function gitBytesOn({ bus, logger, config }: Parts): Promise<() => number> {
  const setting = config.gitSizes.accountBytes;
  const parts = { bus, clock, logger, store: STREAMS.packs, setting };
  const bound = await whenClusterIsReady(() => AccountBound.start(parts));
  return () => bound.bytes;
}

/**
 * Returns a function that returns the bytes that an account's crawls may store; 0 means no limit. Without a setting,
 * only the size of the stream limits them.
 */
export async function crawlBytesOn({ bus, logger, config }: Parts): Promise<() => number> {
  const setting = config.crawlBytesPerAccount ?? Number.POSITIVE_INFINITY;
  const parts = { bus, clock, logger, store: STREAMS.crawl, setting };
  const bound = await whenClusterIsReady(() => AccountBound.start(parts));
  // A stream that somebody has created without a size does not limit accounts either.
  return () => (Number.isFinite(bound.bytes) ? bound.bytes : 0);
}

/**
 * Returns the sizes of the stores: of the setting's bytes, or of a share of the disk of the embedded server. The bytes
 * that the streams already store count as free. Where streams store data already, settings that fitted once still hold
 * although other files fill the disk: streams never shrink, and the bus refuses a growth without room.
 */
export async function storeSizesOn(
  bus: Pick<Bus, "jetstream">,
  { storeBytes, storeSizes: wanted }: Pick<Config, "storeBytes" | "storeSizes">,
  disk: Pick<DiskRoom, "freeBytes"> | undefined,
): Promise<StoreSizes> {
  if (storeBytes !== undefined || disk === undefined) return storeSizes(storeBytes, wanted);
  const { storage } = await bus.jetstream.getAccountInfo();
  const ofDisk = Math.floor((disk.freeBytes + storage) * STORE_DISK_SHARE);
  return storeSizes(storage > 0 ? Math.max(ofDisk, leastBytes(wanted)) : ofDisk, wanted);
}
