/** Fetches a logo of an OAuth client through the egress guard, and reports a copy that is safe to serve. */
import { createHash } from "node:crypto";
import { buffer } from "node:stream/consumers";
import { type Envelope, envelope } from "../../../../schemas/contract.ts";
import { clientLogo, type Logo } from "../../../../schemas/oauth/client-logo.ts";
import { LOGO_BYTES_MAX } from "../../../../schemas/oauth/limits.ts";
import { LOGO_TYPES, type LogoType, logoFetch } from "../../../../schemas/oauth/logo-fetch.ts";
import { EgressError } from "../../../egress/egress-error.ts";
import { EgressAgents, egressFetch } from "../../../egress/egress-fetch.ts";
import type { EgressGuard } from "../../../egress/egress-guard.ts";
import { defineWorker } from "../../../runtime/workers/define-worker.ts";

/** Limits the time of one fetch of a logo, with its redirects. */
const LOGO_FETCH_MS = 10_000;

/** Limits the concurrent fetches of one process. Each waits for the network and holds at most LOGO_BYTES_MAX. */
export const LOGO_FETCHES_MAX = 8;

interface LogoFetchOptions {
  guard: EgressGuard;
  /** Certificate authorities to trust instead of the usual ones. */
  ca?: string;
  timeoutMs?: number;
}

export function logoFetchWorker({ guard, ca, timeoutMs = LOGO_FETCH_MS }: LogoFetchOptions) {
  return defineWorker(logoFetch, {
    slots: { fetch: LOGO_FETCHES_MAX },
    handlers: {
      async fetch({ uri, attempt }, { key, signal }) {
        const logo = await load(uri, signal);
        return { send: [report(key, { uri, attempt, ...(logo && { logo }) })] };
      },
    },
    failures: {
      fetch: ({ uri, attempt }, _error, { key }) => [report(key, { uri, attempt })],
    },
  });

  /** Fetches the logo. Resolves to undefined if the address returns no logo that may be copied. */
  async function load(uri: string, stopping: AbortSignal): Promise<Logo | undefined> {
    using agents = new EgressAgents({ guard, ...(ca !== undefined && { ca }) });
    const signal = AbortSignal.any([stopping, AbortSignal.timeout(timeoutMs)]);
    try {
      const headers = { Accept: LOGO_TYPES.join(", ") };
      const answer = await egressFetch(uri, {
        ...{ agents, signal, headers, bytesMax: LOGO_BYTES_MAX },
        // No account is known here. All logos together have the lookups of one owner.
        lookupOwner: "logos",
      });
      // Refuse a redirect to plain HTTP: a network on the way could replace the picture that people see.
      if (answer.status !== 200 || !answer.url.startsWith("https:")) {
        answer.body.destroy();
        return undefined;
      }
      return logoOf(await buffer(answer.body));
    } catch (error) {
      // If this worker is stopping, it throws, so that another worker runs the task.
      stopping.throwIfAborted();
      if (error instanceof EgressError || signal.aborted) return undefined;
      throw error;
    }
  }
}

function logoOf(bytes: Buffer): Logo | undefined {
  const type = typeOf(bytes);
  if (type === undefined) return undefined;
  const hash = createHash("sha256").update(bytes).digest("hex");
  return { type, hash, base64: bytes.toString("base64") };
}

const PNG = Buffer.from("\x89PNG\r\n\x1a\n", "latin1");
const JPEG = Buffer.from([0xff, 0xd8, 0xff]);

/** Returns the type of the picture by its first bytes. The Content-Type of the response is not trusted. */
function typeOf(bytes: Buffer): LogoType | undefined {
  if (bytes.subarray(0, PNG.length).equals(PNG)) return "image/png";
  if (bytes.subarray(0, JPEG.length).equals(JPEG)) return "image/jpeg";
  const isWebp =
    bytes.toString("latin1", 0, 4) === "RIFF" && bytes.toString("latin1", 8, 12) === "WEBP";
  return isWebp ? "image/webp" : undefined;
}

function report(clientId: string, result: { uri: string; attempt: number; logo?: Logo }): Envelope {
  return envelope(clientLogo, clientId, "fetched", result);
}
