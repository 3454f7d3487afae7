/** Small parts of many pages: states, times, facts and bars. */
import type { ComponentChildren } from "preact";
import { absoluteTime, relativeTime } from "../lib/format.ts";

export type Tone = "good" | "bad" | "busy" | "quiet";

/** A state in one word, with a colour that repeats it. */
export function Badge({ tone, children }: { tone: Tone; children: ComponentChildren }) {
  return <span class={`badge ${tone}`}>{children}</span>;
}

/** How long ago; the exact time is in its title. */
export function Time({ at }: { at: string | number | undefined }) {
  if (at === undefined) return <>never</>;
  const ms = typeof at === "number" ? at : Date.parse(at);
  return (
    <time dateTime={new Date(ms).toISOString()} title={absoluteTime(ms)}>
      {relativeTime(ms)}
    </time>
  );
}

/** Names with values. */
export function Facts({
  rows,
}: {
  rows: readonly (readonly [string, ComponentChildren] | false)[];
}) {
  return (
    <dl class="facts">
      {rows
        .filter((row) => row !== false)
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}

/** Shows how much of a limit is used. The meter reserves its space until the figure arrives. */
export function Meter({
  label,
  used,
  limit,
  format,
}: {
  label: string;
  used: number | undefined;
  /** Null means no limit. */
  limit: number | null | undefined;
  format: (value: number) => string;
}) {
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
