/**
 * The request that the arguments of a `fetch` name. One made of another has a second stream of its body, which takes
 * as long as many a handler.
 */
export const requestOf = (input: string | URL | Request, init?: RequestInit): Request =>
  input instanceof Request && init === undefined ? input : new Request(input, init);
