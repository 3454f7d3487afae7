/**
 * Checks the access to the internet: the name servers, and one site through the egress guard that pages and crawls
 * use.
 */
import { getServers } from "node:dns";
import { Resolver } from "node:dns/promises";
import { isIP } from "node:net";
import { createAddressPolicy } from "../../../actors/egress/address-policy.ts";
import { EgressAgents, egressFetch } from "../../../actors/egress/egress-fetch.ts";
import { createEgressGuard } from "../../../actors/egress/egress-guard.ts";
import { type DoctorContext, type Finding, good } from "./check.ts";
import { findingOf } from "./clock.ts";

const DNS_TRY_MS = 3_000;
const SITE_MS_MAX = 8_000;
/** Tolerance for the time in a Date header, which has whole seconds. */
const DATE_TOLERANCE_MS = 1_000;
/** Error codes that show a working name server: it answered that the name has no address. */
const DNS_ANSWERS = new Set(["ENOTFOUND", "ENODATA"]);

/** Queries each name server separately, because one server that does not answer delays every lookup. */
export async function checkDns({ config, site }: DoctorContext): Promise<readonly Finding[]> {
  // An address needs no server.
  const name = isIP(site.hostname) === 0 ? site.hostname : "example.com";
  const own = config.dnsServers;
  const servers = [...new Set([...own, ...getServers()])];
  return await Promise.all(servers.map((server) => dnsFinding(server, name, own.includes(server))));
}

async function dnsFinding(server: string, name: string, isSetting: boolean): Promise<Finding> {
  const resolver = new Resolver({ timeout: DNS_TRY_MS, tries: 1 });
  const about = `DNS ${server}`;
  const wanted = `an answer within ${DNS_TRY_MS / 1_000} s`;
  const startedAt = performance.now();
  try {
    resolver.setServers([server]);
    await resolver.resolve4(name);
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : String(error);
    if (!DNS_ANSWERS.has(code)) {
      const mend = isSetting
        ? "set TRUNKLINE_DNS_SERVERS to servers that answer"
        : "name servers that answer in /etc/resolv.conf, or open port 53 in the firewall";
      return { level: "warning", about, found: `${code} for ${name}`, wanted, mend };
    }
  }
  return good(about, `an answer after ${Math.round(performance.now() - startedAt)} ms`, wanted);
}

/** Fetches the site, and compares its Date header with this machine's clock. */
export async function checkEgress({
  config,
  site,
  clock,
}: DoctorContext): Promise<readonly Finding[]> {
  const guard = createEgressGuard({ policy: createAddressPolicy(config.egress) });
  const agents = new EgressAgents({ guard });
  const startedAt = performance.now();
  const wanted = `an answer of ${site.href}`;
  try {
    const signal = AbortSignal.timeout(SITE_MS_MAX);
    const { status, headers, body } = await egressFetch(site.href, {
      agents,
      signal,
      method: "HEAD",
      redirectsMax: 0,
    });
    body.destroy();
    const ms = Math.round(performance.now() - startedAt);
    const findings = [good("egress", `${status} of ${site.href} after ${ms} ms`, wanted)];
    const at = Date.parse(headers.get("Date") ?? "");
    if (Number.isNaN(at)) return findings;
    const offset = { offsetMs: at - clock.now(), toleranceMs: ms + DATE_TOLERANCE_MS };
    return [...findings, findingOf(offset, site.hostname)];
  } catch (error) {
    const found = error instanceof Error ? error.message : String(error);
    const mend =
      "open outgoing connections in the firewall; in a closed network name a site of it: --site <url>";
    return [{ level: "warning", about: "egress", found, wanted, mend }];
  } finally {
    agents.close();
  }
}
