/** Sends requests of isomorphic-git through a repository binding, so that they need no access to the network. */
import type { HttpClient } from "isomorphic-git";
import type { Artifacts } from "trunkline/agents";

export function gitHttp(artifacts: Artifacts): HttpClient {
  return {
    async request({ url, method = "GET", headers = {}, body }) {
      const sent = body && new Blob(await Array.fromAsync(body, (piece) => new Uint8Array(piece)));
      const response = await artifacts.fetch(url, { method, headers, ...(sent && { body: sent }) });
      const bytes = new Uint8Array(await response.arrayBuffer());
      return {
        url,
        method,
        headers: Object.fromEntries(response.headers),
        body: (async function* () {
          yield bytes;
        })(),
        statusCode: response.status,
        statusMessage: response.statusText,
      };
    },
  };
}
