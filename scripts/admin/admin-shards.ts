/** `trunkline admin shards`: lists the hosts, the shards of each host, and whether the host is alive. */
import { type OwningHost, readShardOwners } from "../../actors/runtime/placement/shard-owners.ts";
import { age } from "./age.ts";
import { table } from "./table.ts";
import { UsageError } from "./usage-error.ts";
import { withBus } from "./with-bus.ts";

export async function adminShards(
  surplus: readonly string[],
  environment: NodeJS.ProcessEnv,
): Promise<void> {
  if (surplus.length > 0)
    throw new UsageError('Cannot run "admin shards": expected nothing after it');
  const { hosts, free, shards } = await withBus(environment, async (bus) => ({
    ...(await readShardOwners(bus)),
    ...bus.layout,
  }));
  if (hosts.length > 0) {
    const heading = ["HOST", "LEASE", "RENEWED", "OWNED", "SHARDS"];
    console.log(`${table(heading, hosts.map(rowOf))}\n`);
  }
  const gone = hosts.flatMap(({ lease, shards }) => (lease === "gone" ? shards : []));
  const unowned = [...free, ...gone].sort((a, b) => a - b);
  const owned = shards - unowned.length;
  const rest = unowned.length === 0 ? "" : `; no host owns ${ranges(unowned)}`;
  console.log(`${owned} of ${shards} shards have an owner${rest}`);
}

function rowOf({ id, lease, renewedAt, shards }: OwningHost) {
  return [id, lease, renewedAt ? `${age(renewedAt)} ago` : "-", shards.length, ranges(shards)];
}

/** Formats ascending numbers as ranges: `0-2 5 7-9`. */
export function ranges(numbers: readonly number[]): string {
  const found: [number, number][] = [];
  for (const number of numbers) {
    const last = found.at(-1);
    if (last && last[1] === number - 1) last[1] = number;
    else found.push([number, number]);
  }
  return found.map(([from, to]) => (from === to ? `${from}` : `${from}-${to}`)).join(" ");
}
