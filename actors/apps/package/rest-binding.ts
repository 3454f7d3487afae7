/** The common part of all bindings that offer operations of the REST API. */

export interface RestBinding {
  readonly namespace: string | undefined;
  /**
   * Calls any operation of the API that the binding permits. `path` is relative to the account, such as
   * `/artifacts/usage`. Only repositories in the binding's own namespace are accessible.
   */
  fetch(path: string, init?: RequestInit): Promise<Response>;
}

/** One page of a list. It has a cursor if there are more entries. The last page has the total. */
export interface Page {
  cursor?: string;
  total?: number;
}
