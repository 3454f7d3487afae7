import { expect } from "chai";
import { appListActor } from "../../actors/apps/app-list/app-list.ts";
import { systemClock } from "../../actors/runtime/lib/clock.ts";
import { BlobStore } from "../../actors/runtime/store/blob-store.ts";
import { AppConfig } from "../../schemas/apps/app-config.ts";
import { appList } from "../../schemas/apps/app-list.ts";
import { BLOB_CHUNK_BYTES } from "../../schemas/limits.ts";
import { ACCOUNT_STREAM_SHARE } from "../../schemas/store-limits.ts";
import { STREAMS } from "../../schemas/subjects.ts";
import { startWorld, type World } from "../../scripts/testing/actor-world.ts";
import { checkAppRoom, newBundleName } from "./app-room.ts";
import { deployApp } from "./deploy-app.ts";

const STREAM_BYTES = 16 * 1024 ** 2;
const LIMIT = STREAM_BYTES * ACCOUNT_STREAM_SHARE;
const ACCOUNT = "a".repeat(32);
const OTHER = "b".repeat(32);

describe("room for an account's apps", function () {
  this.timeout(60_000);
  let world: World;
  let blobs: BlobStore;
  beforeEach(async () => {
    world = await startWorld({ definitions: [appListActor] });
    await world.host();
    await world.bus.jetstream.streams.update(STREAMS.apps, { max_bytes: STREAM_BYTES });
    blobs = new BlobStore(world.bus, systemClock);
  });
  afterEach(() => world[Symbol.asyncDispose]());

  async function store(bytes: number, accountId = ACCOUNT): Promise<string> {
    const blob = newBundleName({ accountId, name: "hooks" }, bytes);
    await blobs.put(blob, Buffer.alloc(bytes, blob));
    return blob;
  }
  const codeOf = (bytes: number, accountId = ACCOUNT) =>
    checkAppRoom(blobs, { accountId, name: "hooks" }, bytes).then(
      () => "room",
      ({ code }) => code,
    );

  it("checkAppRoom() accepts a quarter of the stream, not a byte more, and frees what is removed", async () => {
    const [first] = [await store(1_000_001), await store(1_000)];
    const left = LIMIT - 1_001_001;
    expect([await codeOf(left), await codeOf(left + 1)]).to.deep.equal(["room", "storage_full"]);
    expect(await codeOf(LIMIT, OTHER)).to.equal("room");
    await blobs.remove(first);
    expect(await codeOf(LIMIT - 1_000)).to.equal("room");
  });

  it("checkAppRoom() counts bundles of older versions by their chunks, and no images of agents", async () => {
    const bytes = Buffer.alloc(3 * BLOB_CHUNK_BYTES + 1);
    await blobs.put(`app.${ACCOUNT}.hooks.agent.1f`, bytes);
    await blobs.put(`app.${ACCOUNT}.hooks.bundle.5ce1a4f0-0000-4000-8000-000000000000`, bytes);
    const left = LIMIT - 3 * BLOB_CHUNK_BYTES;
    expect([await codeOf(left), await codeOf(left + 1)]).to.deep.equal(["room", "storage_full"]);
  });

  it("deployApp() refuses a bundle past the limit, and leaves no data", async () => {
    await store(LIMIT);
    const config = AppConfig.parse({ name: "more", compatibility_date: "2026-11-20" });
    const of = { accountId: ACCOUNT, name: "more", permissions: [] };
    const deploying = deployApp({ actors: world.client, blobs }, of, {
      config,
      bundle: "export {}",
    });
    const refused = await deploying.catch((error) => error);
    expect(refused).to.include({ code: "storage_full" });
    expect(refused.message).to.contain(`may have ${LIMIT}`).and.to.contain("TRUNKLINE_APPS_BYTES");
    expect(await world.client.call(appList, ACCOUNT, "list", {})).to.deep.equal({ apps: [] });
  });

  it("deployApp() refuses code that may do more than its deployer, and leaves no data", async () => {
    const artifacts = [{ binding: "GIT", namespace: "default" }];
    const config = AppConfig.parse({ name: "more", compatibility_date: "2026-11-20", artifacts });
    const of = { accountId: OTHER, name: "more", permissions: ["apps.write" as const] };
    const deploying = deployApp({ actors: world.client, blobs }, of, { config, bundle: "" });
    expect(await deploying.catch((error) => error)).to.include({ code: "forbidden" });
    expect(await world.client.call(appList, OTHER, "list", {})).to.deep.equal({ apps: [] });
  });
});
