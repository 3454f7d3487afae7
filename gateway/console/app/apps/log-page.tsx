/** Shows the log lines of an app live. */
import { useEffect, useState } from "preact/hooks";
import { useAccount } from "../lib/account.tsx";
import { asRefusal, type RestError, resultOf } from "../lib/rest.ts";
import { useParameters } from "../lib/router.ts";
import type { WireAppLogLine } from "../lib/wire.ts";
import { Button } from "../parts/button.tsx";
import { Fields, useForm } from "../parts/form.tsx";
import { Link } from "../parts/link.tsx";
import { Empty, ErrorNote, Scroll, Skeleton } from "../parts/note.tsx";
import { Card, Page } from "../parts/page.tsx";
import { agentPlace, appFrame, appPath } from "./agent-place.ts";
import { lineKey } from "./line-key.ts";

const LEVELS = ["debug", "info", "warn", "error"] as const;
const LEVEL_OPTIONS = [
  ["debug", "All lines"],
  ["info", "Info and above"],
  ["warn", "Warnings and errors"],
  ["error", "Errors"],
] as const;

export function LogPage() {
  const { app = "" } = useParameters();
  const { restPath } = useAccount();
  const path = restPath(`${appPath(app)}/logs`);
  const [isPaused, setPaused] = useState(false);
  const form = useForm({ text: "", level: "debug" });
  const { lines, error } = useLog(path, isPaused);
  const shown = lines?.filter((line) => isWanted(line, form.values));
  return (
    <Page
      {...appFrame(app, "/log")}
      request={{ path: `${path}?limit=100` }}
      actions={
        <Button onClick={() => setPaused(!isPaused)}>{isPaused ? "Follow" : "Pause"}</Button>
      }
    >
      <Card>
        <div class="filters">
          <Fields
            form={form}
            fields={[
              {
                ...{ name: "text", label: "Filter", type: "search" },
                placeholder: "Text, class or name",
              },
              { name: "level", label: "Level", options: LEVEL_OPTIONS },
            ]}
          />
        </div>
        {error && <ErrorNote error={error} />}
        {!shown && !error && <Skeleton lines={8} />}
        {lines?.length === 0 && (
          <Empty title="It has printed nothing yet">
            What its code writes with console.log appears here at once.
          </Empty>
        )}
        {lines && lines.length > 0 && shown?.length === 0 && (
          <Empty title="No line fits">Change the filter or the level.</Empty>
        )}
        {shown && shown.length > 0 && <LogLines app={app} lines={shown} />}
        <p class="quiet live-state" role="status">
          {isPaused ? "Paused: new lines come when you follow again" : "Live"}
        </p>
      </Card>
    </Page>
  );
}

const isWanted = (line: WireAppLogLine, { level, text }: { level: string; text: string }) =>
  LEVELS.indexOf(line.level) >= LEVELS.indexOf(level as WireAppLogLine["level"]) &&
  `${line.text} ${line.agent?.class_name ?? ""} ${line.agent?.name ?? ""}`
    .toLowerCase()
    .includes(text.toLowerCase());

/** Shows the newest line first, so that new lines appear at the top, where the person looks. */
function LogLines({ app, lines }: { app: string; lines: readonly WireAppLogLine[] }) {
  return (
    <Scroll label="Log, the newest line first" class="log-box">
      <ol class="log">
        {lines.toReversed().map((line) => (
          <li key={lineKey(line)} class={line.level}>
            <time dateTime={line.time} title={line.time}>
              {timeOfDay(line.time)}
            </time>
            <span class="level">{line.level}</span>
            <span class="text">
              {line.agent && (
                <Link
                  to={agentPlace({ app, className: line.agent.class_name, name: line.agent.name })}
                >
                  {line.agent.class_name} {line.agent.name}
                </Link>
              )}
              <span class="said">{line.text}</span>
            </span>
          </li>
        ))}
      </ol>
    </Scroll>
  );
}

const clock = new Intl.DateTimeFormat("en-GB", {
  ...{ month: "short", day: "numeric" },
  ...{ hour: "2-digit", minute: "2-digit", second: "2-digit" },
});
const timeOfDay = (text: string) => clock.format(Date.parse(text));

/** Maximum number of shown lines. Older lines are removed. */
const LINES_MAX = 1_000;
const FIRST_LINES = 300;
/** Maximum time that the platform delays its response to wait for new lines. */
const WAIT_S = 20;
const AGAIN_MS = 3_000;

/** Reads the log at `path` and follows it. Sends no requests while it is paused. */
function useLog(path: string, isPaused: boolean) {
  const [lines, setLines] = useState<WireAppLogLine[]>();
  const [error, setError] = useState<RestError>();
  useEffect(() => {
    if (isPaused) return;
    const leaving = new AbortController();
    const { signal } = leaving;
    let after = lines?.at(-1)?.id;
    const follow = async () => {
      while (!signal.aborted) {
        const query =
          after === undefined
            ? `limit=${FIRST_LINES}`
            : `after=${after}&limit=${FIRST_LINES}&wait_seconds=${WAIT_S}`;
        try {
          const result = await resultOf<WireAppLogLine[]>({ path: `${path}?${query}` }, signal);
          after = result.at(-1)?.id ?? after ?? 0;
          setError(undefined);
          setLines((before = []) => [...before, ...result].slice(-LINES_MAX));
        } catch (thrown) {
          if (signal.aborted) return;
          setError(asRefusal(thrown));
          await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
        }
      }
    };
    void follow();
    return () => leaving.abort();
  }, [path, isPaused]);
  return { lines, error };
}
