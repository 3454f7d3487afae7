/** Runs a call as a job if the client requests that: stores the request, and responds with the id of the job. */
import { randomBytes } from "node:crypto";
import type { Response } from "express";
import type { SecretBox } from "../../../actors/apps/lib/app-secrets/secret-box.ts";
import type { ActorClient } from "../../../actors/runtime/calls/actor-client.ts";
import { NO_APP, OUTGOING_SECRET } from "../../../schemas/apps/outgoing-webhook.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { browserTime } from "../../../schemas/rendering/browser-time.ts";
import type { JobWebhook } from "../../../schemas/rendering/http/job-webhook.ts";
import type { RenderCall } from "../../../schemas/rendering/http/render-calls.ts";
import { wireJob } from "../../../schemas/rendering/http/render-jobs.ts";
import type { RenderQuery } from "../../../schemas/rendering/http/rendering.ts";
import { RENDER_JOBS_ACCOUNT_SHARE } from "../../../schemas/rendering/limits.ts";
import {
  type RenderJob,
  renderJobs,
  requestObjectOf,
} from "../../../schemas/rendering/render-jobs.ts";
import {
  encryptRequest,
  newRequestKey,
  requestKeyName,
} from "../../../schemas/rendering/request-key.ts";
import { success } from "../../http/envelope.ts";
import { prefersAsync } from "../../http/prefer.ts";
import type { RouteRequest } from "../../http/route.ts";

/** What a gateway does with the object store in which the requests and results of jobs are. */
export interface JobObjects {
  putBytes(name: string, bytes: Uint8Array, options?: { description?: string }): Promise<void>;
  get(
    name: string,
    signal?: AbortSignal,
  ): Promise<{ bytes: number; chunks: AsyncIterable<Uint8Array> } | undefined>;
  remove(name: string): Promise<void>;
  /** Returns the maximum bytes of the whole store. */
  capacity(): Promise<number>;
}

export interface JobsParts {
  objects: JobObjects;
  secrets: Pick<SecretBox, "seal">;
}

interface StartingParts {
  actors: ActorClient;
  /** Limit of each account's browser time per day in milliseconds; 0 means no limit. */
  browserMsPerDay: number;
  jobs?: JobsParts | undefined;
}

type Handle<B> = (
  asked: RouteRequest<unknown, RenderQuery, B>,
  response: Response,
) => Promise<void>;

/** Returns a handler that runs the call as a job if the client requests that, and otherwise calls `handle`. */
export function orAsJob<B>(call: RenderCall, parts: StartingParts, handle: Handle<B>): Handle<B> {
  return async (asked, response) => {
    // Safe: every call has this field.
    const { webhook, ...parameters } = asked.body as { webhook?: JobWebhook };
    const { jobs, ...shared } = parts;
    if (!jobs || !prefersAsync(response.req.headers.prefer)) {
      if (webhook !== undefined) throw webhookWithoutJob();
      return await handle(asked, response);
    }
    const request = { call, parameters, webhook };
    const job = await startJob({ ...shared, ...jobs }, request, asked);
    const [path = ""] = response.req.originalUrl.split("?");
    response.status(202).set({
      "Preference-Applied": "respond-async",
      // The path may end with a slash, because Express accepts that too.
      Location: path.replace(/[^/]*\/?$/, `jobs/${job.id}`),
    });
    response.json(success(wireJob(job)));
  };
}

async function startJob(
  { actors, browserMsPerDay, objects, secrets }: Omit<StartingParts, "jobs"> & JobsParts,
  request: { call: RenderCall; parameters: object; webhook: JobWebhook | undefined },
  { caller: { accountId }, query, signal }: RouteRequest<unknown, RenderQuery>,
): Promise<RenderJob> {
  const { call, parameters, webhook } = request;
  const limit = { limitMs: browserMsPerDay };
  await actors.call(browserTime, accountId, "admit", limit, { signal });
  const content = Buffer.from(JSON.stringify(parameters));
  const bytesMax = Math.floor((await objects.capacity()) * RENDER_JOBS_ACCOUNT_SHARE);
  const room = { requestBytes: content.length, bytesMax };
  const hasWebhook = webhook !== undefined;
  await actors.call(renderJobs, accountId, "admit", { ...room, hasWebhook }, { signal });
  const id = randomBytes(16).toString("hex");
  const object = requestObjectOf(accountId, id);
  // The stored request is encrypted, because it may contain cookies, passwords and header fields with access to other
  // accounts of the user.
  const key = newRequestKey();
  const encrypted = await encryptRequest(content, key);
  const store = (bytes: Uint8Array) =>
    objects.putBytes(object, bytes, { description: `request of ${call}` });
  await store(encrypted);
  const seal = (value: string, name: string) =>
    secrets.seal(value, { accountId, app: NO_APP, name });
  const sealed = {
    requestKey: seal(key, requestKeyName(id)),
    ...(webhook && {
      webhook: { url: webhook.url, secret: seal(webhook.secret, OUTGOING_SECRET) },
    }),
  };
  const created = { ...room, id, call, cacheTtlS: query.cacheTTL, ...sealed };
  try {
    // From here on the client's signal is not used: the job is created completely or not at all, even if the client
    // leaves.
    const job = await actors.call(renderJobs, accountId, "create", created);
    // The host has an older version and dropped the key, so the request is stored again without encryption. A worker
    // that has already read the encrypted object fails and tries again.
    if (!job.isKeyKept) await store(content);
    return job;
  } catch (error) {
    // If the actor refuses, other jobs have used the space meanwhile, and the request is removed. After any other
    // error the job may exist and needs its request.
    const isRefused =
      error instanceof ActorError && ["limit_reached", "queue_full"].includes(error.code);
    if (isRefused) await objects.remove(object);
    throw error;
  }
}

function webhookWithoutJob(): ActorError {
  const pointer = "/webhook";
  const expected = "Expected the request header `Prefer: respond-async` with a webhook";
  const faults = [{ pointer, message: `Cannot accept ${pointer}: ${expected}` }];
  return new ActorError("invalid_request", "Cannot render page: see the faults", { faults });
}
