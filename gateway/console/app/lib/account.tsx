/** The signed-in person and the account that the console shows, for every page. */
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import { navigate } from "./router.ts";
import type { WireAccount, WireUser } from "./wire.ts";

export interface AccountView {
  user: WireUser;
  accounts: readonly WireAccount[];
  account: WireAccount;
  /** What the person may do here; undefined: it could not be read, so the platform decides at each request. */
  permissions: readonly string[] | undefined;
}

export const AccountContext = createContext<AccountView | undefined>(undefined);

export function useAccount() {
  const view = useContext(AccountContext);
  if (!view) throw new Error("Cannot show page: it is not inside the frame");
  const { account, permissions } = view;
  return {
    ...view,
    /** A path of the REST API in this account: `restPath("/tokens")`. */
    restPath: (path: string) => `/accounts/${account.id}${path}`,
    /** Shows another page of this account: `go("oauth-clients")`. It says `said` once. */
    go: (path: string, said?: string) =>
      navigate(placeIn(account, path), said === undefined ? {} : { said }),
    may: (permission: string) => permissions === undefined || permissions.includes(permission),
  };
}

/** A path of the console in an account. */
export const placeIn = ({ id }: WireAccount, path: string) => (path === "" ? id : `${id}/${path}`);
