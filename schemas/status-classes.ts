/** Classes of HTTP statuses. */

/** RFC 9110 section 15.3: it was received, understood and accepted. */
export const isSuccessful = (status: number): boolean => status >= 200 && status < 300;
