/** Creates certificates for the TLS servers of tests, using only node:crypto. */
import { generateKeyPairSync, type KeyObject, sign } from "node:crypto";

export interface Certificate {
  key: string;
  cert: string;
}

interface Named {
  name: string;
  key: KeyObject;
}

/** Creates a certificate for the DNS name. It is valid from 2020 until `end`, by default until the end of 2048. */
export function selfSignedCertificate(name: string, end = "490101000000Z"): Certificate {
  const { privateKey: key, publicKey } = generateKeyPairSync("ec", { namedCurve: "prime256v1" });
  const names = sequence(element(0x82, Buffer.from(name)));
  const cert = certificate({ subject: name, issuer: { name, key }, publicKey, end }, [
    sequence(objectId("551d11"), element(0x04, names)),
  ]);
  return { key: pem(key), cert };
}

/** A certificate authority with its own certificate. It issues certificates. */
export class TestAuthority {
  readonly cert: string;
  readonly #issuer: Named;

  constructor(name = "Test authority") {
    const { privateKey: key, publicKey } = generateKeyPairSync("ec", { namedCurve: "prime256v1" });
    this.#issuer = { name, key };
    // The critical extension "basic constraints" marks the certificate as an authority's.
    const constraints = sequence(element(0x01, Buffer.of(0xff)));
    this.cert = certificate(
      { subject: name, issuer: this.#issuer, publicKey, end: "490101000000Z" },
      [sequence(objectId("551d13"), element(0x01, Buffer.of(0xff)), element(0x04, constraints))],
    );
  }

  /** Issues a certificate for the DNS name, for servers and clients. */
  issue(name: string, end = "490101000000Z"): Certificate {
    const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "prime256v1" });
    const names = sequence(element(0x82, Buffer.from(name)));
    const cert = certificate({ subject: name, issuer: this.#issuer, publicKey, end }, [
      sequence(objectId("551d11"), element(0x04, names)),
    ]);
    return { key: pem(privateKey), cert };
  }
}

let serial = 0;

/** Returns a certificate (RFC 5280, section 4.1) in PEM, encoded from DER. */
function certificate(
  {
    subject,
    issuer,
    publicKey,
    end,
  }: { subject: string; issuer: Named; publicKey: KeyObject; end: string },
  extensions: Buffer[],
): string {
  serial += 1;
  const ecdsaWithSha256 = sequence(objectId("2a8648ce3d040302"));
  const body = sequence(
    element(0xa0, integer(2)),
    integer(serial),
    ecdsaWithSha256,
    distinguished(issuer.name),
    sequence(utcTime("200101000000Z"), utcTime(end)),
    distinguished(subject),
    publicKey.export({ type: "spki", format: "der" }),
    element(0xa3, sequence(...extensions)),
  );
  const signature = element(0x03, Buffer.of(0), sign("sha256", body, issuer.key));
  const der = sequence(body, ecdsaWithSha256, signature);
  const lines = der.toString("base64").match(/.{1,64}/g) ?? [];
  return ["-----BEGIN CERTIFICATE-----", ...lines, "-----END CERTIFICATE-----", ""].join("\n");
}

const pem = (key: KeyObject) => key.export({ type: "pkcs8", format: "pem" }).toString();

const distinguished = (name: string) =>
  sequence(set(sequence(objectId("550403"), element(0x0c, Buffer.from(name)))));

function element(tag: number, ...parts: Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  const { length } = content;
  const size =
    length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 255];
  return Buffer.concat([Buffer.of(tag, ...size), content]);
}

function sequence(...parts: Buffer[]): Buffer {
  return element(0x30, ...parts);
}

function set(...parts: Buffer[]): Buffer {
  return element(0x31, ...parts);
}

function integer(value: number): Buffer {
  return element(0x02, Buffer.of(value));
}

function objectId(hex: string): Buffer {
  return element(0x06, Buffer.from(hex, "hex"));
}

function utcTime(text: string): Buffer {
  return element(0x17, Buffer.from(text));
}
