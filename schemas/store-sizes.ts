/** Divides the disk of the bus among the stores that refuse writes when they are full. */
import {
  APP_LOGS_BYTES_MAX,
  CACHE_BYTES_MAX,
  KEPT_STORE_BYTES,
  STORE_BYTES,
  STORE_BYTES_SETTING_MIN,
  TRACES_BYTES_MAX,
} from "./store-limits.ts";

/** The part of the divided bytes that each store gets. */
const PARTS = { packs: 16, crawl: 8, renderJobs: 4, agents: 4, apps: 2 } as const;
const ALL_PARTS = Object.values(PARTS).reduce((sum, part) => sum + part, 0);

/** The stores with a size, in bytes. If a store has several streams, they share its bytes equally. */
export type StoreSizes = Readonly<Record<keyof typeof PARTS, number>>;
export const SIZED_STORES = Object.keys(PARTS) as (keyof StoreSizes)[];

/** Bytes of the streams whose sizes do not depend on the disk. */
export const FIXED_BYTES =
  KEPT_STORE_BYTES + CACHE_BYTES_MAX + APP_LOGS_BYTES_MAX + TRACES_BYTES_MAX;

/** The sizes that settings ask for. An unset size is a part of the bytes that the set ones leave. */
export type WantedSizes = { readonly [store in keyof StoreSizes]?: number | undefined };

/** The settings of the sizes. */
export const SIZE_SETTINGS = {
  packs: "TRUNKLINE_PACKS_BYTES",
  crawl: "TRUNKLINE_CRAWL_BYTES",
  renderJobs: "TRUNKLINE_RENDER_JOBS_BYTES",
  agents: "TRUNKLINE_AGENTS_BYTES",
  apps: "TRUNKLINE_APPS_BYTES",
} as const satisfies Record<keyof StoreSizes, string>;

/** Returns the fewest bytes with which `storeSizes` accepts these settings. */
export function leastBytes(wanted: WantedSizes): number {
  const sizes = SIZED_STORES.map((store) => wanted[store] ?? STORE_BYTES_SETTING_MIN);
  const divided = sizes.reduce((sum, size) => sum + size, 0);
  return Math.min(2 * divided, divided + FIXED_BYTES);
}

/**
 * Divides the bytes that all streams may have together. Throws an error that names the settings if they ask for more.
 */
export function storeSizes(bytes = STORE_BYTES, wanted: WantedSizes = {}): StoreSizes {
  // On a small disk, the streams of a fixed size get less as well.
  const divided = Math.max(Math.floor(bytes / 2), bytes - FIXED_BYTES);
  const set = SIZED_STORES.filter((store) => wanted[store] !== undefined);
  const taken = set.reduce((sum, store) => sum + (wanted[store] ?? 0), 0);
  const most = divided - (SIZED_STORES.length - set.length) * STORE_BYTES_SETTING_MIN;
  if (set.length > 0 && taken > most) {
    const names = set.map((store) => SIZE_SETTINGS[store]).join(" + ");
    throw new Error(
      `${names}: expected at most ${Math.max(0, most)} together, for which the disk of the bus or TRUNKLINE_STORE_BYTES has room, found "${taken}"`,
    );
  }
  const parts = ALL_PARTS - set.reduce((sum, store) => sum + PARTS[store], 0);
  const sizeOf = (store: keyof StoreSizes) => {
    const part = Math.floor(((divided - taken) * PARTS[store]) / parts);
    return wanted[store] ?? Math.max(STORE_BYTES_SETTING_MIN, part);
  };
  return {
    packs: sizeOf("packs"),
    crawl: sizeOf("crawl"),
    renderJobs: sizeOf("renderJobs"),
    agents: sizeOf("agents"),
    apps: sizeOf("apps"),
  };
}
