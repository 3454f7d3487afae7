/**
 * Creates the first account, its user and an API token. This happens once for a whole cluster, even if processes die
 * during the creation.
 */
import { createHash, randomBytes } from "node:crypto";
import { mkdir, open, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Logger } from "pino";
import { z } from "zod";
import type { ActorClient } from "../../actors/runtime/calls/actor-client.ts";
import { account } from "../../schemas/account/account.ts";
import { apiToken } from "../../schemas/account/api-token.ts";
import { INSTALLATION_KEY, installation } from "../../schemas/account/installation.ts";
import { ALL_PERMISSIONS } from "../../schemas/account/permissions.ts";
import { user } from "../../schemas/account/user.ts";
import { parseJson } from "../../schemas/parse-json.ts";
import { Email, Id } from "../../schemas/values.ts";
import { newToken, readToken } from "./api-token-text.ts";
import { hashPassword } from "./password.ts";

const Credentials = z.object({
  base_url: z.string(),
  account_id: Id,
  api_token: z.string(),
  /** Absent if the settings contain the token. Also absent in a file of an earlier release until the next start. */
  metrics_token: z.string().optional(),
  user: z.object({ email: Email, password: z.string() }),
});
type Credentials = z.infer<typeof Credentials>;

const ROLE = "Super Administrator";

interface FirstStart {
  actors: ActorClient;
  dataDir: string;
  publicUrl: string;
  logger: Logger;
  /** The token from the settings. If present, no token is generated. */
  metricsToken?: string | undefined;
}

/**
 * Returns "made" if this process created the account, now or continued after an earlier death. Returns "kept" if the
 * credentials in this folder are those of an earlier start. Returns "elsewhere" if the cluster has its first account,
 * but the credentials are in another data folder. The secrets are on disk before the account is claimed. The claim
 * decides which process creates the account. The calls after the claim can be repeated, and are repeated until the
 * file has its final name.
 */
export async function firstStart(parts: FirstStart): Promise<"made" | "kept" | "elsewhere"> {
  const { actors, dataDir, publicUrl, logger, metricsToken } = parts;
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const finalPath = join(dataDir, "credentials.json");
  const pendingPath = `${finalPath}.pending`;
  const baseUrl = `${publicUrl}/v4`;

  const stored = await readIfThere(finalPath);
  if (stored !== undefined) {
    const remedy =
      "restore a copy of the file, or delete it: the account stays, but this token is lost";
    const kept = credentialsOf(stored, finalPath, remedy);
    const { accountId } = await actors.call(installation, INSTALLATION_KEY, "get", {});
    if (accountId !== null && accountId !== kept.account_id) return elsewhere();
    if (accountId !== null) {
      // An installation that an earlier release created has no administrator yet.
      await nameFirst(actors, kept);
      await bringUpToDate(kept);
      return "kept";
    }
    // The folder has credentials, but the bus has no account, because it is empty. The account is created again with
    // these credentials, so they become valid again.
    await rename(finalPath, pendingPath);
  }

  const credentials = (await readPending()) ?? (await writePending());
  const { account_id } = credentials;
  const claim = { accountId: account_id };
  const claimed = await actors.call(installation, INSTALLATION_KEY, "claim", claim);
  if (claimed.accountId !== account_id) {
    await rm(pendingPath);
    return elsewhere();
  }
  await make(actors, credentials);
  await rename(pendingPath, finalPath);
  await syncFolder(dataDir);
  await bringUpToDate(credentials);
  logger.info({ account: account_id, path: finalPath }, "first account made");
  return "made";

  function elsewhere(): "elsewhere" {
    logger.info({}, "the first account was made elsewhere");
    return "elsewhere";
  }

  /**
   * Reads the pending file. An incomplete file is ignored: no account was claimed with it, because the claim follows
   * only after the whole file is on disk.
   */
  async function readPending(): Promise<Credentials | undefined> {
    const text = await readIfThere(pendingPath);
    if (text === undefined || parseJson(text) === undefined) return undefined;
    const remedy = "delete it, and the next start makes another account if there is none yet";
    return credentialsOf(text, pendingPath, remedy);
  }

  async function writePending(): Promise<Credentials> {
    const made = newCredentials(baseUrl, metricsToken === undefined);
    await writeDurably(pendingPath, made);
    await syncFolder(dataDir);
    return made;
  }

  async function bringUpToDate(old: Credentials): Promise<void> {
    const lacksToken = old.metrics_token === undefined && metricsToken === undefined;
    if (old.base_url === baseUrl && !lacksToken) return;
    const path = `${finalPath}.moved`;
    const added = lacksToken ? { metrics_token: newMetricsToken() } : {};
    await writeDurably(path, { ...old, ...added, base_url: baseUrl });
    await rename(path, finalPath);
  }
}

/** Creates the account, its user and the token. Repeating these calls with the same credentials changes nothing. */
async function make(actors: ActorClient, credentials: Credentials): Promise<void> {
  const { account_id: accountId, api_token } = credentials;
  const { email, password } = credentials.user;
  const token = readToken(api_token);
  if (!token) throw new Error("Cannot make first account: credentials.json holds no API token");
  const userId = ownerOf(accountId);
  const owner = { userId, email, roles: [ROLE] } as const;
  await actors.call(account, accountId, "open", { name: "Main", owner });
  await actors.call(user, email, "register", {
    id: userId,
    email,
    passwordHash: await hashPassword(password, { from: "first start", network: "first start" }),
    accounts: [{ accountId, roles: [ROLE] }],
  });
  await actors.call(account, accountId, "createToken", {
    id: token.id,
    name: "First start",
    permissions: ALL_PERMISSIONS,
    lastFour: api_token.slice(-4),
    userId,
  });
  const { id, secretHash } = token;
  await actors.call(apiToken, id, "issue", { accountId, permissions: ALL_PERMISSIONS, secretHash });
  await nameFirst(actors, credentials);
}

async function nameFirst(actors: ActorClient, { account_id, user }: Credentials): Promise<void> {
  const first = { userId: ownerOf(account_id), email: user.email };
  await actors.call(installation, INSTALLATION_KEY, "nameFirst", first);
}

/** The file does not contain the user's id. It is derived from the file, so that every retry uses the same id. */
function ownerOf(accountId: string): string {
  return createHash("sha256").update(`owner ${accountId}`).digest("hex").slice(0, 32);
}

const newMetricsToken = () => randomBytes(24).toString("base64url");

function newCredentials(baseUrl: string, hasMetricsToken: boolean): Credentials {
  return {
    base_url: baseUrl,
    account_id: randomBytes(16).toString("hex"),
    api_token: newToken().text,
    ...(hasMetricsToken && { metrics_token: newMetricsToken() }),
    user: { email: "admin@trunkline.localhost", password: randomBytes(18).toString("base64url") },
  };
}

/** Reads a file. Resolves to undefined if the file does not exist. */
async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
}

/** Parses stored credentials. The operator reads the error, so it names the remedy. */
function credentialsOf(text: string, path: string, remedy: string): Credentials {
  const read = Credentials.safeParse(parseJson(text));
  if (read.success) return read.data;
  throw new Error(`Cannot read "${path}": it holds no credentials; ${remedy}`, {
    cause: read.error,
  });
}

async function writeDurably(path: string, credentials: Credentials): Promise<void> {
  await using file = await open(path, "w", 0o600);
  await file.chmod(0o600);
  await file.writeFile(`${JSON.stringify(credentials, undefined, 2)}\n`);
  await file.sync();
}

async function syncFolder(path: string): Promise<void> {
  await using folder = await open(path, "r");
  await folder.sync();
}
