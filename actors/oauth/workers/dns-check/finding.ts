/** The result of a DNS lookup: a status for the client and a sentence for people. */
import type { z } from "zod";
import { DNS_ANSWER_CHARS_MAX } from "../../../../schemas/oauth/limits.ts";
import type { DomainOutcome } from "../../../../schemas/oauth/oauth-client.ts";

/** Limits the records of one DNS answer that are shown to a person. DNS_ANSWER_CHARS_MAX limits their characters. */
export const DNS_RECORDS_SHOWN_MAX = 10;

export interface Finding {
  outcome: z.infer<typeof DomainOutcome>;
  answer: string;
}

/** The answers to resolver errors which mean that the domain or its TXT record does not exist. */
const ABSENT: Record<string, string> = {
  ENODATA: "The domain has no TXT record",
  ENOTFOUND: "The domain does not exist",
};
const UNANSWERED: Record<string, string> = {
  ETIMEOUT: "No DNS server answered in time",
  ESERVFAIL: "The DNS server answered that it failed (SERVFAIL)",
  EREFUSED: "The DNS server refused to answer (REFUSED)",
  ECONNREFUSED: "The DNS server cannot be reached",
};

/**
 * Searches the records for the text. DNS splits one record into strings of at most 255 bytes, which are joined (RFC
 * 7208 section 3.3).
 */
export function ofRecords(records: readonly (readonly string[])[], text: string): Finding {
  const texts = records.map((strings) => strings.join(""));
  if (texts.includes(text))
    return { outcome: "found", answer: shortened(`TXT ${JSON.stringify(text)}`) };
  if (texts.length === 0) return { outcome: "absent", answer: "The domain has no TXT record" };
  const shown = texts.slice(0, DNS_RECORDS_SHOWN_MAX).map((one) => JSON.stringify(one));
  const hiddenCount = texts.length - shown.length;
  const list = `TXT ${shown.join(", ")}${hiddenCount > 0 ? ` and ${hiddenCount} more` : ""}`;
  return { outcome: "absent", answer: shortened(list) };
}

export function ofFailure(error: unknown): Finding {
  const code = error instanceof Error && "code" in error ? String(error.code) : "no code";
  const absent = ABSENT[code];
  if (absent !== undefined) return { outcome: "absent", answer: absent };
  const answer = UNANSWERED[code] ?? `The lookup failed (${code})`;
  return { outcome: "unanswered", answer };
}

function shortened(text: string): string {
  const whole = text.toWellFormed();
  if (whole.length <= DNS_ANSWER_CHARS_MAX) return whole;
  return `${whole.slice(0, DNS_ANSWER_CHARS_MAX - 1).toWellFormed()}…`;
}
