/** The host that should own a shard, for a test that knows all hosts. */
import { PreferredHosts } from "../../actors/runtime/placement/rendezvous.ts";

export function preferredHost(shard: number, hosts: Iterable<string>): string | undefined {
  const preferred = new PreferredHosts(0);
  for (const host of hosts) preferred.add(host);
  return preferred.choose(shard);
}
