/** Deletes the data of removed apps: bundles, logs, and all data of their agents. */
import { agentAlarm } from "../../../../schemas/apps/agent.ts";
import { agentInbox } from "../../../../schemas/apps/agent-inbox.ts";
import { app } from "../../../../schemas/apps/app.ts";
import { readAppKey } from "../../../../schemas/apps/app-names.ts";
import { appPurge } from "../../../../schemas/apps/app-purge.ts";
import { appUsage } from "../../../../schemas/apps/app-usage.ts";
import { outgoingWebhook } from "../../../../schemas/apps/outgoing-webhook.ts";
import { type Contract, envelope } from "../../../../schemas/contract.ts";
import { agentLogsOf } from "../../../../schemas/split-streams.ts";
import { appLogSubject, blobSubjects, STREAMS } from "../../../../schemas/subjects.ts";
import type { Bus } from "../../../runtime/bus/bus.ts";
import { keysBeneath } from "../../../runtime/commit/stored-subjects.ts";
import type { BlobStore } from "../../../runtime/store/blob-store.ts";
import { defineWorker, type TaskContext } from "../../../runtime/workers/define-worker.ts";

/** Number of concurrent purges. One is enough, because purges mostly wait for the bus and are not urgent. */
const SLOTS = 1;
/** Number of actors that are cleared at the same time, after one check that the app is still being deleted. */
const CLEARED_AT_ONCE = 32;

interface PurgeParts {
  bus: Bus;
  blobs: Pick<BlobStore, "remove">;
  /** Number of state streams. */
  buckets: number;
}

export function appPurgeWorker(parts: PurgeParts) {
  return defineWorker(appPurge, {
    slots: { purge: SLOTS },
    handlers: {
      async purge({ app: key, id: wanted }, context) {
        const id = wanted ?? (await deletingId(key, context));
        if (id === undefined) return {};
        try {
          await new Purge(parts, context, { key, id }).run();
        } catch (error) {
          if (error instanceof NotDeleting) return {};
          throw error;
        }
        return { send: [envelope(app, key, "purged", { id })] };
      },
      async removeBundle({ bundle }) {
        await parts.blobs.remove(bundle);
        return {};
      },
    },
    failures: {
      purge: ({ app: key, id }) => [
        envelope(app, key, "purgeFailed", { ...(id !== undefined && { id }) }),
      ],
      // A bundle that could not be removed is deleted with its app.
      removeBundle: () => [],
    },
  });
}

/** The app with this id was already purged. An app that has its name now must keep its data. */
class NotDeleting extends Error {}

/**
 * One purge. Another worker may have finished the same purge, so that the owner has deployed the name again. So each
 * step ends with the check that the app is still being deleted, and removes only what was stored before the check.
 */
class Purge {
  readonly #parts: PurgeParts;
  readonly #context: TaskContext;
  readonly #key: string;
  readonly #id: string;

  constructor(parts: PurgeParts, context: TaskContext, { key, id }: { key: string; id: string }) {
    this.#parts = parts;
    this.#context = context;
    this.#key = key;
    this.#id = id;
  }

  async run(): Promise<void> {
    const { bus } = this.#parts;
    const key = this.#key;
    // A deploy stores its bundle before the app accepts or refuses the version. So only bundles from before the purge
    // are removed.
    const { stream, beneath: blobs } = blobSubjects(`app.${key}`);
    const lastBlob = await this.#lastOf(stream);
    await this.#clear(agentInbox, (of) => this.#tell(envelope(agentInbox, of, "clear", {})));
    await this.#clearWebhooks();
    await this.#clearAlarms();
    const logs = agentLogsOf(bus.layout, key);
    await this.#removeAll(logs.stream, logs.beneath(key));
    await this.#removeAll(STREAMS.appLogs, appLogSubject(key));
    await this.#removeUpTo(stream, blobs, lastBlob);
    // Agents that were still open may have stored images since then.
    await this.#removeAll(stream, blobSubjects(`app.${key}.agent`).beneath);
    // They may also have sent webhooks and set alarms.
    await this.#clearWebhooks();
    await this.#clearAlarms();
    const { accountId, app: name } = readAppKey(key);
    await this.#checkDeleting();
    await this.#tell(envelope(appUsage, accountId, "purged", { app: name, id: this.#id }));
  }

  async #clearWebhooks(): Promise<void> {
    await this.#clear(outgoingWebhook, (of) =>
      this.#tell(envelope(outgoingWebhook, of, "clear", {})),
    );
  }

  async #clearAlarms(): Promise<void> {
    await this.#clear(agentAlarm, (of) => this.#context.call(agentAlarm, of, "set", {}));
  }

  async #clear({ kind }: Contract, clear: (key: string) => Promise<unknown>): Promise<void> {
    const { bus, buckets } = this.#parts;
    const keys = [...(await keysBeneath(bus, { kind, tokens: this.#key, buckets }))];
    for (let at = 0; at < keys.length; at += CLEARED_AT_ONCE) {
      await this.#checkDeleting();
      await Promise.all(keys.slice(at, at + CLEARED_AT_ONCE).map(clear));
    }
  }

  /**
   * Sends a message and waits until it is handled. Mail could reach a later app of the same name. A failed call ends
   * only this try of the task.
   */
  async #tell(message: ReturnType<typeof envelope>): Promise<void> {
    await this.#context.tellByCall(message).catch((cause: unknown) => {
      throw new Error(`Cannot purge ${this.#key}: ${message.kind} does not answer`, { cause });
    });
  }

  /** Removes all messages of the subjects, including those that are stored meanwhile. */
  async #removeAll(stream: string, filter: string): Promise<void> {
    for (;;) {
      const last = await this.#lastOf(stream);
      if ((await this.#removeUpTo(stream, filter, last)) === 0) return;
    }
  }

  /** Removes the messages of the subjects up to this sequence. Returns their number. */
  async #removeUpTo(stream: string, filter: string, last: number): Promise<number> {
    await this.#checkDeleting();
    const { bus } = this.#parts;
    const purge = () => bus.jetstream.streams.purge(stream, { filter, seq: last + 1 });
    return (await bus.whileConnected(purge)).purged;
  }

  async #lastOf(stream: string): Promise<number> {
    const { bus } = this.#parts;
    const { state } = await bus.whileConnected(() => bus.jetstream.streams.info(stream));
    return state.last_seq;
  }

  async #checkDeleting(): Promise<void> {
    if ((await deletingId(this.#key, this.#context)) !== this.#id) throw new NotDeleting();
    // Another worker may have the task, so the answer may be old.
    if (!this.#context.isSure()) throw new Error(`Cannot purge ${this.#key}: the task was lost`);
  }
}

async function deletingId(key: string, { call }: TaskContext): Promise<string | undefined> {
  return (await call(app, key, "getDeleting", {})).id;
}
