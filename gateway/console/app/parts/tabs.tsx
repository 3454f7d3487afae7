/** Links between the pages of one area. */
import { useEffect, useRef } from "preact/hooks";
import { useAccount } from "../lib/account.tsx";
import { Link } from "../lib/router.tsx";

interface TabsProps {
  label: string;
  /** Path below the account, and name. */
  tabs: readonly (readonly [path: string, name: string])[];
  current: string;
}

export function Tabs({ label, tabs, current }: TabsProps) {
  const { placeOf } = useAccount();
  const nav = useRef<HTMLElement>(null);
  useEffect(() => {
    // On a narrow screen not all tabs fit.
    nav.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
  }, [current]);
  return (
    <nav ref={nav} class="tabs" aria-label={label}>
      {tabs.map(([path, name]) => (
        <Link key={path} to={placeOf(path)} {...(path === current && { "aria-current": "page" })}>
          {name}
        </Link>
      ))}
    </nav>
  );
}
