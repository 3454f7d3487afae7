/** Returns the names of a client's address and of its network, for limits that count per address or per network. */
import ipaddr from "ipaddr.js";
import { sha256 } from "../http/sha256.ts";

/** A /64 as networkOf() returns it. */
const IPV6_NETWORK = /^[0-9a-f]{16}$/;

/**
 * Returns the network under which limits count the address: an IPv4 address itself, or the /64 of an IPv6 address,
 * because one machine may use all addresses of a /64.
 */
export function networkOf(address: string): string {
  const parsed = parse(address);
  if (!parsed) return unreadable(address);
  if (parsed.kind() === "ipv4") return parsed.toString();
  return Buffer.from(parsed.toByteArray().slice(0, 8)).toString("hex");
}

/**
 * Returns the /48 that contains a network of networkOf(); an IPv4 address is returned as it is. One customer may
 * rent a /48 with its 65,536 networks, so limits of what all networks share must count the /48.
 */
export function widerNetworkOf(network: string): string {
  return IPV6_NETWORK.test(network) ? `${network.slice(0, 12)}/48` : network;
}

/**
 * How often a /48 may do what one of its networks may do. A /48 of one customer with many machines still has room,
 * but not 65,536 times as much as one network.
 */
export const NETWORKS_PER_WIDER_MAX = 10;

/** Returns the counters of an act from this network, each with its limit: that of the network and that of its /48. */
export function countersOf(act: string, network: string, limit: number) {
  const wider = widerNetworkOf(network);
  const own = { key: `${act}-from ${network}`, limit };
  if (wider === network) return [own];
  return [own, { key: `${act}-from ${wider}`, limit: limit * NETWORKS_PER_WIDER_MAX }];
}

/** Returns the address in one normal form, for limits that must not count the neighbours in its network. */
export function exactAddressOf(address: string): string {
  return parse(address)?.toString() ?? unreadable(address);
}

/** Parses an address, also with a port that a proxy has added. */
function parse(address: string) {
  const [, ipv6, ipv4] = /^(?:\[([^\]]+)\](?::\d+)?|(\d+\.\d+\.\d+\.\d+):\d+)$/.exec(address) ?? [];
  const bare = ipv6 ?? ipv4 ?? address;
  return ipaddr.isValid(bare) ? ipaddr.process(bare) : undefined;
}

/** Texts that are no address, such as names, are counted separately, so that they do not share one limit. */
const unreadable = (address: string) => `unknown ${sha256(address)}`;
