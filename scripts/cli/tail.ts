/** `trunkline tail`: prints an app's log live. */
import { APP_LOG_LINES_SHOWN_MAX } from "../../schemas/apps/limits.ts";
import { UsageError } from "../admin/usage-error.ts";
import { APP_HELP, APP_OPTION, appNameOf } from "./app-name.ts";
import { type Command, readParameters } from "./command.ts";
import { followLogs, lineText } from "./follow-logs.ts";
import { openPlatform } from "./platform.ts";
import { untilStopped } from "./stop-signal.ts";

const LINES_DEFAULT = 10;

export const tail: Command = {
  name: "tail",
  usage: "[--app <name>] [--lines <count>] [--json]",
  summary: "print the app's log as it grows, until Ctrl-C",
  help: `Continues after a lost connection. A warning in the log shows where lines were dropped.

${APP_HELP}
  --lines, -n <count>   number of earlier lines to print first; ${LINES_DEFAULT} by default
  --json                print each line as the JSON of the REST API`,
  async run(parameters, environment) {
    const { values } = readParameters(parameters, {
      options: { ...APP_OPTION, lines: { type: "string", short: "n" }, json: { type: "boolean" } },
    });
    const earlier = linesOf(values.lines as string | undefined);
    const app = appNameOf(values);
    const platform = await openPlatform(environment);
    const print = values.json === true ? JSON.stringify : lineText;
    await followLogs(platform, {
      app,
      earlier,
      signal: untilStopped(),
      print: (line) => console.log(print(line)),
    });
  },
};

function linesOf(text: string | undefined): number {
  if (text === undefined) return LINES_DEFAULT;
  const count = /^\d{1,6}$/.test(text) ? Number(text) : Number.NaN;
  if (count <= APP_LOG_LINES_SHOWN_MAX) return count;
  throw new UsageError(
    `Cannot show "${text}" lines: expected a whole number from 0 to ${APP_LOG_LINES_SHOWN_MAX}`,
  );
}
