/** Crawls on a private bus: the real actors, and a worker that fetches from loopback addresses. */
import { type Logger, pino } from "pino";
import { accountActor } from "../../actors/account/account/account.ts";
import { apiTokenActor } from "../../actors/account/api-token/api-token.ts";
import { installationActor } from "../../actors/account/installation/installation.ts";
import { requestLimitActor } from "../../actors/account/request-limit/request-limit.ts";
import { userActor } from "../../actors/account/user/user.ts";
import { newSecretKey, SecretBox } from "../../actors/apps/lib/app-secrets/secret-box.ts";
import { crawlJobActor } from "../../actors/crawl/crawl-job/crawl-job.ts";
import { crawlListActor } from "../../actors/crawl/crawl-list/crawl-list.ts";
import { HttpPageLoader } from "../../actors/crawl/lib/load/http-page-loader.ts";
import { HeldJobs } from "../../actors/crawl/lib/records/held-jobs.ts";
import { CachedPage } from "../../actors/crawl/lib/records/page-cache.ts";
import { RecordWriter } from "../../actors/crawl/lib/records/record-writer.ts";
import { siteActor } from "../../actors/crawl/site/site.ts";
import { crawlPageWorker } from "../../actors/crawl/workers/crawl-page/crawl-page.ts";
import { watchJob } from "../../actors/crawl/workers/crawl-page/job-watch.ts";
import {
  CACHED_COPIES_MAX,
  LARGE_BODIES_MAX,
} from "../../actors/crawl/workers/crawl-page/open-crawl-worker.ts";
import { lane } from "../../actors/crawl/workers/crawl-page/testing/crawl-world.ts";
import { createAddressPolicy } from "../../actors/egress/address-policy.ts";
import { createEgressGuard } from "../../actors/egress/egress-guard.ts";
import { browserTimeActor } from "../../actors/rendering/browser-time/browser-time.ts";
import { MarkdownPool } from "../../actors/rendering/lib/extract/markdown-pool.ts";
import { RequestKeys } from "../../actors/rendering/lib/request-keys/request-keys.ts";
import { answerRequestKeys } from "../../actors/rendering/render-jobs/answer-request-keys.ts";
import type { Bus } from "../../actors/runtime/bus/bus.ts";
import { BusLiveUpdates } from "../../actors/runtime/bus/live.ts";
import { BusActorClient } from "../../actors/runtime/calls/actor-client.ts";
import { systemClock as clock } from "../../actors/runtime/lib/clock.ts";
import { FairSemaphore } from "../../actors/runtime/lib/fair-semaphore.ts";
import { Semaphore } from "../../actors/runtime/lib/semaphore.ts";
import { BlobStore } from "../../actors/runtime/store/blob-store.ts";
import { TtlStore } from "../../actors/runtime/store/ttl-store.ts";
import { MARKDOWN_QUEUE_MAX } from "../../schemas/crawl/limits.ts";
import { busActors } from "../../scripts/testing/bus-actors.ts";

const FETCH_MS = 20_000;
const PAGES = 16;

export async function crawlBus(logger: Logger = pino({ level: "fatal" })) {
  const policy = createAddressPolicy({ allow: ["127.0.0.0/8"] });
  const guard = createEgressGuard({ policy });
  const markdown = new MarkdownPool();
  const shelves: HeldJobs[] = [];
  const actors = [
    accountActor,
    apiTokenActor,
    browserTimeActor,
    crawlJobActor,
    crawlListActor,
    installationActor,
    requestLimitActor,
    siteActor,
    userActor,
  ];
  const running = await busActors({ actors, workers: (bus) => [worker(bus)] });
  const secrets = new SecretBox([newSecretKey()]);
  answerRequestKeys({ bus: running.bus, logger, secrets });
  return {
    actors: running.actors,
    secrets,
    bus: running.bus,
    blobs: new BlobStore(running.bus, clock),
    live: new BusLiveUpdates(running.bus),
    async stop() {
      await running.stop();
      await Promise.all(shelves.map((shelf) => shelf.close()));
      await markdown.close();
    },
  };

  function worker(bus: Bus) {
    const blobs = new BlobStore(bus, clock);
    const client = new BusActorClient(bus, clock);
    const watching = { live: new BusLiveUpdates(bus), call: client.call.bind(client), clock };
    const jobs = new HeldJobs({
      ...{ blobs, requestKeys: new RequestKeys(bus), clock },
      watch: (job, closed) => watchJob(watching, job, closed),
      open: async (_, request) => new HttpPageLoader({ guard, clock, request, fetchMs: FETCH_MS }),
    });
    shelves.push(jobs);
    const turns = {
      jobs,
      cache: new TtlStore(bus, "page", CachedPage),
      sitemaps: { guard, clock, fetchMs: FETCH_MS },
      clock,
      logger,
      places: new FairSemaphore({ places: PAGES }),
      largePlaces: new FairSemaphore({ places: LARGE_BODIES_MAX }),
      copyPlaces: new FairSemaphore({ places: CACHED_COPIES_MAX }),
      markdown,
      markdownPlaces: new Semaphore(MARKDOWN_QUEUE_MAX),
      records: new RecordWriter(blobs),
      blobs,
      unreported: new Map(),
    };
    const noModel = () => Promise.reject(new Error("no model here"));
    return crawlPageWorker({
      lanes: { fetch: lane(16), robots: lane(4), purge: lane(1) },
      fetch: turns,
      browser: turns,
      robots: { guard, clock, fetchMs: FETCH_MS, places: new FairSemaphore({ places: PAGES }) },
      json: { ...turns, extractor: { extract: noModel }, hold: noModel },
      blobs,
    });
  }
}
