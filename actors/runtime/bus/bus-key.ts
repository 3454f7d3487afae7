/**
 * The NKey of a user of the bus. Signs with Node's Ed25519: the library's own is written in JavaScript, and its first
 * signatures took a tenth of the processor time of a start.
 */
import { createPrivateKey, createPublicKey, type KeyObject, sign } from "node:crypto";
import { type Authenticator, nkeys } from "@nats-io/transport-node";

/** The header of an Ed25519 private key in PKCS #8 (RFC 8410), before the 32 bytes of its seed. */
const PKCS8_HEADER = Buffer.from("302e020100300506032b657004220420", "hex");
/** The first byte of a user's public key. It makes the text begin with U. */
const USER_PREFIX = 20 << 3;

/** Returns the public key of a user's seed as the server's configuration names it. */
export function busPublicKey(seed: string): string {
  return publicKeyOf(privateKeyOf(seed));
}

/** Returns an authenticator that answers the server's challenge with a signature by the seed's key. */
export function busAuthenticator(seed: string): Authenticator {
  const key = privateKeyOf(seed);
  const nkey = publicKeyOf(key);
  return (nonce = "") => ({ nkey, sig: sign(null, Buffer.from(nonce), key).toString("base64") });
}

/** Throws if the seed is invalid. */
function privateKeyOf(seed: string): KeyObject {
  nkeys.fromSeed(new TextEncoder().encode(seed)); // Checks its form and its checksum.
  // Two bytes of prefixes come before the key's own seed, and two of a checksum after it.
  const key = Buffer.concat([PKCS8_HEADER, fromBase32(seed).subarray(2, 34)]);
  return createPrivateKey({ key, format: "der", type: "pkcs8" });
}

function publicKeyOf(key: KeyObject): string {
  const { x = "" } = createPublicKey(key).export({ format: "jwk" });
  const bytes = Buffer.concat([Buffer.of(USER_PREFIX), Buffer.from(x, "base64url")]);
  const checksum = Buffer.alloc(2);
  checksum.writeUInt16LE(crc16(bytes));
  return base32(Buffer.concat([bytes, checksum]));
}

/** CRC-16 with the polynomial of XMODEM, as NKeys end with it. */
function crc16(bytes: Uint8Array): number {
  let crc = 0;
  for (const byte of bytes) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit++) {
      crc = crc & 0x8000 ? ((crc << 1) ^ 0x1021) & 0xffff : crc << 1;
    }
  }
  return crc;
}

const BASE32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/** Encodes bytes whose bits fill whole characters, so that no padding is needed. */
function base32(bytes: Uint8Array): string {
  const bits = Array.from(bytes, (byte) => byte.toString(2).padStart(8, "0")).join("");
  return bits.replace(/.{5}/g, (five) => BASE32.charAt(Number.parseInt(five, 2)));
}

function fromBase32(text: string): Buffer {
  const bits = Array.from(text, (one) => BASE32.indexOf(one).toString(2).padStart(5, "0")).join("");
  return Buffer.from(Array.from(bits.matchAll(/.{8}/g), ([byte]) => Number.parseInt(byte, 2)));
}
