/** Reads the certificate authorities that the operator adds for imports. */
import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { getCACertificates } from "node:tls";

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/**
 * Returns all certificate authorities to trust, in PEM: those of the machine, of Node and of the file. Returns
 * undefined if no file is configured; git and Node then use their own defaults. Throws an error of one line if the
 * file is missing or invalid.
 */
export function readAuthorities(path: string | undefined): string | undefined {
  if (path === undefined) return undefined;
  const own = readFile(path).match(CERTIFICATE) ?? [];
  if (own.length === 0) throw wrongFile(path, "which has no certificate in PEM");
  for (const certificate of own) checkCertificate(path, certificate);
  const known = [...getCACertificates("default"), ...getCACertificates("system")];
  return `${[...new Set([...known, ...own].map((text) => text.trim()))].join("\n")}\n`;
}

function readFile(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : "an error";
    throw wrongFile(path, `which cannot be read (${code})`);
  }
}

function checkCertificate(path: string, certificate: string): void {
  try {
    new X509Certificate(certificate);
  } catch {
    throw wrongFile(path, "which has a certificate that cannot be read");
  }
}

const wrongFile = (path: string, why: string) =>
  new Error(
    `TRUNKLINE_GIT_CA: expected the path of a file of certificates in PEM, found "${path}", ${why}`,
  );
