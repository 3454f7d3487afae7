/** Builds a process's access to the servers in TRUNKLINE_NATS_URL from the settings. */
import { X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import type { BusTls } from "../../actors/runtime/bus/bus-tls.ts";
import type { Config } from "../config.ts";
import { type BusAccess, nkeyAccess } from "./bus-access.ts";
import type { BusUserName } from "./users.ts";

type BusSettings = Pick<Config, "natsCredsFile" | "natsNkeys" | "natsTls">;

/**
 * Reads the files that the settings name. For an unusable file, rejects with a one-line error that names the setting.
 */
export async function outsideAccess(
  { natsCredsFile, natsNkeys, natsTls: tls }: BusSettings,
  url: string,
  users: readonly BusUserName[],
): Promise<BusAccess> {
  if (tls) await checkTls(tls);
  const login = { url, ...(tls && { tls }) };
  if (natsNkeys !== undefined) return await nkeyAccess(login, natsNkeys, users);
  if (natsCredsFile === undefined) return () => login;
  const credentials = await readText(
    "TRUNKLINE_NATS_CREDS",
    natsCredsFile,
    "a NATS credentials file",
  );
  return () => ({ ...login, credentials });
}

/**
 * Checks the certificate files. Without this check, an unusable file would look like a server that does not answer.
 */
async function checkTls({ caFile, certFile, keyFile }: BusTls): Promise<void> {
  if (caFile !== undefined) await checkCertificates("TRUNKLINE_NATS_CA", caFile);
  if (certFile !== undefined) await checkCertificates("TRUNKLINE_NATS_CERT", certFile);
  if (keyFile !== undefined) {
    await readText("TRUNKLINE_NATS_CERT_KEY", keyFile, "a private key in PEM");
  }
}

async function checkCertificates(setting: string, file: string): Promise<void> {
  const expected = "a file of certificates in PEM";
  const text = await readText(setting, file, expected);
  const [certificate] = text.match(CERTIFICATE) ?? [];
  if (certificate === undefined || !isCertificate(certificate)) {
    throw new Error(`${setting}: expected ${expected}, found "${file}"`);
  }
}

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

function isCertificate(text: string): boolean {
  try {
    return new X509Certificate(text).validTo !== "";
  } catch {
    return false; // The text between the lines is no certificate.
  }
}

async function readText(setting: string, file: string, expected: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (cause) {
    throw new Error(`${setting}: expected the path of ${expected}, found "${file}"`, { cause });
  }
}
