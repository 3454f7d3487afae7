/** REST routes for administrators: hosts, queues, streams and dead letters. */
import { ActorError } from "../../schemas/errors.ts";
import { nothing } from "../../schemas/http/nothing.ts";
import {
  DeadLetterPath,
  DeadLettersQuery,
  DoneDeadLetter,
  WireDeadLetter,
  WireHosts,
  WireQueues,
  WireStorage,
  WireWholeDeadLetter,
} from "../../schemas/http/operations.ts";
import { INSTALLATION_TAG } from "../http/installation-tag.ts";
import { defineRoute, type Route, type RouteRequest } from "../http/route.ts";
import type { DeadLetter, DeadLetters, Operations } from "./operations.ts";

const BY_SESSION = "(needs an administrator's session; tokens are refused)";
const LETTERS = "/installation/dead-letters";
const SHARED = { tag: INSTALLATION_TAG, isOfAdministrators: true, query: nothing } as const;

const LIST_HOSTS = {
  ...SHARED,
  method: "get",
  parameters: nothing,
  path: "/installation/hosts",
  id: "listHosts",
  summary: `Hosts of actors with their leases and shards ${BY_SESSION}`,
  answer: { result: WireHosts },
} as const;

const LIST_QUEUES = {
  ...SHARED,
  method: "get",
  parameters: nothing,
  path: "/installation/queues",
  id: "listQueues",
  summary: `What waits and runs in each lane, and waiting mail ${BY_SESSION}`,
  answer: { result: WireQueues },
} as const;

const SHOW_STORAGE = {
  ...SHARED,
  method: "get",
  parameters: nothing,
  path: "/installation/storage",
  id: "showStorage",
  summary: `Streams of the bus, their copies, and the room on its disk ${BY_SESSION}`,
  answer: { result: WireStorage },
} as const;

const LIST_DEAD_LETTERS = {
  ...SHARED,
  method: "get",
  parameters: nothing,
  path: LETTERS,
  id: "listDeadLetters",
  summary: `Messages that failed at every try, the oldest first ${BY_SESSION}`,
  query: DeadLettersQuery,
  answer: { result: WireDeadLetter.array(), paged: "cursor" },
} as const;

const GET_DEAD_LETTER = {
  ...SHARED,
  method: "get",
  parameters: DeadLetterPath,
  path: `${LETTERS}/{sequence}`,
  id: "getDeadLetter",
  summary: `One dead letter with its input ${BY_SESSION}`,
  answer: { result: WireWholeDeadLetter },
} as const;

const RETRY_DEAD_LETTER = {
  ...SHARED,
  method: "post",
  parameters: DeadLetterPath,
  path: `${LETTERS}/{sequence}/retry`,
  id: "retryDeadLetter",
  summary: `Send a dead letter again and remove it from the list ${BY_SESSION}`,
  answer: { result: DoneDeadLetter },
} as const;

const DROP_DEAD_LETTER = {
  ...SHARED,
  method: "delete",
  parameters: DeadLetterPath,
  path: `${LETTERS}/{sequence}`,
  id: "dropDeadLetter",
  summary: `Remove a dead letter without sending it ${BY_SESSION}`,
  answer: { result: DoneDeadLetter },
} as const;

/** The REST routes of the installation. */
export function operationsRoutes(operations: Operations): Route[] {
  const { deadLetters } = operations;
  return [
    defineRoute({ ...LIST_HOSTS, handle: listHosts(operations) }),
    defineRoute({ ...LIST_QUEUES, handle: listQueues(operations) }),
    defineRoute({ ...SHOW_STORAGE, handle: showStorage(operations) }),
    defineRoute({ ...LIST_DEAD_LETTERS, handle: listDeadLetters(deadLetters) }),
    defineRoute({
      ...GET_DEAD_LETTER,
      async handle({ parameters }: RouteRequest<DeadLetterPath>) {
        const letter = await letterOf(deadLetters, parameters);
        return { result: { ...wireLetter(letter), input: letter.input ?? null } };
      },
    }),
    defineRoute({ ...RETRY_DEAD_LETTER, handle: onLetter(deadLetters, "retry") }),
    defineRoute({ ...DROP_DEAD_LETTER, handle: onLetter(deadLetters, "drop") }),
  ];
}

function listHosts(operations: Operations) {
  return async () => {
    const { hosts, free } = await operations.hosts();
    const gone = hosts.flatMap(({ lease, shards }) => (lease === "gone" ? shards : []));
    return {
      result: {
        hosts: hosts.map(({ id, lease, renewedAt, shards }) => ({
          ...{ id, lease, shards },
          renewed_on: timeOrNull(renewedAt),
        })),
        unowned_shards: [...free, ...gone].sort((one, other) => one - other),
      },
    };
  };
}

function listQueues(operations: Operations) {
  return async () => {
    const { lanes, mail, deadLetters } = await operations.queues();
    return {
      result: {
        lanes: lanes.map(({ kind, lane, waiting, running, isFull, oldestAt }) => ({
          ...{ kind, lane, waiting, running },
          oldest_on: timeOrNull(oldestAt),
          is_full: isFull,
        })),
        mail_waiting: mail,
        dead_letters: deadLetters,
      },
    };
  };
}

function showStorage(operations: Operations) {
  return async () => {
    const disk = operations.disk();
    const streams = await operations.streams();
    return {
      result: {
        disk_free_bytes: disk && Number.isFinite(disk.freeBytes) ? disk.freeBytes : null,
        disk_shortage: disk?.shortage ?? null,
        streams: streams.map(({ stream: name, behind, info, refusesAtBytes }) => ({
          name,
          messages: info?.state.messages ?? null,
          bytes: info?.state.bytes ?? null,
          bytes_max: info !== undefined && info.config.max_bytes > 0 ? info.config.max_bytes : null,
          refuses_when_full: info === undefined ? null : refusesAtBytes !== undefined,
          copies: info?.config.num_replicas ?? null,
          copies_behind: behind,
        })),
      },
    };
  };
}

function listDeadLetters(letters: DeadLetters) {
  return async ({ query: { after, per_page: count } }: RouteRequest<unknown, DeadLettersQuery>) => {
    const found = await letters.list({ after, count: count + 1 });
    const result = found.slice(0, count).map(wireLetter);
    const cursor = found.length > count ? { cursor: String(result.at(-1)?.sequence) } : {};
    return { result, resultInfo: { count: result.length, per_page: count, ...cursor } };
  };
}

function onLetter(letters: DeadLetters, act: "retry" | "drop") {
  return async ({ parameters, caller, logger }: RouteRequest<DeadLetterPath>) => {
    const letter = await letterOf(letters, parameters);
    await letters[act](letter);
    const { sequence, address, message } = letter;
    logger.info({ by: caller.userId, sequence, address, message, act }, "dead letter removed");
    return { result: { sequence } };
  };
}

async function letterOf(letters: DeadLetters, { sequence }: DeadLetterPath): Promise<DeadLetter> {
  const letter = await letters.find(sequence);
  if (letter) return letter;
  const text = `Cannot find dead letter ${sequence}: there is none of that number`;
  throw new ActorError("not_found", text);
}

const wireLetter = (letter: DeadLetter) => ({
  sequence: letter.sequence,
  address: letter.address,
  message: letter.message,
  is_task: letter.task !== undefined,
  error: letter.error,
  tries: letter.tries,
  buried_on: new Date(letter.buriedAt).toISOString(),
  request_id: letter.requestId ?? null,
});

const timeOrNull = (at: Date | undefined) => (at === undefined ? null : at.toISOString());
