/** Lists the accounts of a person with their roles there. The roles are read from the actors of the accounts. */
import type { ActorClient } from "../../../actors/runtime/calls/actor-client.ts";
import { account } from "../../../schemas/account/account.ts";
import {
  type Permission,
  permissionsOf,
  permits,
  type Role,
} from "../../../schemas/account/permissions.ts";
import { user } from "../../../schemas/account/user.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { callFew } from "../../http/call-few.ts";
import { openOwnAccount, type Person } from "./sign-in.ts";

export interface OwnAccount {
  accountId: string;
  name: string;
  roles: readonly Role[];
  /** The invitation by which the person joined. */
  invitationId?: string | undefined;
}

/**
 * Resolves to all accounts of which the person is a member. Creates the person's own account if it does not exist
 * yet.
 */
export async function ownAccounts(actors: ActorClient, person: Person): Promise<OwnAccount[]> {
  const { accounts } = await actors.call(user, person.email, "get", {});
  const found = await callFew(accounts, ({ accountId, roles }) =>
    accountOf(actors, person, { accountId, roles }),
  );
  return found.filter((one) => one !== undefined);
}

async function accountOf(
  actors: ActorClient,
  person: Person,
  { accountId, roles }: { accountId: string; roles: readonly Role[] },
): Promise<OwnAccount | undefined> {
  const get = () => actors.call(account, accountId, "get", {});
  try {
    const { name, members } = await get().catch(async (error: unknown) => {
      const isOwn = roles.includes("Super Administrator");
      if (!isOwn || !(error instanceof ActorError && error.code === "not_found")) throw error;
      // Sign-up only registers the user. The user's own account is created here, when a page first lists it.
      await openOwnAccount(actors, accountId, person);
      return get();
    });
    const member = members.find(({ userId }) => userId === person.userId);
    if (!member) return undefined;
    return { accountId, name, roles: member.roles, invitationId: member.invitationId };
  } catch (error) {
    if (error instanceof ActorError && error.code === "not_found") return undefined;
    throw error;
  }
}

const ADMINISTERS: Permission = "account.write";

export const isAdministrator = (roles: readonly Role[]) =>
  permits(permissionsOf(roles), ADMINISTERS);

/** The accounts in which the person manages members. */
export async function administeredAccounts(actors: ActorClient, person: Person) {
  return (await ownAccounts(actors, person)).filter(({ roles }) => isAdministrator(roles));
}
