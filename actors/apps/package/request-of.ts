/**
 * Returns the request that the arguments of a `fetch` describe. A given Request is returned unchanged, because a copy
 * has a second body stream, which often costs as much as the whole handler.
 */
export const requestOf = (input: string | URL | Request, init?: RequestInit): Request =>
  input instanceof Request && init === undefined ? input : new Request(input, init);
