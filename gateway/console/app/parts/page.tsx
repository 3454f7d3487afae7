/** The frame of one page: its heading, its actions, and its cards. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { RestError, RestRequest } from "../lib/rest.ts";
import { type Reading, useRest } from "../lib/use-rest.ts";
import { CopyAsCurl } from "./button.tsx";
import { Link, Tabs, type TabsProps } from "./link.tsx";
import { ErrorNote, Skeleton } from "./note.tsx";

interface PageProps {
  title: string;
  /** One sentence on what this page is for. */
  lead?: ComponentChildren;
  /** The way up: label and path of the page above. */
  above?: readonly [label: string, to: string];
  actions?: ComponentChildren;
  /** The request that the page shows the answer of. */
  request?: RestRequest | undefined;
  tabs?: TabsProps;
  children?: ComponentChildren;
}

let isFirst = true;

/** Every page begins with this. It names the tab, and moves the focus to the heading of a page that was led to. */
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
  /** Below /v4; read again every so many milliseconds. */
  path: string;
  everyMs?: number;
  title: string | ((value: T | undefined) => string);
  actions?: (value: T, reload: () => void) => ComponentChildren;
  /** Copied instead of the path; null: programs cannot send the request. */
  request?: RestRequest | null;
  /** The error of a newer read, where `value` may be old. */
  children: (value: T, reload: () => void, error: RestError | undefined) => ComponentChildren;
}

/** A page that shows the answer of one request. */
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

/** Shows the value once it is there; before, a skeleton; instead, what went wrong. */
export function Read<T>({ reading: { value, error, reload }, children }: ReadProps<T>) {
  return (
    <>
      {error && <ErrorNote error={error} retry={reload} />}
      {value !== undefined ? children(value) : !error && <Skeleton />}
    </>
  );
}
