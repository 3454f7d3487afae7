/** What an app prints, as it prints it. */
import { useState } from "preact/hooks";
import { useAccount } from "../lib/account.tsx";
import type { PageParameters } from "../lib/pages.ts";
import { Link } from "../lib/router.tsx";
import type { WireAppLogLine } from "../lib/wire.ts";
import { SelectField, TextField } from "../parts/form.tsx";
import { Card, Empty, ErrorNote, Page } from "../parts/page.tsx";
import { Skeleton } from "../parts/skeleton.tsx";
import { agentPlace } from "./agent-place.ts";
import { AppTabs } from "./app-tabs.tsx";
import { ScrollBox } from "./code-block.tsx";
import { useLog } from "./use-log.ts";

const LEVELS = ["debug", "info", "warn", "error"] as const;
const LEVEL_OPTIONS = [
  { value: "debug", label: "All lines" },
  { value: "info", label: "Info and above" },
  { value: "warn", label: "Warnings and errors" },
  { value: "error", label: "Errors" },
];

export function LogPage({ parameters: { app = "" } }: PageParameters) {
  const { restPath, placeOf } = useAccount();
  const path = restPath(`/apps/${app}/logs`);
  const [isPaused, setPaused] = useState(false);
  const [level, setLevel] = useState("debug");
  const [text, setText] = useState("");
  const { lines, error } = useLog(path, isPaused);
  const shown = lines?.filter((line) => isWanted(line, level, text));
  return (
    <Page
      title={app}
      above={{ label: "Apps and agents", to: placeOf("apps") }}
      request={{ path: `${path}?limit=100` }}
      actions={
        <button type="button" class="small second" onClick={() => setPaused(!isPaused)}>
          {isPaused ? "Follow" : "Pause"}
        </button>
      }
    >
      <AppTabs app={app} current="/log" />
      <Card>
        <div class="filters">
          <TextField
            label="Filter"
            type="search"
            placeholder="Text, class or name"
            value={text}
            onChange={setText}
          />
          <SelectField label="Level" value={level} onChange={setLevel} options={LEVEL_OPTIONS} />
        </div>
        {error && <ErrorNote error={error} />}
        {shown === undefined ? (
          !error && <Skeleton lines={8} />
        ) : shown.length === 0 ? (
          <Empty title={lines?.length === 0 ? "It has printed nothing yet" : "No line fits"}>
            <p>
              {lines?.length === 0
                ? "What its code writes with console.log appears here at once."
                : "Change the filter or the level."}
            </p>
          </Empty>
        ) : (
          <Lines app={app} lines={shown} />
        )}
        <p class="quiet live-state" role="status">
          {isPaused ? "Paused: new lines come when you follow again" : "Live"}
        </p>
      </Card>
    </Page>
  );
}

const isWanted = (line: WireAppLogLine, level: string, text: string) =>
  LEVELS.indexOf(line.level) >= LEVELS.indexOf(level as WireAppLogLine["level"]) &&
  `${line.text} ${line.agent?.class_name ?? ""} ${line.agent?.name ?? ""}`
    .toLowerCase()
    .includes(text.toLowerCase());

/** The newest is first: what comes is where the eye is. */
function Lines({ app, lines }: { app: string; lines: readonly WireAppLogLine[] }) {
  const { placeOf } = useAccount();
  return (
    <ScrollBox label="Log, the newest line first" class="log-box">
      <ol class="log">
        {lines.toReversed().map((line) => (
          <li key={line.id} class={line.level}>
            <time dateTime={line.time} title={line.time}>
              {timeOfDay(line.time)}
            </time>
            <span class="level">{line.level}</span>
            <span class="text">
              {line.agent && (
                <Link
                  to={placeOf(
                    agentPlace({ app, className: line.agent.class_name, name: line.agent.name }),
                  )}
                >
                  {line.agent.class_name} {line.agent.name}
                </Link>
              )}
              <span class="said">{line.text}</span>
            </span>
          </li>
        ))}
      </ol>
    </ScrollBox>
  );
}

const clock = new Intl.DateTimeFormat("en-GB", {
  ...{ month: "short", day: "numeric" },
  ...{ hour: "2-digit", minute: "2-digit", second: "2-digit" },
});
const timeOfDay = (text: string) => clock.format(Date.parse(text));
