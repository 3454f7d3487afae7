/** Sends requests to the authorization server that get tokens or revoke them. */
import { z } from "zod";
import { COMMAND_LINE_CLIENT_ID } from "../../schemas/oauth/command-line.ts";
import { parseJson } from "../../schemas/parse-json.ts";
import { reach } from "./reach.ts";

/** Timeout of a refresh: longer than a loaded server needs, and shorter than the wait for the lock. */
const REFRESH_MS_MAX = 20_000;

const Tokens = z.object({
  access_token: z.string(),
  refresh_token: z.string(),
  expires_in: z.number(),
  scope: z.string().default(""),
});
export type Tokens = z.infer<typeof Tokens>;

const Refusal = z.object({ error: z.string(), error_description: z.string().optional() });

/** An error response of the authorization server (RFC 6749, section 5.2). */
export class OAuthRefusal extends Error {
  readonly code: string;

  constructor({ error, error_description: text }: z.infer<typeof Refusal>) {
    super(text ?? error);
    this.code = error;
  }
}

export function redeemCode(
  endpoint: string,
  { code, verifier, redirectUri }: { code: string; verifier: string; redirectUri: string },
): Promise<Tokens> {
  const fields = { code, code_verifier: verifier, redirect_uri: redirectUri };
  return askForTokens(endpoint, { grant_type: "authorization_code", ...fields });
}

export function refreshTokens(endpoint: string, refreshToken: string): Promise<Tokens> {
  return askForTokens(endpoint, { grant_type: "refresh_token", refresh_token: refreshToken });
}

/** Revokes a token. For a refresh token, this ends the whole grant (RFC 7009). */
export async function revokeToken(endpoint: string, token: string): Promise<void> {
  await post(endpoint, { token });
}

async function askForTokens(endpoint: string, fields: Record<string, string>): Promise<Tokens> {
  return Tokens.parse(await post(endpoint, fields));
}

async function post(endpoint: string, fields: Record<string, string>): Promise<unknown> {
  const response = await reach(endpoint, {
    method: "POST",
    body: new URLSearchParams({ ...fields, client_id: COMMAND_LINE_CLIENT_ID }),
    signal: AbortSignal.timeout(REFRESH_MS_MAX),
  });
  const text = await response.text();
  if (response.ok) return text === "" ? undefined : JSON.parse(text);
  const refusal = Refusal.safeParse(parseJson(text));
  if (refusal.success) throw new OAuthRefusal(refusal.data);
  throw new Error(`Cannot use ${endpoint}: it answered ${response.status}`);
}
