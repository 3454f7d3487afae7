/** Decides which events of the account's repositories an app receives, and which of its agents gets each event. */
import { agentInbox } from "../../../schemas/apps/agent-inbox.ts";
import type { AppConfig, EventRule } from "../../../schemas/apps/app-config.ts";
import { agentKey, readAppKey } from "../../../schemas/apps/app-names.ts";
import { AGENT_NAME_CHARS_MAX, EVENT_INLINE_BYTES_MAX } from "../../../schemas/apps/limits.ts";
import { type DeepReadonly, type Envelope, envelope } from "../../../schemas/contract.ts";
import { folded } from "../../../schemas/repositories/git-names.ts";
import type { RepoEventEnvelope } from "../../../schemas/repositories/repo-event-envelope.ts";
import { type RepoEventFilter, repoEvents } from "../../../schemas/repositories/repo-events.ts";

type Config = DeepReadonly<AppConfig>;
type Rule = DeepReadonly<EventRule>;
type RepoEvent = DeepReadonly<RepoEventEnvelope>;

const PREFIX = "artifacts.repo.";

/** Returns the messages to send when the rules change. */
export function followEvents(key: string, before?: Config, after?: Config): Envelope[] {
  const filter = after && filterOf(after.events);
  if (!filter && (before?.events ?? []).length === 0) return [];
  const { accountId, app } = readAppKey(key);
  const subscriber = { kind: "app", key };
  const follow = { id: `app.${app}`, subscriber, filter: filter ?? null };
  return [envelope(repoEvents, accountId, "follow", follow)];
}

/**
 * Returns a filter that matches all events of the rules, and more if the rules differ. With one filter, an app gets
 * each event only once.
 */
function filterOf(rules: readonly Rule[]): RepoEventFilter | undefined {
  if (rules.length === 0) return undefined;
  const namespace = same(rules.map((rule) => rule.namespace));
  const repoName = same(rules.map((rule) => rule.repo));
  return {
    types: [...new Set(rules.flatMap(({ types }) => types))],
    ...(namespace !== undefined && { namespace }),
    ...(repoName !== undefined && { repoName }),
  };
}

const same = (values: readonly (string | undefined)[]) =>
  values.every((value) => value === values[0]) ? values[0] : undefined;

/**
 * Returns the deliveries of events. The first matching rule selects the agent, which is named after the repository.
 */
export function deliveriesOf(
  key: string,
  config: Config,
  numbered: readonly { number: number; event: RepoEvent }[],
): Envelope[] {
  return numbered.flatMap(({ number, event }) => {
    const rule = config.events.find((one) => fits(one, event));
    const agent = config.agents.find(({ binding }) => binding === rule?.agent);
    return agent ? [deliveryOf(key, config, { className: agent.class_name, number, event })] : [];
  });
}

function fits({ types, namespace, repo }: Rule, { type, source }: RepoEvent): boolean {
  return (
    types.some((one) => `${PREFIX}${one}` === type) &&
    (namespace === undefined || folded(namespace) === folded(source.namespace)) &&
    (repo === undefined || folded(repo) === folded(source.repoName))
  );
}

function deliveryOf(
  key: string,
  { deliveries }: Config,
  { className, number, event }: { className: string; number: number; event: RepoEvent },
): Envelope {
  const { namespace, repoName } = event.source;
  // The agent's name as for webhooks: in lower case, with `-` for each slash.
  const name = `${namespace}/${repoName}`.toLowerCase().replaceAll("/", "-");
  const text = textOf(event);
  const eventId = String(number);
  const address = { ...readAppKey(key), className, name: name.slice(0, AGENT_NAME_CHARS_MAX) };
  return envelope(agentInbox, agentKey(address), "happened", {
    source: "artifacts",
    eventId,
    eventType: event.type,
    request: {
      method: "POST",
      url: "http://trunkline/events/artifacts",
      headers: [
        ["content-type", "application/json"],
        ["x-trunkline-event-source", "artifacts"],
        ["x-trunkline-event-id", eventId],
        ["x-trunkline-event-type", event.type],
      ],
      body: { text },
    },
    bodyBytes: Buffer.byteLength(text),
    keep: { days: deliveries.keep_days, count: deliveries.keep_count },
  });
}

/** Returns the event as JSON. An inbox holds bodies in memory, so a large push keeps only its newest commits. */
function textOf(event: RepoEvent): string {
  const text = JSON.stringify(event);
  if (event.type !== "artifacts.repo.pushed" || Buffer.byteLength(text) <= EVENT_INLINE_BYTES_MAX) {
    return text;
  }
  const { commits } = event.payload;
  if (commits.length === 0) return text;
  const payload = { ...event.payload, commits: commits.slice(1), commitsTruncated: true };
  return textOf({ ...event, payload });
}
