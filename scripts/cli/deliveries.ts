/** `trunkline deliveries`: shows the events that an agent received, and replays them. */
import { z } from "zod";
import { AgentName, ClassName } from "../../schemas/apps/app-names.ts";
import { Replayed, WireDelivery, WireDeliveryContent } from "../../schemas/apps/http/deliveries.ts";
import { age } from "../admin/age.ts";
import { table } from "../admin/table.ts";
import { UsageError } from "../admin/usage-error.ts";
import { APP_HELP, APP_OPTION, appNameOf } from "./app-name.ts";
import { type Command, readParameters } from "./command.ts";
import { openPlatform } from "./platform.ts";

const AGENT_TEXT = "<class> is the agent's class, <agent> its name.";

export const deliveriesList: Command = {
  name: "deliveries list",
  usage: "<class> <agent> [--status <status>] [--limit <count>] [--cursor <cursor>] [--app <name>]",
  summary: "list the events that an agent received, the newest first",
  help: `${AGENT_TEXT}

  --status <status>     only waiting, delivered or failed events
  --limit <count>       at most this number of events
  --cursor <cursor>     continue after an earlier answer
${APP_HELP}`,
  async run(parameters, environment) {
    const options = {
      ...APP_OPTION,
      status: { type: "string" },
      limit: { type: "string" },
      cursor: { type: "string" },
    } as const;
    const { values, positionals } = readParameters(parameters, { options, counts: [2, 2] });
    const agent = agentPath(appNameOf(values), positionals);
    const platform = await openPlatform(environment);
    const query = new URLSearchParams();
    for (const name of ["status", "limit", "cursor"] as const) {
      if (values[name] !== undefined) query.set(name, String(values[name]));
    }
    const page = await platform.askPage(`${agent}/deliveries?${query}`, WireDelivery.array());
    const rows = page.result.map((one) => [
      Number(one.id),
      one.status,
      `${age(new Date(one.received_on))} ago`,
      one.attempts,
      one.replays,
      one.event_type ?? "",
      one.event_id,
      one.error ?? "",
    ]);
    const heading = ["ID", "STATUS", "RECEIVED", "TRIES", "REPLAYS", "TYPE", "EVENT", "ERROR"];
    if (rows.length > 0) console.log(table(heading, rows));
    else console.log("No deliveries");
    if (page.cursor !== undefined) console.log(`\nMore: --cursor ${page.cursor}`);
  },
};

export const deliveriesShow: Command = {
  name: "deliveries show",
  usage: "<class> <agent> <id> [--app <name>]",
  summary: "print one event with its headers and body, as JSON",
  help: `${AGENT_TEXT}\n\n${APP_HELP}`,
  async run(parameters, environment) {
    const { values, positionals } = readParameters(parameters, {
      options: APP_OPTION,
      counts: [3, 3],
    });
    const id = idOf(positionals[2]);
    const agent = agentPath(appNameOf(values), positionals);
    const platform = await openPlatform(environment);
    const shown = await platform.ask(`${agent}/deliveries/${id}`, WireDeliveryContent);
    console.log(JSON.stringify(shown, undefined, 2));
  },
};

export const deliveriesReplay: Command = {
  name: "deliveries replay",
  usage:
    "<class> <agent> [<id>] [--from <id or time>] [--to <id or time>] [--status <status>] [--app <name>]",
  summary: "deliver an event again, or all of a range, or all that failed",
  help: `${AGENT_TEXT} Without an id, choose the events:

  --from, --to          the first and the last event, by id or by time of arrival (2026-11-20T12:00:00Z)
  --status <status>     only delivered or failed events
${APP_HELP}`,
  async run(parameters, environment) {
    const options = {
      ...APP_OPTION,
      from: { type: "string" },
      to: { type: "string" },
      status: { type: "string" },
    } as const;
    const { values, positionals } = readParameters(parameters, { options, counts: [2, 3] });
    const { from, to, status } = values;
    const range = { ...(from && { from }), ...(to && { to }), ...(status && { status }) };
    const isRange = Object.keys(range).length > 0;
    if ((positionals.length === 3) === isRange) {
      throw new UsageError("Cannot replay: expected an id, or --from, --to or --status");
    }
    const below = isRange ? "replay" : `${idOf(positionals[2])}/replay`;
    const path = `${agentPath(appNameOf(values), positionals)}/deliveries/${below}`;
    const platform = await openPlatform(environment);
    const { replayed } = await platform.ask(path, Replayed, {
      method: "POST",
      ...(isRange && { json: range }),
    });
    console.log(replayed === 1 ? "replays 1 delivery" : `replays ${replayed} deliveries`);
  },
};

const Address = z.tuple([ClassName, AgentName]);

function agentPath(app: string, [className, name]: string[]): string {
  const read = Address.safeParse([className, name]);
  if (read.success) return `/apps/${app}/agents/${read.data.map(encodeURIComponent).join("/")}`;
  throw new UsageError(
    `Cannot find agent "${className} ${name}": ${read.error.issues[0]?.message}`,
  );
}

function idOf(text: string | undefined): string {
  if (text !== undefined && /^[1-9]\d{0,14}$/.test(text)) return text;
  throw new UsageError(
    `Cannot use "${text}" as the id of a delivery: expected a whole number from 1`,
  );
}
