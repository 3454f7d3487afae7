/** The scopes and accounts that a person can choose on the consent page. */
import type { ActorClient } from "../../../actors/runtime/calls/actor-client.ts";
import { ALL_PERMISSIONS, permissionsOf, permits } from "../../../schemas/account/permissions.ts";
import { isIdentityScope, type Scope } from "../../../schemas/oauth/scopes.ts";
import { type OwnAccount, ownAccounts } from "../../account/pages/own-accounts.ts";
import type { Person } from "../../account/pages/sign-in.ts";
import { type LiveClient, scopesOf } from "../clients/live-client.ts";
import { knownScopes } from "../tokens/known-scopes.ts";

export interface AccountChoice extends OwnAccount {
  /** The reason why the account cannot be chosen. */
  reason?: string;
}

export interface Choices {
  required: Scope[];
  optional: Scope[];
  /** The accounts to choose from. Empty if the client requests only identity scopes. */
  accounts: AccountChoice[];
}

export async function choicesOf(
  actors: ActorClient,
  person: Person,
  { client, scope }: { client: LiveClient; scope: string },
): Promise<Choices> {
  const held = scopesOf(client);
  const requested = knownScopes(scope).filter((id) => held.has(id));
  const optional = requested.filter((id) => client.optionalScopes.includes(id));
  const required = requested.filter((id) => !optional.includes(id));
  const wantsAccounts = requested.some((id) => !isIdentityScope(id));
  const accounts = wantsAccounts ? await ownAccounts(actors, person) : [];
  return { required, optional, accounts: accounts.map((choice) => judged(choice, requested)) };
}

function judged(choice: OwnAccount, asked: readonly Scope[]): AccountChoice {
  const held = permissionsOf(choice.roles);
  const opens = ALL_PERMISSIONS.some(
    (id) =>
      asked.some((scope) => scope === id || scope === id.replace(/read$/, "write")) &&
      permits(held, id),
  );
  if (opens) return choice;
  const roles = choice.roles.join(", ");
  return {
    ...choice,
    reason: `Your role there, ${roles}, allows none of the requested permissions.`,
  };
}
