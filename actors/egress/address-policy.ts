/**
 * Decides which IP addresses this service may connect to: public ones and those the operator opened, without those
 * the operator denied.
 */
import { isIP } from "node:net";
import { networkInterfaces } from "node:os";
import ipaddr from "ipaddr.js";

/** The machine's own addresses are read again after this: reading costs 45 µs, more with many interfaces, and an address is seldom added. */
export const EGRESS_OWN_ADDRESSES_KEPT_MS = 1_000;

export interface AddressPolicy {
  /** Why the address is refused, in a few words for the log, or nothing when it may be dialled. */
  refusal(address: string): string | undefined;
}

/** The operator's own ranges, as CIDRs. */
export interface EgressRanges {
  /** Open besides public addresses (`TRUNKLINE_EGRESS_ALLOW`). */
  allow?: readonly string[];
  /** Closed, even where `allow` opens them (`TRUNKLINE_EGRESS_DENY`). */
  deny?: readonly string[];
}

interface AddressPolicyOptions extends EgressRanges {
  /**
   * Reads the addresses of this machine: services may listen there that a firewall hides from others.
   * The policy reads them again every EGRESS_OWN_ADDRESSES_KEPT_MS, since the machine may be given another one.
   */
  ownAddresses?: () => readonly string[];
  /** Monotonic milliseconds. */
  now?: () => number;
}

type Address = ReturnType<typeof ipaddr.process>;
type Range = ReturnType<typeof ipaddr.parseCIDR>;

export function createAddressPolicy(options: AddressPolicyOptions = {}): AddressPolicy {
  const { ownAddresses = interfaceAddresses, now = () => performance.now() } = options;
  const allowed = (options.allow ?? []).map(parseRange);
  const denied = (options.deny ?? []).map(parseRange);
  let own: ReadonlySet<string> = new Set();
  let ownExpiresAt = Number.NEGATIVE_INFINITY;
  return { refusal };

  function refusal(text: string): string | undefined {
    if (isIP(text) === 0) return "not an IP address";
    const address = parseAddress(text);
    const translated = translatedAddress(address);
    const forms = translated === undefined ? [address] : [address, translated];
    if (forms.some((form) => isWithinAny(form, denied))) return "in a range the operator denied";
    if (forms.some((form) => isWithinAny(form, allowed))) return undefined;
    if (forms.some((form) => isOwn(form))) return "an address of this machine";
    return rangeRefusal(translated ?? address);
  }

  function isOwn(address: Address): boolean {
    if (now() >= ownExpiresAt) {
      own = new Set(ownAddresses().map(canonical));
      ownExpiresAt = now() + EGRESS_OWN_ADDRESSES_KEPT_MS;
    }
    return own.has(address.toString());
  }
}

/** IPv4-mapped IPv6 is the same host as its IPv4 address, and is judged as that. */
function parseAddress(text: string): Address {
  if (isIP(text) === 4) return ipaddr.IPv4.parse(text);
  // ipaddr.js takes "::1.2.3.4" for a mapped address, but a connection goes to ::102:304: the URL parser writes it so.
  const { hostname } = new URL(`http://[${text.replace(/%.*$/, "")}]/`);
  return ipaddr.process(hostname.slice(1, -1));
}

function parseRange(text: string): Range {
  if (!ipaddr.isValidCIDR(text)) {
    throw new Error(`Cannot read range "${text}": it is no CIDR such as 10.1.0.0/16 or fd00::/8`);
  }
  const [address, bits] = ipaddr.parseCIDR(text);
  // Addresses are compared as IPv4, so a mapped range has to become IPv4 too.
  if (address.kind() === "ipv6" && bits >= 96 && "isIPv4MappedAddress" in address) {
    if (address.isIPv4MappedAddress()) return [address.toIPv4Address(), bits - 96];
  }
  return [address, bits];
}

function isWithin(address: Address, [network, bits]: Range): boolean {
  return address.kind() === network.kind() && address.match(network, bits);
}

function isWithinAny(address: Address, ranges: readonly Range[]): boolean {
  return ranges.some((range) => isWithin(address, range));
}

const GLOBAL_UNICAST = ipaddr.parseCIDR("2000::/3");
/** NAT64's well-known prefix (RFC 6052): where there is only IPv6, every IPv4 site resolves to it. */
const NAT64 = ipaddr.parseCIDR("64:ff9b::/96");
/** Public by its range, but a cloud answers its own machines there (Azure's wire server). */
const CLOUD_SERVICES = ["168.63.129.16"];

/** The IPv4 address a NAT64 gateway would connect to on behalf of this one. */
function translatedAddress(address: Address): Address | undefined {
  if (!isWithin(address, NAT64)) return undefined;
  return new ipaddr.IPv4(address.toByteArray().slice(-4));
}

function rangeRefusal(address: Address): string | undefined {
  const range = address.range();
  // 6to4, Teredo, local NAT64 and the like are named ranges too: nobody serves pages from them.
  if (range !== "unicast") return `in the range ${range}`;
  if (CLOUD_SERVICES.includes(address.toString()))
    return "a service of the cloud around this machine";
  // IANA has given out global unicast from 2000::/3 only; the rest holds IPv4-compatible and reserved forms.
  if (address.kind() === "ipv6" && !isWithin(address, GLOBAL_UNICAST))
    return "in the range reserved";
  return undefined;
}

function interfaceAddresses(): string[] {
  return Object.values(networkInterfaces()).flatMap((entries) =>
    (entries ?? []).map((entry) => entry.address),
  );
}

function canonical(address: string): string {
  return parseAddress(address).toString();
}
