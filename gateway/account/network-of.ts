/** Names the network that a client's address stands for. */
import ipaddr from "ipaddr.js";

/** Returns the network by which limits count: an IPv4 address, or an IPv6 /64, whose addresses one machine may all use. */
export function networkOf(address: string): string {
  if (!ipaddr.isValid(address)) return "unknown";
  const parsed = ipaddr.process(address);
  if (parsed.kind() === "ipv4") return parsed.toString();
  return Buffer.from(parsed.toByteArray().slice(0, 8)).toString("hex");
}
