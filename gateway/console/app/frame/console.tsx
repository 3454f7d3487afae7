/** The whole console: loads the signed-in person, chooses the account, and shows the page of the current address. */

import { useEffect, useMemo, useState } from "preact/hooks";
import { AccountContext, type AccountView } from "../lib/account.tsx";
import { allOf, RestError, UNREACHABLE } from "../lib/rest.ts";
import { matchPath, navigate, type Pages, ParametersContext, usePlace } from "../lib/router.ts";
import { useLoaded, useRest } from "../lib/use-rest.ts";
import type { WireAccount, WireMember, WireUser } from "../lib/wire.ts";
import { ErrorNote, Skeleton } from "../parts/note.tsx";
import { Page } from "../parts/page.tsx";
import { AREAS, type Area } from "./areas.ts";
import { Navigation } from "./navigation.tsx";

const REMEMBERED = "trunkline-account";

export function Console() {
  const user = useRest<WireUser>("/user");
  const accounts = useLoaded("accounts", (signal) => allOf<WireAccount>("/accounts", signal));
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
  // If the address contains no account, or an account of other people as in a shared link, the console shows an
  // account of the reader.
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

const loaded = new Map<Area, Pages>();

export const areaOf = (path: string) => AREAS.find((area) => area.path === path.split("/")[0]);

function AreaPage({ path }: { path: string }) {
  const area = areaOf(path);
  const [, setTurn] = useState(0);
  const [failure, setFailure] = useState<RestError>();
  const again = () => setTurn((turn) => turn + 1);
  const load = () => {
    if (!area || loaded.has(area)) return;
    setFailure(undefined);
    area.load().then(
      ({ pages }) => {
        loaded.set(area, pages);
        again();
      },
      () =>
        setFailure(
          new RestError(UNREACHABLE, [{ message: "This part of the console did not load." }]),
        ),
    );
  };
  useEffect(load, [area]);
  if (!area) return <NoSuchPage />;
  const pages = loaded.get(area);
  if (!pages) return failure ? <ErrorNote error={failure} retry={load} /> : <Skeleton />;
  const found = pageOf(pages, path.slice(area.path.length).replace(/^\//, ""));
  if (!found) return <NoSuchPage />;
  const { Shown, parameters } = found;
  // The key creates a new page for each path, so that fields and focus are not kept from the previous page.
  return (
    <ParametersContext.Provider value={parameters}>
      <Shown key={path} />
    </ParametersContext.Provider>
  );
}

function pageOf(pages: Pages, path: string) {
  for (const [pattern, Shown] of Object.entries(pages)) {
    const parameters = matchPath(pattern, path);
    if (parameters) return { Shown, parameters };
  }
  return undefined;
}

function NoSuchPage() {
  return (
    <Page
      title="There is no such page"
      lead="The address may be mistyped, or what was there is gone."
    />
  );
}
