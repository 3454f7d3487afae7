/** Provides every page with the signed-in person and the account that the console shows. */
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import { navigate } from "./router.ts";
import type { WireAccount, WireUser } from "./wire.ts";

export interface AccountView {
  user: WireUser;
  accounts: readonly WireAccount[];
  account: WireAccount;
  /**
   * The permissions of the person in this account. Undefined if they could not be read; then the platform decides at
   * each request.
   */
  permissions: readonly string[] | undefined;
}

export const AccountContext = createContext<AccountView | undefined>(undefined);

export function useAccount() {
  const view = useContext(AccountContext);
  if (!view) throw new Error("Cannot show page: it is not inside the frame");
  const { account, permissions } = view;
  return {
    ...view,
    /** Returns a path of this account in the REST API: `restPath("/tokens")`. */
    restPath: (path: string) => `/accounts/${account.id}${path}`,
    /** Opens another page of this account: `go("oauth-clients")`. The page shows the message `said` one time. */
    go: (path: string, said?: string) =>
      navigate(placeIn(account, path), said === undefined ? {} : { said }),
    may: (permission: string) => permissions === undefined || permissions.includes(permission),
  };
}

/** Returns the path of a page of an account in the console. */
export const placeIn = ({ id }: WireAccount, path: string) => (path === "" ? id : `${id}/${path}`);
