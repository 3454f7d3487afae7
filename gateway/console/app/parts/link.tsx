/** Links to pages of the console. They open the page without loading the console again. */
import type { ComponentChildren, TargetedMouseEvent } from "preact";
import { useContext, useEffect, useRef } from "preact/hooks";
import { AccountContext, placeIn } from "../lib/account.tsx";
import { addressOf, navigate } from "../lib/router.ts";

interface LinkProps {
  /** Below the account. */
  to: string;
  children: ComponentChildren;
  class?: string;
  "aria-current"?: "page" | undefined;
}

export function Link({ to, children, ...rest }: LinkProps) {
  const view = useContext(AccountContext);
  const place = view ? placeIn(view.account, to) : to;
  const open = (event: TargetedMouseEvent<HTMLAnchorElement>) => {
    // For a new tab or window, the browser handles the click itself.
    if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey)
      return;
    event.preventDefault();
    navigate(place);
  };
  return (
    <a {...rest} href={addressOf(place)} onClick={open}>
      {children}
    </a>
  );
}

/** A link that looks like a button. */
export function ButtonLink({ isMain, ...link }: Omit<LinkProps, "class"> & { isMain?: boolean }) {
  return <Link class={`button small ${isMain ? "" : "second"}`} {...link} />;
}

/** A link to the steps of a request. Outside an account it is plain text, because no such page exists there. */
export function RequestLink({ id }: { id: string }) {
  if (!useContext(AccountContext)) return <code>{id}</code>;
  return (
    <Link to={`requests/${encodeURIComponent(id)}`}>
      <code>{id}</code>
    </Link>
  );
}

export interface TabsProps {
  label: string;
  /** The path of each page below the account, and the label of its link. */
  pages: readonly (readonly [path: string, name: string])[];
  current: string;
}

/** Tabs: links between the pages of one area. */
export function Tabs({ label, pages, current }: TabsProps) {
  const nav = useRef<HTMLElement>(null);
  useEffect(() => {
    // On a narrow screen not all tabs fit.
    nav.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
  }, [current]);
  return (
    <nav ref={nav} class="tabs" aria-label={label}>
      {pages.map(([path, name]) => (
        <Link key={path} to={path} aria-current={path === current ? "page" : undefined}>
          {name}
        </Link>
      ))}
    </nav>
  );
}
