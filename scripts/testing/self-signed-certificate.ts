/** Makes a certificate for a test's TLS server, from nothing but node:crypto. */
import { generateKeyPairSync, sign } from "node:crypto";

export interface Certificate {
  key: string;
  cert: string;
}

/** Valid from 2020 to the end, by default of 2048, for the given DNS name; RFC 5280, section 4.1, in DER. */
export function selfSignedCertificate(name: string, end = "490101000000Z"): Certificate {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "prime256v1" });
  const ecdsaWithSha256 = sequence(objectId("2a8648ce3d040302"));
  const subject = sequence(set(sequence(objectId("550403"), element(0x0c, Buffer.from(name)))));
  const names = sequence(element(0x82, Buffer.from(name)));
  const extension = sequence(objectId("551d11"), element(0x04, names));
  const body = sequence(
    element(0xa0, integer(2)),
    integer(1),
    ecdsaWithSha256,
    subject,
    sequence(utcTime("200101000000Z"), utcTime(end)),
    subject,
    publicKey.export({ type: "spki", format: "der" }),
    element(0xa3, sequence(extension)),
  );
  const signature = element(0x03, Buffer.of(0), sign("sha256", body, privateKey));
  const der = sequence(body, ecdsaWithSha256, signature);
  const lines = der.toString("base64").match(/.{1,64}/g) ?? [];
  return {
    key: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
    cert: ["-----BEGIN CERTIFICATE-----", ...lines, "-----END CERTIFICATE-----", ""].join("\n"),
  };
}

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
