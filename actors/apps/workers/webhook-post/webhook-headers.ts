/** The headers of an outgoing webhook: the headers of Standard Webhooks, and a signature of the body alone. */
import { createHmac } from "node:crypto";

const SECRET_PREFIX = "whsec_";

/** Returns the headers of one attempt. Each attempt is signed anew, because receivers refuse old signatures. */
export function webhookHeaders({
  id,
  contentType,
  body,
  secrets,
  now,
}: {
  id: string;
  contentType: string;
  body: Buffer;
  /**
   * The secrets that sign the webhook. The first secret also signs the body alone. If there are none, nothing is
   * signed.
   */
  secrets: readonly string[];
  now: number;
}): Record<string, string> {
  const timestamp = String(Math.floor(now / 1_000));
  const headers = {
    "content-type": contentType,
    "user-agent": "Trunkline-Webhooks/1.0",
    "webhook-id": id,
    "webhook-timestamp": timestamp,
  };
  const [first] = secrets;
  if (first === undefined) return headers;
  const signatures = secrets.map((secret) => {
    const hmac = createHmac("sha256", keyOf(secret)).update(`${id}.${timestamp}.`);
    return `v1,${hmac.update(body).digest("base64")}`;
  });
  const ofBody = createHmac("sha256", first).update(body).digest("hex");
  return {
    ...headers,
    // Signatures are separated by spaces. A receiver accepts the webhook if one of them matches (Standard Webhooks,
    // "Signature scheme").
    "webhook-signature": signatures.join(" "),
    "x-signature": `sha256=${ofBody}`,
  };
}

function keyOf(secret: string): Buffer | string {
  if (!secret.startsWith(SECRET_PREFIX)) return secret;
  return Buffer.from(secret.slice(SECRET_PREFIX.length), "base64");
}
