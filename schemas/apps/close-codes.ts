/** The codes and reasons that may be sent to close a WebSocket (RFC 6455, section 7.4, and IANA's registry). */

/**
 * Limit of a reason in UTF-8: a control frame holds 125 bytes, and the code takes two of them (RFC 6455, section
 * 5.5).
 */
export const CLOSE_REASON_BYTES_MAX = 123;

/**
 * Codes below 1015 that are not sent: 1004 has no meaning; 1005 and 1006 only exist locally. 1015 is local too, and
 * all codes from 1016 to 2999 are reserved for the protocol.
 */
const NOT_SENT = new Set([1004, 1005, 1006]);

/** Describes valid codes in errors. */
export const CLOSE_CODES = "1000 to 1014 as registered, or 3000 to 4999";

export const isCloseCode = (code: number): boolean =>
  Number.isInteger(code) &&
  ((code >= 1000 && code <= 1014 && !NOT_SENT.has(code)) || (code >= 3000 && code <= 4999));

export const isCloseReason = (reason: string): boolean =>
  new TextEncoder().encode(reason).length <= CLOSE_REASON_BYTES_MAX;
