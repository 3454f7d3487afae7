import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { Bus } from "../../actors/runtime/bus/bus.ts";
import { openData } from "../../deploy/open-data.ts";
import { startWorld } from "../testing/actor-world.ts";
import { counter, counterActor } from "../testing/counter.ts";
import { startCluster, startNats } from "../testing/nats-server.ts";
import { until } from "../testing/until.ts";
import { adminBackup } from "./admin-backup.ts";
import { adminRestore } from "./admin-restore.ts";

const KEYS = Array.from({ length: 50 }, (_, index) => `k${index}`);

describe("backup of a cluster", function () {
  this.timeout(240_000);
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "trunkline-backup-"));
  });
  afterEach(() => rm(folder, { recursive: true, maxRetries: 10 }));

  it("is restored onto a cluster whose servers start meanwhile", async () => {
    await using first = await startNats();
    await using second = await startCluster(3);
    const bus = await Bus.connect({ url: first.url, name: "test" });
    await openData(bus.jetstream, { version: "0", replicas: 1, tasks: [] });
    await bus.close();
    await adminBackup([folder], { TRUNKLINE_NATS_URL: first.url }, () => {});
    const [alone, ...others] = second.servers;
    for (const server of others) await server.kill();
    const environment = { TRUNKLINE_NATS_URL: second.urls.join(","), TRUNKLINE_REPLICAS: "3" };
    const probe = await Bus.connect({ url: alone?.url ?? "", name: "test" });
    const answer = () => probe.jetstream.streams.info("ANY").catch(({ name }: Error) => name);
    // The remaining server answers as the leader until it notices that the other servers are down.
    // One request may also time out because this process stood still.
    let silences = 0;
    const isLeaderless = async () => {
      silences = (await answer()) === "StreamNotFoundError" ? 0 : silences + 1;
      return silences === 3;
    };
    await until("it has no leader", isLeaderless, 60_000);
    const restoring = adminRestore([folder], environment, () => {});
    // This request starts after the restore and fails without the other servers. The restore must not have failed by
    // then.
    expect(await Promise.race([restoring, answer()])).to.not.equal("StreamNotFoundError");
    await probe.close();
    for (const server of others) await server.start();
    await restoring;
  });

  it("is restored onto one server and onto another cluster, while a host of the first goes on", async () => {
    const lines: string[] = [];
    const print = (text: string) => void lines.push(text);
    await using first = await startCluster(3);
    await using single = await startNats();
    await using second = await startCluster(3);
    const url = first.urls.join(",");
    await using world = await startWorld({ url, replicas: 3, definitions: [counterActor] });
    await world.host();
    const increment = () =>
      Promise.all(KEYS.map((key) => world.client.call(counter, key, "increment", { by: 1 })));
    await increment();
    await adminBackup([folder], { TRUNKLINE_NATS_URL: url }, print);
    await increment();
    await adminBackup([folder], { TRUNKLINE_NATS_URL: url }, print);
    await increment();
    for (const [servers, replicas] of [
      [single.url, 1],
      [second.urls.join(","), 3],
    ] as const) {
      const environment = {
        TRUNKLINE_NATS_URL: servers,
        TRUNKLINE_REPLICAS: String(replicas),
      };
      await adminRestore([folder], environment, print);
      const bus = await Bus.connect({ url: servers, name: "test" });
      const options = { version: "0", replicas, tasks: [] };
      await openData(bus.jetstream, options).finally(() => bus.close());
      await using restored = await startWorld({
        ...{ url: servers, replicas, definitions: [counterActor] },
      });
      await restored.host({ name: "restored" });
      for (const key of KEYS) {
        expect((await restored.client.call(counter, key, "get", {})).count).to.equal(2);
      }
      const { config } = await restored.bus.jetstream.streams.info("KV_state-0");
      expect(config.num_replicas).to.equal(replicas);
    }
  });
});
