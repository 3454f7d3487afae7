/** Small components that many pages use: errors, empty lists, states, times, facts, bars, and scrolling text. */
import type { ComponentChildren } from "preact";
import { absoluteTime, relativeTime } from "../lib/format.ts";
import { CONSOLE_FAULT, type RestError, UNREACHABLE } from "../lib/rest.ts";
import { RequestLink } from "./link.tsx";

/** Shows an error, and what the person can do about it. */
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

function adviceOn({ status }: RestError): string {
  if (status === UNREACHABLE)
    return "Check that the platform runs and that you are online, then try again.";
  if (status === CONSOLE_FAULT) return "This is a fault of the console: reload the page.";
  if (status === 401) return "Your session has ended. Sign in again.";
  if (status === 403)
    return "Your role here does not permit this. Ask an administrator of the account.";
  if (status === 404) return "It may have been deleted, or the address is mistyped.";
  if (status === 429) return "Wait a moment: the limit of requests counts for the whole account.";
  if (status >= 500)
    return "This is a fault of the platform. Try again; the request below shows where it happened.";
  return "Change what is named above, and try again.";
}

/** Shows a warning with its explanation. */
export function Alarm({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="note bad" role="alert">
      <p>
        <strong>{title}</strong>
      </p>
      {children && <p>{children}</p>}
    </div>
  );
}

/** Shows the reason why a list is empty, and what to do next. */
export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {typeof children === "string" ? <p>{children}</p> : children}
    </div>
  );
}

/** A placeholder for a value that is loading, so that the page does not move when the value arrives. */
export function Skeleton({ lines = 3 }: { lines?: number }) {
  return (
    <div class="skeleton" role="status">
      <span class="hidden">Loading</span>
      {Array.from({ length: lines }, (_, index) => (
        <span key={index} class="line" />
      ))}
    </div>
  );
}

export type Tone = "good" | "bad" | "busy" | "quiet";

/** A word for a state, with a colour of the same meaning. */
export function Badge({ tone, children }: { tone: Tone; children: ComponentChildren }) {
  return <span class={`badge ${tone}`}>{children}</span>;
}

/** Shows a state as a badge, in the tone that `tones` gives for it. */
export function State<S extends string>({
  of,
  tones,
}: {
  of: S;
  tones: Readonly<Record<S, Tone>>;
}) {
  return <Badge tone={tones[of]}>{of.replaceAll("_", " ")}</Badge>;
}

/** Shows how long ago a time was. The tooltip has the exact time. */
export function Time({ at }: { at: string | number | null | undefined }) {
  if (at == null) return <>never</>;
  const ms = typeof at === "number" ? at : Date.parse(at);
  return (
    <time dateTime={new Date(ms).toISOString()} title={absoluteTime(ms)}>
      {relativeTime(ms)}
    </time>
  );
}

/** Shows names with their values. Omits names without a value. */
export function Facts({ of }: { of: Readonly<Record<string, ComponentChildren>> }) {
  return (
    <dl class="facts">
      {Object.entries(of)
        .filter(([, value]) => value !== undefined && value !== false)
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}

/** Shows texts as a list, one text per line. */
export function Lines({ of, class: more = "" }: { of: readonly string[]; class?: string }) {
  return (
    <ul class={`lines ${more}`}>
      {of.map((line, index) => (
        <li key={index}>
          <code>{line}</code>
        </li>
      ))}
    </ul>
  );
}

interface MeterProps {
  label: string;
  used: number | undefined;
  /** Null means no limit. */
  limit: number | null | undefined;
  format: (value: number) => string;
}

/** Shows how much of a limit is used. The meter reserves its space until the figure arrives. */
export function Meter({ label, used, limit, format }: MeterProps) {
  const share = limit && used !== undefined ? Math.min(1, used / limit) : 0;
  return (
    <div class="meter">
      <span class="meter-label">{label}</span>
      <span class="quiet">
        {used === undefined ? "–" : format(used)}{" "}
        {limit === null ? "used, no limit" : limit !== undefined && `of ${format(limit)}`}
      </span>
      {limit !== null && (
        <progress class={share > 0.9 ? "full" : ""} aria-label={label} value={share} max={1} />
      )}
    </div>
  );
}

interface ScrollProps {
  label: string;
  class?: string;
  children: ComponentChildren;
}

/**
 * The role is "group" and not "region": a document may contain many, and screen reader users jump from region to
 * region.
 */
export function Scroll({ label, class: name = "scroll", children }: ScrollProps) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset cannot scroll in every browser.
    // biome-ignore lint/a11y/noNoninteractiveTabindex: without it, nobody can scroll it by keyboard in Safari.
    <div class={name} role="group" aria-label={label} tabIndex={0}>
      {children}
    </div>
  );
}

/** Shows text unchanged, in a block that scrolls. */
export function CodeBlock({ label, text }: { label: string; text: string }) {
  return (
    <Scroll label={`${label}, as text`} class="code-block">
      <pre>{text}</pre>
    </Scroll>
  );
}

export const JsonBlock = ({ label, value }: { label: string; value: unknown }) => (
  <CodeBlock label={label} text={JSON.stringify(value, null, 2)} />
);

/** Parses a JSON text. Returns undefined if it is not valid JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Formats JSON with indentation. Returns other text unchanged. */
export function readable(text: string): string {
  const value = parseJson(text);
  return value === undefined ? text : JSON.stringify(value, null, 2);
}
