/**
 * Decides which IP addresses this service may connect to: public addresses and the ranges that the operator allowed,
 * without the ranges that the operator denied.
 */
import { isIP } from "node:net";
import { networkInterfaces } from "node:os";
import ipaddr from "ipaddr.js";

/**
 * After this time the policy reads the machine's own addresses again. Reading costs 45 µs, more with many interfaces,
 * and machines seldom get a new address.
 */
export const EGRESS_OWN_ADDRESSES_KEPT_MS = 1_000;

export interface AddressPolicy {
  /** Returns in a few words for the log why the address is refused; undefined when the service may connect to it. */
  refusal(address: string): string | undefined;
}

/** The IP ranges that the operator allows or denies, in CIDR notation. */
export interface EgressRanges {
  /** Ranges that are allowed in addition to public addresses (`TRUNKLINE_EGRESS_ALLOW`). */
  allow?: readonly string[];
  /** Ranges that are denied, even if `allow` contains them (`TRUNKLINE_EGRESS_DENY`). */
  deny?: readonly string[];
}

interface AddressPolicyOptions extends EgressRanges {
  /**
   * Reads the addresses of this machine. They are refused because services may listen there that a firewall hides
   * from other machines. The policy reads them again every EGRESS_OWN_ADDRESSES_KEPT_MS, because the machine may get
   * a new address.
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

/**
 * Parses an address. An IPv4-mapped IPv6 address means the same host as its IPv4 address, so the function returns the
 * IPv4 address.
 */
function parseAddress(text: string): Address {
  if (isIP(text) === 4) return ipaddr.IPv4.parse(text);
  // ipaddr.js parses "::1.2.3.4" as an IPv4-mapped address, but a connection would use the address ::102:304. The URL
  // parser returns that form.
  const { hostname } = new URL(`http://[${text.replace(/%.*$/, "")}]/`);
  return ipaddr.process(hostname.slice(1, -1));
}

function parseRange(text: string): Range {
  if (!ipaddr.isValidCIDR(text)) {
    throw new Error(`Cannot read range "${text}": it is no CIDR such as 10.1.0.0/16 or fd00::/8`);
  }
  const [address, bits] = ipaddr.parseCIDR(text);
  // Addresses are compared as IPv4, so an IPv4-mapped range must be converted to IPv4 too.
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
/**
 * The well-known prefix of NAT64 (RFC 6052). In an IPv6-only network the addresses of all IPv4 sites have this
 * prefix.
 */
const NAT64 = ipaddr.parseCIDR("64:ff9b::/96");
/** These addresses are in a public range, but a cloud serves its own machines there (Azure's wire server). */
const CLOUD_SERVICES = ["168.63.129.16"];

/** Returns the IPv4 address to which a NAT64 gateway would connect for this IPv6 address. */
function translatedAddress(address: Address): Address | undefined {
  if (!isWithin(address, NAT64)) return undefined;
  return new ipaddr.IPv4(address.toByteArray().slice(-4));
}

function rangeRefusal(address: Address): string | undefined {
  const range = address.range();
  // Ranges such as 6to4, Teredo and local NAT64 have names too and are refused: no public site uses them.
  if (range !== "unicast") return `in the range ${range}`;
  if (CLOUD_SERVICES.includes(address.toString()))
    return "a service of the cloud around this machine";
  // IANA assigns global unicast addresses from 2000::/3 only. The other addresses are IPv4-compatible or reserved.
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
