/** The frame of one page: its heading, its actions, and what it shows before and instead of its content. */
import type { ComponentChildren } from "preact";
import { useContext, useEffect, useRef } from "preact/hooks";
import { AccountContext } from "../lib/account.tsx";
import type { RestError, RestRequest } from "../lib/rest.ts";
import { Link } from "../lib/router.tsx";
import type { Reading } from "../lib/use-rest.ts";
import { CopyAsCurl } from "./copy.tsx";
import { Skeleton } from "./skeleton.tsx";

interface PageProps {
  title: string;
  /** One sentence on what this page is for. */
  lead?: ComponentChildren;
  /** The way up: label and path of the page above. */
  above?: { label: string; to: string };
  actions?: ComponentChildren;
  /** The request that the page shows the answer of. */
  request?: RestRequest | undefined;
  children?: ComponentChildren;
}

let isFirst = true;

/** Every page begins with this. It names the tab, and moves the focus to the heading of a page that was led to. */
export function Page({ title, lead, above, actions, request, children }: PageProps) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = `${title} – Trunkline`;
  }, [title]);
  useEffect(() => {
    if (!isFirst) heading.current?.focus();
    isFirst = false;
  }, []);
  return (
    <>
      <header class="page">
        {above && (
          <p class="above">
            <Link to={above.to}>{above.label}</Link>
          </p>
        )}
        <div class="title">
          <h1 ref={heading} tabIndex={-1}>
            {title}
          </h1>
          <div class="actions">
            {request && <CopyAsCurl request={request} />}
            {actions}
          </div>
        </div>
        {lead && <p class="lead">{lead}</p>}
      </header>
      {children}
    </>
  );
}

export function Card({
  title,
  actions,
  children,
}: {
  title?: string;
  actions?: ComponentChildren;
  children: ComponentChildren;
}) {
  return (
    <section class="card" {...(title && { "aria-label": title })}>
      {(title || actions) && (
        <div class="card-head">
          {title && <h2>{title}</h2>}
          {actions && <div class="actions">{actions}</div>}
        </div>
      )}
      {children}
    </section>
  );
}

/** Shows a refusal and what to do about it. */
export function ErrorNote({ error, retry }: { error: RestError; retry?: () => void }) {
  return (
    <div class="note bad" role="alert">
      <p class="preline">{error.message}</p>
      <p>{adviceOn(error)}</p>
      {error.requestId && (
        <p class="quiet">
          Request <RequestLink id={error.requestId} />
        </p>
      )}
      {retry && (
        <button type="button" class="small second" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}

/** Links to the steps of a request. Outside of an account no such page exists. */
export function RequestLink({ id }: { id: string }) {
  const view = useContext(AccountContext);
  if (!view) return <code>{id}</code>;
  return (
    <Link to={`${view.account.id}/requests/${encodeURIComponent(id)}`}>
      <code>{id}</code>
    </Link>
  );
}

function adviceOn({ status }: RestError): string {
  if (status === 0) return "Check that the platform runs and that you are online, then try again.";
  if (status === 401) return "Your session has ended. Sign in again.";
  if (status === 403)
    return "Your role here does not permit this. Ask an administrator of the account.";
  if (status === 404) return "It may have been deleted, or the address is mistyped.";
  if (status === 429) return "Wait a moment: the limit of requests counts for the whole account.";
  if (status >= 500)
    return "This is a fault of the platform. Try again; the request below shows where it happened.";
  return "Change what is named above, and try again.";
}

/** Shows the value once it is there; before, a skeleton; instead, what went wrong. */
export function Read<T>({
  reading,
  children,
}: {
  reading: Reading<T>;
  children: (value: T) => ComponentChildren;
}) {
  const { value, error, reload } = reading;
  return (
    <>
      {error && <ErrorNote error={error} retry={reload} />}
      {value !== undefined ? children(value) : !error && <Skeleton />}
    </>
  );
}

/** Says why a list is empty, and what to do next. */
export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children}
    </div>
  );
}
