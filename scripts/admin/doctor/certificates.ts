/** Checks the certificates of the public URL, of apps and of the bus, and the file of authorities for imports. */
import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { type PeerCertificate, type TLSSocket, connect as tlsConnect } from "node:tls";
import { readBusAddress } from "../../../actors/runtime/bus/bus-address.ts";
import type { BusTls } from "../../../actors/runtime/bus/bus-tls.ts";
import { type DoctorContext, type Finding, good, type Level } from "./check.ts";

const DAY_MS = 86_400_000;
/**
 * A certificate with fewer days left is a warning. ACME clients renew 30 days before the expiry, so a renewal must
 * have failed.
 */
const DAYS_LEFT_MIN = 14;
const CONNECT_MS_MAX = 5_000;
const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;
const NATS_PORT = 4_222;
const HTTPS_PORT = 443;

const MEND_PUBLIC = "renew it: the log of the ACME client or proxy says why it did not";
const MEND_GIT_CA = "put the new certificate of this authority into the file";
/** Nothing renews the certificates of the bus by itself. */
const MEND_BUS =
  "make a new certificate as docs/operate/security.md does, put it in the place of this one, and reload each server: nats-server --signal reload=<pid>";

interface Place {
  about: string;
  host: string;
  port: number;
  /** True for a server of NATS: it sends its first line in plain text, and TLS begins after this line. */
  isBus: boolean;
  /** Files for TLS to the bus. */
  tls?: BusTls;
}

export async function checkCertificates({
  config,
  clock,
}: DoctorContext): Promise<readonly Finding[]> {
  const now = clock.now();
  const places = [...publicPlaces(config), ...busPlaces(config)];
  const served = await Promise.all(places.map((place) => servedFinding(place, now)));
  const files = [
    { setting: "TRUNKLINE_GIT_CA", path: config.gitCa, expired: "warning", mend: MEND_GIT_CA },
    ...[
      { setting: "TRUNKLINE_NATS_CA", path: config.natsTls?.caFile },
      { setting: "TRUNKLINE_NATS_CERT", path: config.natsTls?.certFile },
    ].map((file) => ({ ...file, expired: "failure", mend: MEND_BUS }) as const),
  ] as const;
  return [...served, ...files.flatMap((file) => fileFindings(file, now))];
}

/** The host of an app has two labels below the domain of apps, so the certificate needs a wildcard for this level. */
function publicPlaces({ publicUrl, appsDomain }: DoctorContext["config"]): Place[] {
  const url = new URL(publicUrl);
  if (url.protocol !== "https:") return [];
  const port = Number(url.port) || HTTPS_PORT;
  const place = { about: `certificate of ${url.hostname}`, host: url.hostname, port, isBus: false };
  const [domain = "", appsPort] = appsDomain.split(":");
  if (domain.endsWith("localhost")) return [place];
  const host = `app.account.${domain}`;
  const apps = { about: `certificate of ${host}`, host, port: Number(appsPort) || port };
  return [place, { ...apps, isBus: false }];
}

function busPlaces({ natsUrl: urls, natsTls: tls }: DoctorContext["config"]): Place[] {
  if (urls === undefined || (!tls && !/\b(tls|wss):/.test(urls))) return [];
  return readBusAddress(urls)
    .servers.map((text) => new URL(text))
    .map(({ protocol, hostname, port }) => ({
      about: `certificate of the bus at ${hostname}`,
      host: hostname.replace(/^\[|\]$/g, ""),
      port: Number(port) || NATS_PORT,
      isBus: protocol === "tls:" || protocol === "nats:",
      ...(tls && { tls }),
    }));
}

async function servedFinding(place: Place, now: number): Promise<Finding> {
  const { about, host, port } = place;
  const wanted = `a certificate that is valid for ${DAYS_LEFT_MIN} days or more`;
  const socket = connect({ host, port });
  try {
    const signal = AbortSignal.timeout(CONNECT_MS_MAX);
    await once(socket, "connect", { signal });
    if (place.isBus) await once(socket, "data", { signal });
    const secure = await handshake(socket, place, signal);
    const certificate = secure.getPeerCertificate();
    // At run time, Node sets this property to an error code (a string), not to an Error.
    const problem: unknown = secure.authorizationError;
    return judge({ about, certificate, problem, now, isBus: place.isBus });
  } catch (error) {
    const reason = error instanceof Error && "code" in error ? error.code : error;
    const found = `no TLS at ${host}:${port} (${reason})`;
    return { level: "warning", about, found, wanted, mend: "start the server or proxy there" };
  } finally {
    socket.destroy();
  }
}

async function handshake(
  socket: Socket,
  { host, tls = {} }: Place,
  signal: AbortSignal,
): Promise<TLSSocket> {
  const name = /^[\d.]+$|:/.test(host) ? {} : { servername: host };
  const { caFile, certFile, keyFile } = tls;
  const secure = tlsConnect({
    ...{ socket, ...name, rejectUnauthorized: false },
    ...(caFile !== undefined && { ca: readFileSync(caFile) }),
    ...(certFile !== undefined && { cert: readFileSync(certFile) }),
    ...(keyFile !== undefined && { key: readFileSync(keyFile) }),
  });
  await once(secure, "secureConnect", { signal });
  return secure;
}

function judge({
  about,
  certificate,
  problem,
  now,
  isBus,
}: {
  about: string;
  certificate: PeerCertificate;
  problem: unknown;
  now: number;
  isBus: boolean;
}): Finding {
  const finding = expiryFinding({
    ...{ about, end: certificate.valid_to, now, expired: "failure" },
    mend: isBus ? MEND_BUS : MEND_PUBLIC,
  });
  if (finding.level !== "good" || !problem) return finding;
  if (isBus) {
    const wanted = "a certificate for this name that the authority in TRUNKLINE_NATS_CA signed";
    const mend = "correct TRUNKLINE_NATS_CA, or give the server another certificate";
    return { level: "failure", about, found: String(problem), wanted, mend };
  }
  const wanted = "a certificate for this name that clients trust";
  const mend = "let the proxy get a certificate for this name, or give clients its authority";
  return { level: "warning", about, found: String(problem), wanted, mend };
}

function expiryFinding({
  about,
  end,
  now,
  expired,
  mend,
}: {
  about: string;
  end: string;
  now: number;
  expired: Level;
  mend: string;
}): Finding {
  const days = Math.floor((Date.parse(end) - now) / DAY_MS);
  const wanted = `${DAYS_LEFT_MIN} days or more`;
  if (days >= DAYS_LEFT_MIN) return good(about, `${days} days left`, wanted);
  const isExpired = Date.parse(end) <= now;
  const found = isExpired ? `expired at ${end}` : `${days} days left`;
  return { level: isExpired ? expired : "warning", about, found, wanted, mend };
}

/**
 * Checks the expiry of the certificates in one file. An expired authority for imports matters only to imports from
 * servers that use this authority, so it is a warning. An expired authority or client certificate of the bus affects
 * every process, so it is a failure.
 */
function fileFindings(
  {
    setting: about,
    path,
    expired,
    mend,
  }: { setting: string; path: string | undefined; expired: Level; mend: string },
  now: number,
): Finding[] {
  if (path === undefined) return [];
  try {
    const texts = readFileSync(path, "latin1").match(CERTIFICATE) ?? [];
    if (texts.length === 0) throw new Error("no certificate in PEM");
    return texts.map((text) => {
      const { validTo: end } = new X509Certificate(text);
      return expiryFinding({ about, end, now, expired, mend });
    });
  } catch (error) {
    const found = `"${path}": ${error instanceof Error ? error.message : error}`;
    const wanted = "a file of certificates in PEM";
    return [{ level: "failure", about, found, wanted, mend: `correct ${about}` }];
  }
}
