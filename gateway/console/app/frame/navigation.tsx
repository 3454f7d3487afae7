/** The navigation: areas with their icons, the account menu, and the person. On narrow screens, a button opens it. */
import { useEffect, useState } from "preact/hooks";
import { useAccount } from "../lib/account.tsx";
import { ask, refuse, resultOf } from "../lib/rest.ts";
import { navigate, ROOT } from "../lib/router.ts";
import type { WireSession } from "../lib/wire.ts";
import { useAct } from "../parts/button.tsx";
import { Link } from "../parts/link.tsx";
import { ErrorNote } from "../parts/note.tsx";
import { AREAS } from "./areas.ts";
import { areaOf } from "./console.tsx";

export function Navigation({ path }: { path: string }) {
  const { user } = useAccount();
  const areas = AREAS.filter((area) => !area.isOfAdministrators || user.is_administrator);
  const [isOpen, setOpen] = useState(false);
  useEffect(() => setOpen(false), [path]);
  const current = areaOf(path);
  return (
    <header class="side">
      <div class="side-inner">
        <div class="brand">
          <Link to="" class="name">
            Trunkline
          </Link>
          <button
            type="button"
            class="menu"
            aria-expanded={isOpen}
            aria-controls="navigation"
            onClick={() => setOpen(!isOpen)}
          >
            <Icon name="menu" />
            <span>Menu</span>
          </button>
        </div>
        <div id="navigation" class={isOpen ? "open" : ""}>
          <AccountPicker />
          <nav aria-label="Areas">
            <ul>
              {areas.map((area) => (
                <li key={area.path}>
                  <Link to={area.path} aria-current={area === current ? "page" : undefined}>
                    <Icon name={area.icon} />
                    {area.label}
                  </Link>
                </li>
              ))}
            </ul>
          </nav>
          <PersonMenu />
        </div>
      </div>
    </header>
  );
}

function AccountPicker() {
  const { account, accounts } = useAccount();
  if (accounts.length === 1) return <p class="account-name">{account.name}</p>;
  return (
    <label class="account-picker">
      <span class="hidden">Account</span>
      <select value={account.id} onChange={(event) => navigate(event.currentTarget.value)}>
        {accounts.map(({ id, name }) => (
          <option key={id} value={id}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}

function PersonMenu() {
  const { user } = useAccount();
  const { act, isBusy, error } = useAct(signOut);
  return (
    <div class="person">
      <p class="quiet">{user.email}</p>
      <p class="person-links">
        <a href={`${ROOT}/docs`}>API</a>
        <a href={`${ROOT}/profile`}>Profile</a>
        <button type="button" class="plain" aria-disabled={isBusy} onClick={act}>
          Sign out
        </button>
      </p>
      {error && <ErrorNote error={error} />}
    </div>
  );
}

async function signOut(): Promise<void> {
  const sessions = await resultOf<WireSession[]>({ path: "/user/sessions" });
  const current = sessions.find(({ is_current: isCurrent }) => isCurrent);
  if (!current) throw refuse("Cannot sign out: the session of this browser is not in your list.");
  await ask({ method: "DELETE", path: `/user/sessions/${current.id}` });
  location.assign(`${ROOT}/login`);
}

const PATHS = {
  home: "M3 9.5 10 4l7 5.5M5 8.5V16h10V8.5M8.5 16v-4h3v4",
  rendering: "M3 4h14v10H3zM7 17h6M10 14v3",
  crawl:
    "M10 3v5M4 16l4-5M16 16l-4-5M10 8a2 2 0 1 0 0 4 2 2 0 0 0 0-4M3 17.5h3M14 17.5h3M8.5 2.5h3",
  repository:
    "M6 3v9M6 12a2.5 2.5 0 1 0 0 5 2.5 2.5 0 0 0 0-5M14 3a2.5 2.5 0 1 0 0 5 2.5 2.5 0 0 0 0-5M14 8c0 4-8 2-8 4",
  key: "M12.5 3a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9M9.5 10.5 3 17M5 15l2 2",
  app: "M3 3h6v6H3zM11 3h6v6h-6zM3 11h6v6H3zM11 14h6M14 11v6",
  webhook:
    "M10 3a3.5 3.5 0 0 1 3 5.2l2 4M7 11l3-5.500M15 11a3 3 0 1 1-2.800 4.200H6.800M6.800 15A3 3 0 1 1 5 11.500",
  account:
    "M10 3a3.5 3.5 0 1 0 0 7 3.5 3.5 0 0 0 0-7M3.500 17c0-3 2.800-4.500 6.500-4.500s6.500 1.500 6.500 4.500",
  request: "M3 5h5M6 10h8M12 15h5M8 5v5M12 10v5",
  operator: "M3 4h14v5H3zM3 11h14v5H3zM6 6.5h1M6 13.500h1M11 6.500h3M11 13.500h3",
  menu: "M3 5h14M3 10h14M3 15h14",
} as const;

export type IconName = keyof typeof PATHS;

function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 20 20" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  );
}
