/** Names a client's address, and the network that it stands for. */
import ipaddr from "ipaddr.js";
import { sha256 } from "../http/sha256.ts";

/** Returns the network by which limits count: an IPv4 address, or an IPv6 /64, whose addresses one machine may all use. */
export function networkOf(address: string): string {
  const parsed = parse(address);
  if (!parsed) return unreadable(address);
  if (parsed.kind() === "ipv4") return parsed.toString();
  return Buffer.from(parsed.toByteArray().slice(0, 8)).toString("hex");
}

/** Returns one form of the address itself, for limits that must not count neighbours in its network. */
export function exactAddressOf(address: string): string {
  return parse(address)?.toString() ?? unreadable(address);
}

/** Reads an address, also one to which a proxy has added the port. */
function parse(address: string) {
  const [, ipv6, ipv4] = /^(?:\[([^\]]+)\](?::\d+)?|(\d+\.\d+\.\d+\.\d+):\d+)$/.exec(address) ?? [];
  const bare = ipv6 ?? ipv4 ?? address;
  return ipaddr.isValid(bare) ? ipaddr.process(bare) : undefined;
}

/** Other texts, such as names, must not share one limit. */
const unreadable = (address: string) => `unknown ${sha256(address)}`;
