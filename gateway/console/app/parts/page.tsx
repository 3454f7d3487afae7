/** The frame of one page: its heading, its action buttons, and its cards. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { RestError, RestRequest } from "../lib/rest.ts";
import { type Reading, useRest } from "../lib/use-rest.ts";
import { CopyAsCurl } from "./button.tsx";
import { Link, Tabs, type TabsProps } from "./link.tsx";
import { ErrorNote, Skeleton } from "./note.tsx";

interface PageProps {
  title: string;
  /** One sentence that describes the purpose of the page. */
  lead?: ComponentChildren;
  /** Label and path of the parent page. */
  above?: readonly [label: string, to: string];
  actions?: ComponentChildren;
  /** The request that the page offers to copy as a curl command. */
  request?: RestRequest | undefined;
  tabs?: TabsProps;
  children?: ComponentChildren;
}

let isFirst = true;

/**
 * The beginning of every page. Sets the title of the browser tab, and moves the focus to the heading after a
 * navigation.
 */
export function Page({ title, lead, above, actions, request, tabs, children }: PageProps) {
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
            <Link to={above[1]}>{above[0]}</Link>
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
      {tabs && <Tabs {...tabs} />}
      {children}
    </>
  );
}

interface RestPageProps<T> extends Omit<PageProps, "title" | "actions" | "request" | "children"> {
  /** `path` is below /v4. It is read again every `everyMs` milliseconds. */
  path: string;
  everyMs?: number;
  title: string | ((value: T | undefined) => string);
  actions?: (value: T, reload: () => void) => ComponentChildren;
  /** The request to copy as a command, if it differs from a read of `path`. Null if programs cannot send it. */
  request?: RestRequest | null;
  /** `error` is set if a newer read failed; `value` may then be out of date. */
  children: (value: T, reload: () => void, error: RestError | undefined) => ComponentChildren;
}

/** A page that shows the response of one request. */
export function RestPage<T>(props: RestPageProps<T>) {
  const { path, everyMs, title, actions, request = { path }, children, ...page } = props;
  const reading = useRest<T>(path, everyMs);
  const { value, reload, error } = reading;
  return (
    <Page
      {...page}
      title={typeof title === "string" ? title : title(value)}
      request={request ?? undefined}
      actions={value !== undefined && actions?.(value, reload)}
    >
      <Read reading={reading}>{(read) => children(read, reload, error)}</Read>
    </Page>
  );
}

interface CardProps {
  title?: string | undefined;
  actions?: ComponentChildren;
  children: ComponentChildren;
}

export function Card({ title, actions, children }: CardProps) {
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

interface ReadProps<T> {
  reading: Reading<T>;
  children: (value: T) => ComponentChildren;
}

/**
 * Shows a placeholder until the first read ends, and then the value. Shows the error of a failed read above the last
 * value, if there is one.
 */
export function Read<T>({ reading: { value, error, reload }, children }: ReadProps<T>) {
  return (
    <>
      {error && <ErrorNote error={error} retry={reload} />}
      {value !== undefined ? children(value) : !error && <Skeleton />}
    </>
  );
}
