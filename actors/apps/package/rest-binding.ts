/** The common part of all bindings whose operations are those of the REST API. */

export interface RestBinding {
  readonly namespace: string | undefined;
  /**
   * Any call of the API that the binding opens: `path` is below the account's own part of it, as `/artifacts/usage`.
   * Repositories are open in the binding's own namespace alone.
   */
  fetch(path: string, init?: RequestInit): Promise<Response>;
}

/** A cursor where there is more; on the last page how many there are in all. */
export interface Page {
  cursor?: string;
  total?: number;
}
