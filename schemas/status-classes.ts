/** Classes of HTTP statuses. */

/**
 * Returns whether the status means success (RFC 9110 section 15.3): the request was received, understood and
 * accepted.
 */
export const isSuccessful = (status: number): boolean => status >= 200 && status < 300;
