/** The navigation: areas, the account, and the person. On narrow screens it opens by a button. */
import { useEffect, useState } from "preact/hooks";
import { useAccount } from "../lib/account.tsx";
import { ask } from "../lib/rest.ts";
import { Link, navigate, ROOT } from "../lib/router.tsx";
import type { WireSession } from "../lib/wire.ts";
import { areaOf } from "./area-page.tsx";
import { AREAS } from "./areas.ts";
import { Icon } from "./icon.tsx";

export function Navigation({ path }: { path: string }) {
  const { placeOf, user } = useAccount();
  const areas = AREAS.filter((area) => !area.isOfAdministrators || user.is_administrator);
  const [isOpen, setOpen] = useState(false);
  useEffect(() => setOpen(false), [path]);
  const current = areaOf(path);
  return (
    <header class="side">
      <div class="side-inner">
        <div class="brand">
          <Link to={placeOf("")} class="name">
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
                  <Link
                    to={placeOf(area.path)}
                    {...(area === current && { "aria-current": "page" })}
                  >
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
  return (
    <div class="person">
      <p class="quiet">{user.email}</p>
      <p class="person-links">
        <a href={`${ROOT}/docs`}>API</a>
        <a href={`${ROOT}/profile`}>Profile</a>
        <button type="button" class="plain" onClick={signOut}>
          Sign out
        </button>
      </p>
    </div>
  );
}

async function signOut(): Promise<void> {
  const { result } = await ask<WireSession[]>({ path: "/user/sessions" });
  const current = result.find(({ is_current: isCurrent }) => isCurrent);
  if (current) await ask({ method: "DELETE", path: `/user/sessions/${current.id}` });
  location.assign(`${ROOT}/login`);
}
