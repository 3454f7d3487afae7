/**
 * `trunkline login`: a person grants access in the browser, which then redirects to a port of this machine (RFC
 * 8252).
 */
import { spawn } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { z } from "zod";
import { COMMAND_LINE_CLIENT_ID, COMMAND_LINE_SCOPES } from "../../schemas/oauth/command-line.ts";
import { type Command, CommandFailure, readParameters } from "./command.ts";
import { type Login, loginFolder, readLogin, withLoginLock, writeLogin } from "./login-file.ts";
import { redeemCode, revokeToken } from "./oauth-requests.ts";
import { accountsOf, readApiUrl, tokensOf } from "./platform.ts";
import { reach } from "./reach.ts";
import { waitForCode } from "./wait-for-code.ts";

const LOCAL_URL = "http://127.0.0.1:8787";

const Server = z.object({
  issuer: z.url(),
  authorization_endpoint: z.url(),
  token_endpoint: z.url(),
  revocation_endpoint: z.url(),
  userinfo_endpoint: z.url(),
});
type Server = z.infer<typeof Server>;

export const login: Command = {
  name: "login",
  usage: "[--url <url>] [--account <id>] [--no-browser]",
  summary: "allow this machine to act for you, through your browser",
  help: `Opens a page of the platform and waits until you have signed in and consented. The tokens are stored in
trunkline/login.json of your configuration folder (XDG_CONFIG_HOME, ~/.config), readable by you only, and renewed as
needed.

  --url <url>      the platform; by default TRUNKLINE_API_URL or ${LOCAL_URL}
  --account <id>   the account for later commands, if you have several
  --no-browser     only print the address of the page`,
  async run(parameters, environment) {
    const { values } = readParameters(parameters, {
      options: {
        url: { type: "string" },
        account: { type: "string" },
        "no-browser": { type: "boolean" },
      },
    });
    const named =
      values.url === undefined ? environment.TRUNKLINE_API_URL || LOCAL_URL : values.url;
    const apiUrl = readApiUrl(
      String(named),
      values.url === undefined ? "TRUNKLINE_API_URL" : "--url",
    );
    const server = await findServer(apiUrl);
    const tokens = await authorize(server, values["no-browser"] !== true);
    const accounts = await accountsOf(apiUrl, tokens.access_token);
    const chosen =
      values.account === undefined ? accounts[0] : accounts.find(({ id }) => id === values.account);
    if (chosen === undefined) {
      await revokeToken(server.revocation_endpoint, tokens.refresh_token);
      throw new CommandFailure(
        `Cannot log in: ${values.account ? `you have allowed no account ${values.account}` : "you have allowed no account"}`,
      );
    }
    const email = await emailOf(server, tokens.access_token);
    const folder = loginFolder(environment);
    await keep(folder, {
      api_url: apiUrl,
      email,
      account_id: chosen.id,
      ...tokensOf(tokens),
      token_endpoint: server.token_endpoint,
      revocation_endpoint: server.revocation_endpoint,
    });
    console.log(`Logged in at ${apiUrl} as ${email}, account ${chosen.name} (${chosen.id})`);
    for (const { id, name } of accounts.filter(({ id }) => id !== chosen.id)) {
      console.log(
        `Another account: ${name}; TRUNKLINE_ACCOUNT_ID=${id} makes commands be about it`,
      );
    }
  },
};

async function findServer(apiUrl: string): Promise<Server> {
  const url = `${apiUrl.replace(/\/v4$/, "")}/.well-known/oauth-authorization-server`;
  const response = await reach(url);
  const read = Server.safeParse(await response.json().catch(() => undefined));
  if (response.ok && read.success) return read.data;
  throw new CommandFailure(`Cannot log in at ${apiUrl}: no Trunkline answers there`);
}

async function authorize(server: Server, opens: boolean) {
  const verifier = randomBytes(32).toString("base64url");
  const state = randomBytes(16).toString("base64url");
  await using waiting = await waitForCode({ state, issuer: server.issuer });
  const { redirectUri } = waiting;
  const url = new URL(server.authorization_endpoint);
  url.search = new URLSearchParams({
    response_type: "code",
    client_id: COMMAND_LINE_CLIENT_ID,
    redirect_uri: redirectUri,
    scope: COMMAND_LINE_SCOPES.join(" "),
    state,
    code_challenge: createHash("sha256").update(verifier).digest("base64url"),
    code_challenge_method: "S256",
  }).toString();
  console.log(`Open this address in a browser on this machine, and allow it there:\n${url}`);
  if (opens) openInBrowser(url.href);
  const code = await waiting.code;
  return redeemCode(server.token_endpoint, { code, verifier, redirectUri });
}

/** Opens the address in a browser if this machine has a screen. The terminal shows the address in any case. */
function openInBrowser(url: string): void {
  const { DISPLAY, WAYLAND_DISPLAY } = process.env;
  if (!process.stdout.isTTY) return;
  if (process.platform === "linux" && !DISPLAY && !WAYLAND_DISPLAY) return;
  const program = process.platform === "darwin" ? "open" : "xdg-open";
  const child = spawn(program, [url], { stdio: "ignore", detached: true });
  child.on("error", () => {});
  child.unref();
}

async function emailOf({ userinfo_endpoint: url }: Server, token: string): Promise<string> {
  const response = await reach(url, { headers: { Authorization: `Bearer ${token}` } });
  const read = z
    .object({ email: z.string() })
    .safeParse(await response.json().catch(() => undefined));
  // Without an email address: the person may not have granted access to it.
  return read.success ? read.data.email : "somebody";
}

async function keep(folder: string, login: Login): Promise<void> {
  const old = await withLoginLock(folder, async () => {
    const old = await readLogin(folder).catch(() => undefined);
    await writeLogin(folder, login);
    return old;
  });
  // Errors are ignored: the platform of the old login may no longer exist, and then the old tokens are useless.
  if (old) await revokeToken(old.revocation_endpoint, old.refresh_token).catch(() => {});
}
