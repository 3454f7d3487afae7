/**
 * Returns the request that the arguments of a `fetch` describe. A given Request is returned as it is, because a copy
 * has a second body stream, which costs as much as many a handler.
 */
export const requestOf = (input: string | URL | Request, init?: RequestInit): Request =>
  input instanceof Request && init === undefined ? input : new Request(input, init);
