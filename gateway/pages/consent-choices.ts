/** What a person may choose among when a client asks: scopes, accounts, and why one is not to be had. */
import type { ActorClient } from "../../actors/runtime/actor-client.ts";
import { account } from "../../schemas/account.ts";
import { ActorError } from "../../schemas/errors.ts";
import { ALL_PERMISSIONS, permissionsOf, permits, type Role } from "../../schemas/permissions.ts";
import { isIdentityScope, type Scope } from "../../schemas/scopes.ts";
import { user } from "../../schemas/user.ts";
import { knownScopes } from "../oauth/known-scopes.ts";
import { type LiveClient, scopesOf } from "../oauth/live-client.ts";
import { openOwnAccount, type Person } from "./sign-in.ts";

export interface AccountChoice {
  accountId: string;
  name: string;
  roles: readonly Role[];
  /** Why it cannot be chosen. */
  reason?: string;
}

export interface Choices {
  required: Scope[];
  optional: Scope[];
  /** Empty where nothing of an account is asked for. */
  accounts: AccountChoice[];
}

export async function choicesOf(
  actors: ActorClient,
  person: Person,
  { client, scope }: { client: LiveClient; scope: string },
): Promise<Choices> {
  const held = scopesOf(client);
  const asked = knownScopes(scope).filter((id) => held.has(id));
  const optional = asked.filter((id) => client.optionalScopes.includes(id));
  const required = asked.filter((id) => !optional.includes(id));
  const wantsAccounts = asked.some((id) => !isIdentityScope(id));
  const accounts = wantsAccounts ? await accountsOf(actors, person) : [];
  return { required, optional, accounts: accounts.map((choice) => judged(choice, asked)) };
}

/** Every account the person belongs to. */
async function accountsOf(actors: ActorClient, person: Person): Promise<AccountChoice[]> {
  const { accounts } = await actors.call(user, person.email, "get", {});
  const found = await Promise.all(
    accounts.map(({ accountId, roles }) => choiceOf(actors, person, { accountId, roles })),
  );
  return found.filter((choice) => choice !== undefined);
}

async function choiceOf(
  actors: ActorClient,
  person: Person,
  { accountId, roles }: { accountId: string; roles: readonly Role[] },
): Promise<AccountChoice | undefined> {
  const get = () => actors.call(account, accountId, "get", {});
  try {
    const { name, members } = await get().catch(async (error: unknown) => {
      const isOwn = roles.includes("Super Administrator");
      if (!isOwn || !(error instanceof ActorError && error.code === "not_found")) throw error;
      // The sign-up that made the user died before it made the account.
      await openOwnAccount(actors, accountId, person);
      return get();
    });
    const member = members.find(({ userId }) => userId === person.userId);
    return member && { accountId, name, roles: member.roles };
  } catch (error) {
    if (error instanceof ActorError && error.code === "not_found") return undefined;
    throw error;
  }
}

function judged(choice: AccountChoice, asked: readonly Scope[]): AccountChoice {
  const held = permissionsOf(choice.roles);
  const opens = ALL_PERMISSIONS.some(
    (id) =>
      asked.some((scope) => scope === id || scope === id.replace(/read$/, "write")) &&
      permits(held, id),
  );
  if (opens) return choice;
  const roles = choice.roles.join(", ");
  return { ...choice, reason: `Your role there, ${roles}, allows nothing of what is asked for.` };
}
