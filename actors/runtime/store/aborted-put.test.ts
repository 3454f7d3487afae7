import { TimeoutError } from "@nats-io/transport-node";
import { expect } from "chai";
import { BLOB_CHUNK_BYTES } from "../../../schemas/limits.ts";
import { blobSubjects } from "../../../schemas/subjects.ts";
import { startWorld, type World } from "../../../scripts/testing/actor-world.ts";
import { patternAt } from "../../../scripts/testing/echo-worker.ts";
import { systemClock } from "../lib/clock.ts";
import { BlobStore } from "./blob-store.ts";

describe("BlobStore, when the caller leaves or an acknowledgement is lost", function () {
  this.timeout(60_000);
  let world: World;
  let blobs: BlobStore;
  before(async () => {
    world = await startWorld();
    blobs = new BlobStore(world.bus, systemClock);
  });
  after(() => world[Symbol.asyncDispose]());

  /** Calls `then` when the bus has stored the head of this blob for the first time, and loses the acknowledgement. */
  function loseAcknowledgement(name: string, then: () => void): Disposable {
    const { bus } = world;
    const request = bus.request.bind(bus);
    let isLost = false;
    bus.request = async (subject, ...rest) => {
      const answer = await request(subject, ...rest);
      if (isLost || subject !== blobSubjects(name).head) return answer;
      isLost = true;
      then();
      throw new TimeoutError();
    };
    return {
      [Symbol.dispose]() {
        bus.request = request;
      },
    };
  }

  for (const bytes of [1_000, BLOB_CHUNK_BYTES + 1]) {
    const content = patternAt(0, bytes);

    it(`put() of ${bytes} bytes reports a stored blob as new, although its signal aborts meanwhile`, async () => {
      const name = `crawl.aborted.${bytes}`;
      const left = new AbortController();
      {
        using _lost = loseAcknowledgement(name, () => left.abort(new Error("left")));
        const stored = await blobs.put(name, content, { signal: left.signal });
        expect(stored.wasThere).to.equal(false);
      }
      expect((await blobs.put(name, content)).wasThere).to.equal(true);
      expect(await blobs.size(name)).to.equal(bytes);
    });

    it(`put() of ${bytes} bytes stores nothing if its signal has aborted before`, async () => {
      const name = `crawl.early.${bytes}`;
      const reason = new Error("left");
      const put = blobs.put(name, content, { signal: AbortSignal.abort(reason) });
      expect(await put.catch((error: unknown) => error)).to.equal(reason);
      expect(await blobs.has(name)).to.equal(false);
    });
  }
});
