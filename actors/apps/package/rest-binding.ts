/** The common part of all bindings that offer operations of the REST API. */

export interface RestBinding {
  readonly namespace: string | undefined;
  /**
   * Makes any call of the API that the binding permits. `path` is relative to the account, such as
   * `/artifacts/usage`. Repositories are accessible in the binding's own namespace only.
   */
  fetch(path: string, init?: RequestInit): Promise<Response>;
}

/** Has a cursor if there are more entries; the last page has the total. */
export interface Page {
  cursor?: string;
  total?: number;
}
