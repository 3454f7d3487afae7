/** Searches the TXT records of a domain for a text, and reports the resolver's answer. */
import { Resolver } from "node:dns/promises";
import { type Envelope, envelope } from "../../../../schemas/contract.ts";
import { dnsCheck } from "../../../../schemas/oauth/dns-check.ts";
import { oauthClient } from "../../../../schemas/oauth/oauth-client.ts";
import { defineWorker } from "../../../runtime/workers/define-worker.ts";
import { type Finding, ofFailure, ofRecords } from "./finding.ts";

/**
 * The timeout of the first attempt at a DNS server, and the number of attempts per server. A later attempt waits
 * longer: 9 s per server in total.
 */
export const DNS_TRY_MS = 3_000;
export const DNS_TRIES = 2;
/** Limits the concurrent lookups of one process. A lookup only waits for the network, so the limit can be high. */
export const DNS_LOOKUPS_MAX = 32;

interface DnsCheckOptions {
  /** Addresses of DNS servers, with or without a port. An empty list means the servers of the operating system. */
  servers: readonly string[];
  timing?: { tryMs: number; tries: number };
}

export function dnsCheckWorker({ servers, timing }: DnsCheckOptions) {
  const { tryMs = DNS_TRY_MS, tries = DNS_TRIES } = timing ?? {};
  return defineWorker(dnsCheck, {
    slots: { dns: DNS_LOOKUPS_MAX },
    handlers: {
      async findText({ host, text, check }, { key, signal }) {
        const finding = await find(host, text, signal);
        return { send: [report(key, check, finding)] };
      },
    },
    failures: {
      findText: ({ check }, error, { key }) => [report(key, check, ofFailure(error))],
    },
  });

  async function find(host: string, text: string, signal: AbortSignal): Promise<Finding> {
    signal.throwIfAborted();
    // One resolver per lookup: cancelling a resolver cancels all its lookups.
    const resolver = new Resolver({ timeout: tryMs, tries });
    if (servers.length > 0) resolver.setServers(servers);
    const cancel = () => resolver.cancel();
    signal.addEventListener("abort", cancel, { once: true });
    try {
      return ofRecords(await resolver.resolveTxt(host), text);
    } catch (error) {
      // If this worker is stopping, it throws, so that another worker retries the task.
      signal.throwIfAborted();
      return ofFailure(error);
    } finally {
      signal.removeEventListener("abort", cancel);
    }
  }
}

function report(clientId: string, check: number, finding: Finding): Envelope {
  return envelope(oauthClient, clientId, "domainChecked", { check, ...finding });
}
