/** The whole console: finds out who is signed in and which account is meant, then shows the page of the address. */
import { useEffect, useMemo } from "preact/hooks";
import { AccountContext, type AccountView } from "../lib/account.tsx";
import { navigate, usePlace } from "../lib/router.tsx";
import { useRest } from "../lib/use-rest.ts";
import type { WireAccount, WireMember, WireUser } from "../lib/wire.ts";
import { ErrorNote } from "../parts/page.tsx";
import { Skeleton } from "../parts/skeleton.tsx";
import { AreaPage } from "./area-page.tsx";
import { Navigation } from "./navigation.tsx";

const REMEMBERED = "trunkline-account";
/** As many as a person may belong to, and more than fit a menu. */
const ACCOUNTS_PATH = "/accounts?per_page=50";

export function Console() {
  const user = useRest<WireUser>("/user");
  const accounts = useRest<WireAccount[]>(ACCOUNTS_PATH);
  const error = user.error ?? accounts.error;
  if (error) {
    const retry = () => {
      user.reload();
      accounts.reload();
    };
    return (
      <main class="alone">
        <h1>The console cannot open</h1>
        <ErrorNote error={error} retry={retry} />
      </main>
    );
  }
  if (!user.value || !accounts.value) {
    return (
      <main class="alone">
        <Skeleton />
      </main>
    );
  }
  return <OfPerson user={user.value} accounts={accounts.value} />;
}

function OfPerson({ user, accounts }: { user: WireUser; accounts: readonly WireAccount[] }) {
  const { path, query } = usePlace();
  const [asked = "", ...rest] = path.split("/");
  const account = accounts.find(({ id }) => id === asked);
  // A shared address without an account means the reader's own.
  const target = account ? undefined : (remembered(accounts) ?? accounts[0]);
  useEffect(() => {
    if (account) localStorage.setItem(REMEMBERED, account.id);
    else if (target) {
      const below = isAccountId(asked) ? "" : path;
      const text = query.toString();
      navigate([target.id, below].filter((part) => part !== "").join("/") + (text && `?${text}`), {
        replace: true,
      });
    }
  }, [account, target, path]);
  if (accounts.length === 0) {
    return (
      <main class="alone">
        <h1>You belong to no account</h1>
        <p>Ask an administrator of an account for an invitation, then reload this page.</p>
      </main>
    );
  }
  if (!account) return null;
  return <OfAccount key={account.id} view={{ user, accounts, account }} path={rest.join("/")} />;
}

function OfAccount({ view, path }: { view: Omit<AccountView, "permissions">; path: string }) {
  const { user, account } = view;
  const member = useRest<WireMember>(`/accounts/${account.id}/members/${user.id}`);
  const permissions = useMemo(
    () => member.value?.roles.flatMap((role) => writesIncludeReads(role.permissions)),
    [member.value],
  );
  return (
    <AccountContext.Provider value={{ ...view, permissions }}>
      <a class="skip" href="#page">
        Skip to the page
      </a>
      <Navigation path={path} />
      <main id="page" tabIndex={-1}>
        <AreaPage path={path} />
      </main>
    </AccountContext.Provider>
  );
}

const writesIncludeReads = (permissions: readonly string[]) =>
  permissions.flatMap((one) => [one, one.replace(/\.write$/, ".read")]);

const isAccountId = (text: string) => /^[0-9a-f]{32}$/.test(text);

function remembered(accounts: readonly WireAccount[]): WireAccount | undefined {
  const id = localStorage.getItem(REMEMBERED);
  return accounts.find((account) => account.id === id);
}
