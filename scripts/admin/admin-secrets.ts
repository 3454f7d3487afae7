/**
 * `trunkline admin secrets`: shows which keys encrypt the stored secrets, and encrypts secrets of apps again with the
 * newest key.
 */
import { z } from "zod";
import { findSecretBox } from "../../actors/apps/lib/app-secrets/open-secret-box.ts";
import {
  keyIdOf,
  type SecretBox,
  SecretKeyError,
} from "../../actors/apps/lib/app-secrets/secret-box.ts";
import type { Bus } from "../../actors/runtime/bus/bus.ts";
import { BusActorClient } from "../../actors/runtime/calls/actor-client.ts";
import { systemClock } from "../../actors/runtime/lib/clock.ts";
import { Semaphore } from "../../actors/runtime/lib/semaphore.ts";
import { BlobStore } from "../../actors/runtime/store/blob-store.ts";
import { app, SealedSecret } from "../../schemas/apps/app.ts";
import { readAppKey } from "../../schemas/apps/app-names.ts";
import { outgoingWebhook, SigningSecrets } from "../../schemas/apps/outgoing-webhook.ts";
import { crawlRequestBlob, sealedKeyOf } from "../../schemas/crawl/stored-request.ts";
import { ActorError } from "../../schemas/errors.ts";
import { renderJobs } from "../../schemas/rendering/render-jobs.ts";
import {
  blobHeads,
  blobNameOf,
  STREAMS,
  stateBucket,
  stateSubjects,
} from "../../schemas/subjects.ts";
import { configFromEnvironment } from "../config.ts";
import { table } from "./table.ts";
import { UsageError } from "./usage-error.ts";
import { withBus } from "./with-bus.ts";

const READS_AT_ONCE = 32;

const SecretRow = z.object({ secret: SealedSecret });
const WebhookRow = z.object({ secret: SigningSecrets.optional() });
const JobRow = z.object({ secret: z.string().optional(), requestKey: z.string().optional() });

/** A stored secret of an app. */
interface StoredSecret {
  /** The key of its app. */
  of: string;
  name: string;
  sealed: string;
}

interface StoredSecrets {
  ofApps: StoredSecret[];
  /**
   * The other sealed secrets. Secrets of outgoing webhooks are stored for up to 30 days after the webhook has ended.
   * Keys of the requests for rendering jobs and crawls are stored until the job or crawl ends.
   */
  ofOthers: string[];
}

/**
 * With `reseal`, encrypts with the newest key each secret of an app that an older key sealed. Without `reseal`, the
 * command changes nothing.
 */
export async function adminSecrets(
  [verb, ...surplus]: readonly string[],
  environment: NodeJS.ProcessEnv,
): Promise<void> {
  if ((verb !== undefined && verb !== "reseal") || surplus.length > 0) {
    throw new UsageError('Cannot run "admin secrets": expected nothing or reseal after it');
  }
  const config = configFromEnvironment(environment);
  const box = await findSecretBox(config);
  if (!box) {
    throw new Error(
      `Cannot show the keys of secrets: TRUNKLINE_SECRETS_KEY is not set, and ${config.dataDir} has no secrets.key; set TRUNKLINE_SECRETS_KEY as the hosts of actors have it`,
    );
  }
  await withBus(environment, async (bus) => {
    const resealed = verb === "reseal" ? await reseal(bus, box) : undefined;
    if (resealed) console.log(`${resealed.changed} of ${resealed.outdated} secrets sealed anew\n`);
    console.log(report(await readSecrets(bus), box));
    const faults = resealed?.faults ?? [];
    if (faults.length > 0) {
      const text = `Cannot seal all secrets anew: no key opens ${faults.length} of them`;
      throw new Error([text, ...faults].join("\n"));
    }
  });
}

interface Resealed {
  outdated: number;
  changed: number;
  /** One line for each secret that no key opens. */
  faults: string[];
}

/** Reseals the secrets that an older key sealed. Skips a secret that no key opens, so that all others are resealed. */
async function reseal(bus: Bus, box: SecretBox): Promise<Resealed> {
  const actors = new BusActorClient(bus, systemClock);
  const { ofApps } = await readSecrets(bus);
  const outdated = ofApps.filter(({ sealed }) => box.isOutdated(sealed));
  const faults: string[] = [];
  let changed = 0;
  for (const { of, name, sealed } of outdated) {
    const sealedFor = { ...readAppKey(of), name };
    try {
      const to = box.seal(box.open(sealed, sealedFor), sealedFor);
      await actors.call(app, of, "resealSecret", { name, from: sealed, to });
      changed += 1;
    } catch (error) {
      if (error instanceof SecretKeyError) {
        faults.push(`account ${sealedFor.accountId}: ${error.message}`);
        continue;
      }
      // Conflict: the secret was set or deleted meanwhile. The report below shows whether an older key is still in
      // use.
      if (!(error instanceof ActorError) || error.code !== "conflict") throw error;
    }
  }
  return { outdated: outdated.length, changed, faults };
}

function report({ ofApps, ofOthers }: StoredSecrets, box: SecretBox): string {
  const known = box.keyIds;
  const counts = new Map(known.map((id) => [id, { apps: 0, others: 0 }]));
  const count = (sealed: string, where: "apps" | "others") => {
    const id = keyIdOf(sealed) ?? "unreadable";
    const found = counts.get(id) ?? { apps: 0, others: 0 };
    found[where] += 1;
    counts.set(id, found);
  };
  for (const { sealed } of ofApps) count(sealed, "apps");
  for (const sealed of ofOthers) count(sealed, "others");
  const rows = [...counts].map(([id, { apps, others }]) => {
    const isUnused = apps + others === 0;
    const use = !known.includes(id)
      ? "missing: add it to TRUNKLINE_SECRETS_KEY"
      : id === known[0]
        ? "seals"
        : isUnused
          ? "no longer needed"
          : "still needed";
    return [id, apps, others, use];
  });
  return table(["KEY", "SECRETS OF APPS", "OF WEBHOOKS AND JOBS", "USE"], rows);
}

/** Reads the rows as they are stored on the bus. Changes of the last second may be missing. */
async function readSecrets(bus: Bus): Promise<StoredSecrets> {
  const found: StoredSecrets = { ofApps: [], ofOthers: [] };
  const turns = new Semaphore(READS_AT_ONCE);
  for (let index = 0; index < bus.layout.stateStreams; index++) {
    const subjects = stateSubjects(stateBucket(index));
    const rowsOf = async (kind: string, begins: string) =>
      (await bus.subjectsOf(subjects.stream, subjects.beneath(kind))).filter(
        (subject) =>
          subject.includes(".=.") &&
          !subject.endsWith(".=.=") &&
          subjects.rowName(subject).startsWith(begins),
      );
    const read = async (subject: string) =>
      await turns.run(() => bus.readLast(subjects.stream, subject));
    const [apps, webhooks, jobs] = await Promise.all([
      rowsOf(app.kind, "secret."),
      rowsOf(outgoingWebhook.kind, "webhook/"),
      rowsOf(renderJobs.kind, ""),
    ]);
    const ofApps = apps.map(async (subject) => {
      const row = SecretRow.safeParse(readJson(await read(subject)));
      if (!row.success) return;
      const { name, sealed } = row.data.secret;
      found.ofApps.push({ of: subjects.keyOf(app.kind, subject), name, sealed });
    });
    const ofWebhooks = webhooks.map(async (subject) => {
      const row = WebhookRow.safeParse(readJson(await read(subject)));
      for (const secret of [row.data?.secret ?? []].flat()) {
        if ("sealed" in secret) found.ofOthers.push(secret.sealed);
      }
    });
    const ofJobs = jobs.map(async (subject) => {
      const row = JobRow.safeParse(readJson(await read(subject)));
      const { secret = [], requestKey = [] } = row.data ?? {};
      found.ofOthers.push(...[secret, requestKey].flat());
    });
    await Promise.all([...ofApps, ...ofWebhooks, ...ofJobs]);
  }
  found.ofOthers.push(...(await keysOfCrawls(bus, turns)));
  return found;
}

/** Returns the sealed keys of the stored crawl requests. The blob of a request begins with its key. */
async function keysOfCrawls(bus: Bus, turns: Semaphore): Promise<string[]> {
  const blobs = new BlobStore(bus, systemClock);
  const heads = await bus.subjectsOf(STREAMS.crawl, blobHeads(crawlRequestBlob("*")));
  const keys = heads.map((head) =>
    turns.run(async () => {
      try {
        for await (const first of blobs.get(blobNameOf(head))) return sealedKeyOf(first);
      } catch (error) {
        // The crawl has ended meanwhile.
        if (!(error instanceof ActorError) || error.code !== "not_found") throw error;
      }
      return undefined;
    }),
  );
  return (await Promise.all(keys)).filter((key) => key !== undefined);
}

/** Returns undefined for a removed row: its last message has no content. */
function readJson(stored: { string(): string } | undefined): unknown {
  const text = stored?.string() ?? "";
  return text === "" ? undefined : JSON.parse(text);
}
