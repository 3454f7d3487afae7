/** Distinguishes temporary errors, after which a retry can succeed, from permanent ones. */
import type { EgressError } from "../../../egress/egress-error.ts";

export function isPassing({ code }: EgressError): boolean {
  switch (code) {
    case "name_not_resolved":
    case "connection_refused":
    case "address_unreachable":
    case "connection_closed":
    case "navigation_timed_out":
    case "network_failed":
      return true;
    case "address_refused":
    case "certificate_invalid":
    case "too_many_redirects":
    case "transfer_too_large":
      return false;
    default:
      return code satisfies never;
  }
}

const PASSING = new Set([408, 425, 429, 500, 502, 503, 504]);

export const isPassingStatus = (status: number) => PASSING.has(status);
