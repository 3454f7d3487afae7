/**
 * Client of the REST API for the command line. It authenticates with the stored login or with the token of the
 * environment.
 */
import { z } from "zod";
import { parseJson } from "../../schemas/parse-json.ts";
import { Id } from "../../schemas/values.ts";
import { CommandFailure } from "./command.ts";
import { type Login, loginFolder, readLogin, withLoginLock, writeLogin } from "./login-file.ts";
import { OAuthRefusal, refreshTokens } from "./oauth-requests.ts";
import { reach } from "./reach.ts";

/** A token that expires sooner than this is refreshed before it is used. */
const TOKEN_LEFT_MS_MIN = 60_000;

const Envelope = z.object({
  success: z.boolean(),
  errors: z.array(
    z.object({
      code: z.int(),
      message: z.string(),
      source: z.object({ pointer: z.string() }).optional(),
    }),
  ),
  result: z.unknown(),
  result_info: z.object({ cursor: z.string().optional() }).optional(),
});

/** A refusal by the server. The message contains the server's error messages, one a line. */
export class Refused extends CommandFailure {
  readonly status: number;
  readonly retryAfterS: number | undefined;

  constructor(status: number, message: string, retryAfterS?: number) {
    super(message);
    this.status = status;
    this.retryAfterS = retryAfterS;
  }
}

export interface Asking {
  method?: "GET" | "PUT" | "POST" | "DELETE";
  json?: unknown;
  signal?: AbortSignal;
}

export interface Platform {
  apiUrl: string;
  accountId: string;
  /**
   * Sends a request and resolves with its result. `path` is relative to the account's path. Throws `Refused` with the
   * server's message.
   */
  ask<S extends z.ZodType>(path: string, schema: S, asking?: Asking): Promise<z.output<S>>;
  /** Requests one page of a result that has several pages. */
  askPage<S extends z.ZodType>(
    path: string,
    schema: S,
  ): Promise<{ result: z.output<S>; cursor: string | undefined }>;
}

/** Accepts the address of the platform or of its API: with or without `/v4` at its end. */
export function readApiUrl(text: string, name: string): string {
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol)) {
    throw new CommandFailure(
      `Cannot use ${name}: expected a URL such as http://127.0.0.1:8787, not "${text}"`,
    );
  }
  const path = url.pathname.replace(/\/+$/, "");
  return `${url.origin}${path.endsWith("/v4") ? path : `${path}/v4`}`;
}

export async function openPlatform(environment: NodeJS.ProcessEnv): Promise<Platform> {
  const { TRUNKLINE_API_TOKEN: token } = environment;
  return token === undefined || token === ""
    ? fromLogin(environment)
    : fromEnvironment(environment, token);
}

async function fromEnvironment(environment: NodeJS.ProcessEnv, token: string): Promise<Platform> {
  const { TRUNKLINE_API_URL: url = "", TRUNKLINE_ACCOUNT_ID: named = "" } = environment;
  if (url === "") {
    throw new CommandFailure(
      "Cannot use TRUNKLINE_API_TOKEN: expected TRUNKLINE_API_URL beside it",
    );
  }
  const apiUrl = readApiUrl(url, "TRUNKLINE_API_URL");
  const bearer = { get: async () => token };
  return platform(apiUrl, bearer, named || (await onlyAccount(apiUrl, token)));
}

async function fromLogin(environment: NodeJS.ProcessEnv): Promise<Platform> {
  const folder = loginFolder(environment);
  const login = await readLogin(folder);
  if (login === undefined) {
    throw new CommandFailure(
      "Cannot reach the platform: nobody is logged in; run trunkline login, or set TRUNKLINE_API_URL and TRUNKLINE_API_TOKEN",
    );
  }
  const { TRUNKLINE_API_URL: url = "", TRUNKLINE_ACCOUNT_ID: named = "" } = environment;
  const apiUrl = url === "" ? login.api_url : readApiUrl(url, "TRUNKLINE_API_URL");
  // A token is sent only to the platform that issued it.
  if (apiUrl !== login.api_url) {
    throw new CommandFailure(
      `Cannot ask ${apiUrl}: you are logged in at ${login.api_url}; run trunkline login, or set TRUNKLINE_API_TOKEN`,
    );
  }
  let current = login;
  const bearer = {
    async get() {
      if (Date.parse(current.expires_at) - Date.now() < TOKEN_LEFT_MS_MIN) await this.renew();
      return current.access_token;
    },
    async renew() {
      current = await renewLogin(folder, current.access_token);
    },
  };
  return platform(apiUrl, bearer, named || login.account_id);
}

/**
 * Runs under the lock. Of several commands that run at the same time, one refreshes the tokens and the others read
 * the new ones. If two commands used the same refresh token, the server would end the login.
 */
async function renewLogin(folder: string, accessToken: string): Promise<Login> {
  return withLoginLock(folder, async () => {
    const login = await readLogin(folder);
    if (login === undefined) throw new CommandFailure("Cannot go on: the login was ended");
    if (login.access_token !== accessToken) return login;
    try {
      const tokens = await refreshTokens(login.token_endpoint, login.refresh_token);
      const renewed = { ...login, ...tokensOf(tokens) };
      await writeLogin(folder, renewed);
      return renewed;
    } catch (error) {
      if (!(error instanceof OAuthRefusal && error.code === "invalid_grant")) throw error;
      throw new CommandFailure("Cannot go on: the login is over; run trunkline login", {
        cause: error,
      });
    }
  });
}

export const tokensOf = (tokens: {
  access_token: string;
  refresh_token: string;
  expires_in: number;
}) => ({
  access_token: tokens.access_token,
  refresh_token: tokens.refresh_token,
  expires_at: new Date(Date.now() + tokens.expires_in * 1_000).toISOString(),
});

interface Bearer {
  get(): Promise<string>;
  renew?(): Promise<void>;
}

function platform(apiUrl: string, bearer: Bearer, accountId: string): Platform {
  if (!Id.safeParse(accountId).success) {
    throw new CommandFailure(
      `Cannot use TRUNKLINE_ACCOUNT_ID: expected 32 hexadecimal digits, not "${accountId}"`,
    );
  }
  const base = `${apiUrl}/accounts/${accountId}`;
  return {
    apiUrl,
    accountId,
    async ask(path, schema, asking = {}) {
      return schema.parse((await send(path, asking)).result);
    },
    async askPage(path, schema) {
      const { result, result_info: more } = await send(path, {});
      return { result: schema.parse(result), cursor: more?.cursor };
    },
  };

  async function send(path: string, asking: Asking) {
    try {
      return await askApi(`${base}${path}`, await bearer.get(), asking);
    } catch (error) {
      // A 401 response: the token was revoked, or this machine's clock is wrong. The request is sent again with a new
      // token.
      if (!(error instanceof Refused && error.status === 401 && bearer.renew)) throw error;
      await bearer.renew();
      return askApi(`${base}${path}`, await bearer.get(), asking);
    }
  }
}

const Accounts = z.array(z.object({ id: Id, name: z.string() }));
export type Accounts = z.infer<typeof Accounts>;

export async function accountsOf(apiUrl: string, token: string): Promise<Accounts> {
  return Accounts.parse((await askApi(`${apiUrl}/accounts`, token, {})).result);
}

async function onlyAccount(apiUrl: string, token: string): Promise<string> {
  const accounts = await accountsOf(apiUrl, token);
  const [only] = accounts;
  if (only !== undefined && accounts.length === 1) return only.id;
  const names = accounts.map(({ id, name }) => `${id} (${name})`).join(", ");
  throw new CommandFailure(`Cannot choose an account: set TRUNKLINE_ACCOUNT_ID to one of ${names}`);
}

async function askApi(url: string, token: string, { method = "GET", json, signal }: Asking) {
  const response = await reach(url, {
    method,
    headers: {
      Authorization: `Bearer ${token}`,
      ...(json !== undefined && { "Content-Type": "application/json" }),
    },
    ...(json !== undefined && { body: JSON.stringify(json) }),
    ...(signal && { signal }),
  });
  const envelope = Envelope.safeParse(parseJson(await response.text()));
  if (envelope.success && envelope.data.success) return envelope.data;
  const messages = envelope.success ? envelope.data.errors.map(({ message }) => message) : [];
  const lines =
    messages.length > 0 ? messages : [`Cannot understand ${url}: it answered ${response.status}`];
  const retryAfter = response.headers.get("retry-after");
  throw new Refused(
    response.status,
    lines.join("\n"),
    retryAfter === null ? undefined : Number(retryAfter),
  );
}
