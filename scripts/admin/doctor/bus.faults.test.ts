import { copyFile, mkdir, symlink } from "node:fs/promises";
import type { Socket } from "node:net";
import { join } from "node:path";
import { expect } from "chai";
import { Bus } from "../../../actors/runtime/bus/bus.ts";
import { systemClock } from "../../../actors/runtime/lib/clock.ts";
import { declareStreams } from "../../../deploy/streams.ts";
import { FIRST_LAYOUT } from "../../../schemas/data-layout.ts";
import { STREAMS } from "../../../schemas/subjects.ts";
import { configFromEnvironment } from "../../config.ts";
import { runCommand } from "../../testing/command-line.ts";
import { DoctorScene } from "../../testing/doctor-scene.ts";
import { startTcpServer } from "../../testing/loopback-server.ts";
import { natsCliOrSkip } from "../../testing/nats-cli.ts";
import { startCluster, startNats } from "../../testing/nats-server.ts";
import { SecuredNats } from "../../testing/secured-nats.ts";
import { until } from "../../testing/until.ts";
import { checkClock } from "./clock.ts";

describe("doctor's checks of the bus", function () {
  this.timeout(120_000);
  let scene: DoctorScene;
  beforeEach(async () => {
    scene = await DoctorScene.make();
  });
  afterEach(() => scene[Symbol.asyncDispose]());

  it("is good where it answers with streams on it, for each role with its own user", async () => {
    await using nats = await SecuredNats.start();
    await declare([nats.server.url], 1);
    for (const role of ["gateway", "actors", "browser"] as const) {
      const { status, findings } = await scene.report(["bus", "streams", "clock"], {
        ...nats.settings(role),
        TRUNKLINE_ROLES: role,
      });
      expect(findings.map(({ about }) => about)).to.deep.equal([
        "bus",
        `permissions of ${role}`,
        "streams",
        "clock",
      ]);
      expect(status).to.equal("good");
    }
    const refused = nats.violations.filter((line) => !line.includes('"doctor.everything"'));
    expect(refused).to.deep.equal([]);
  });

  it("warns where one user has all rights", async () => {
    await using server = await startNats();
    await declare([server.url], 1);
    const environment = { TRUNKLINE_NATS_URL: server.url };
    const { level, about, mend } = await scene.finding(["bus", "streams"], environment);
    expect({ level, about }).to.deep.equal({ level: "warning", about: "users of the bus" });
    expect(mend).to.include("trunkline admin bus-credentials");
  });

  it("fails where nats-server was stopped", async () => {
    const server = await startNats();
    await server.stop();
    const { level, about } = await scene.finding(["bus"], { TRUNKLINE_NATS_URL: server.url });
    expect({ level, about }).to.deep.equal({ level: "failure", about: "bus" });
  });

  it("fails in time where it takes connections and stands still", async () => {
    await using silent = await startTcpServer(() => {}, "127.0.0.1");
    const url = `nats://127.0.0.1:${silent.port}`;
    const { level, found } = await scene.finding(["bus"], { TRUNKLINE_NATS_URL: url });
    expect({ level, found: found.slice(-7) }).to.deep.equal({
      level: "failure",
      found: "timeout",
    });
  });

  it("fails where the platform of this folder does not run", async () => {
    const { level, mend } = await scene.finding(["bus"]);
    expect({ level, mend }).to.deep.equal({ level: "failure", mend: "trunkline start" });
  });

  it("fails where the server is too old", async () => {
    await using server = await startTcpServer(answerAs("2.13.9"), "127.0.0.1");
    const url = `nats://127.0.0.1:${server.port}`;
    const { level, found, wanted } = await scene.finding(["bus"], { TRUNKLINE_NATS_URL: url });
    expect(level).to.equal("failure");
    expect(found).to.match(/^nats-server 2\.13\.9 at/);
    expect(wanted).to.equal("2.14 or newer");
  });

  it("fails where its user may not write to streams", async () => {
    await using server = await startNats({
      config: `accounts {
        TRUNKLINE { jetstream: enabled, users: [{ user: u, password: p, permissions: {
          publish: { deny: ["mail.>", "task.>"] }, subscribe: { deny: "live.>" }
        } }] }
        SYS { users: [{ user: system, password: $TRUNKLINE_NATS_SYSTEM_PASSWORD }] }
      }`,
    });
    const url = `nats://u:p@127.0.0.1:${server.port}`;
    const { level, about, found } = await scene.finding(["bus"], { TRUNKLINE_NATS_URL: url });
    expect({ level, about }).to.deep.equal({ level: "failure", about: "permissions" });
    for (const refused of [
      "publish mail.doctor",
      "publish task.doctor",
      "subscription live.doctor",
    ]) {
      expect(found).to.include(refused);
    }
    expect(found).to.not.include("agentlog");
  });

  it("leaves nothing on the bus that it looks at", async () => {
    await using server = await startNats();
    await declare([server.url], 1);
    await scene.report(["bus"], { TRUNKLINE_NATS_URL: server.url });
    const bus = await Bus.connect({ url: server.url, name: "test" });
    for await (const { config, state } of bus.jetstream.streams.list()) {
      expect(state.last_seq, config.name).to.equal(0);
    }
    await bus.close();
  });

  it("warns of copies whose server is away, and fails where TRUNKLINE_REPLICAS is too small", async () => {
    await using cluster = await startCluster(3);
    await declare(cluster.urls, 3);
    const environment = { TRUNKLINE_NATS_URL: cluster.urls.join(","), TRUNKLINE_REPLICAS: "3" };
    expect((await scene.report(["streams"], environment)).status).to.equal("good");
    const less = await scene.finding(["streams"], { ...environment, TRUNKLINE_REPLICAS: "1" });
    expect({ level: less.level, found: less.found }).to.deep.equal({
      level: "failure",
      found: "3 copies by its configuration",
    });
    await cluster.servers[2]?.kill();
    // Before the replica is reported as missing, the other servers elect leaders.
    await until("a copy is away", async () => {
      const { findings } = await scene.report(["streams"], environment);
      return findings.some(({ found }) => found === "2 of 3 copies current");
    });
    await cluster.servers[1]?.kill();
    await until("no majority is left", async () => {
      const { findings } = await scene.report(["streams"], environment);
      return findings.some(({ level, about }) => level === "failure" && /stream/.test(about));
    });
  });

  it("warns of a stream that may be lost whose server is away, and names a command that lists the servers", async function () {
    const cli = await natsCliOrSkip(this);
    await using cluster = await startCluster(3);
    await declare(cluster.urls, 3);
    const bus = await Bus.connect({ url: cluster.urls.join(","), name: "test" });
    const { leader } = (await bus.jetstream.streams.info(STREAMS.traces)).cluster ?? {};
    await bus.close();
    const index = [0, 1, 2].find((number) => `test-${number}` === leader) ?? 0;
    await cluster.servers[index]?.kill();
    const environment = { TRUNKLINE_NATS_URL: cluster.urls.join(","), TRUNKLINE_REPLICAS: "3" };
    const lost = await until(
      "all other streams have leaders",
      async () => {
        const { status, findings } = await scene.report(["streams"], environment);
        const ofTraces = findings.find(({ about }) => about === `stream ${STREAMS.traces}`);
        return status === "warning" && ofTraces;
      },
      120_000,
    );
    expect(lost).to.include({ level: "warning", found: "no leader" });
    const [, command = ""] = /; (.*) names them$/.exec(lost.mend ?? "") ?? [];
    await mkdir(join(scene.folder, "bin"));
    await symlink(cli, join(scene.folder, "bin/nats"));
    const { stdout, stderr } = await runCommand("sh", ["-c", command], {
      PATH: `${join(scene.folder, "bin")}:${process.env.PATH}`,
      // The key of a role, as the variables of the runbook have it.
      NATS_NKEY: "unread.nk",
      TRUNKLINE_NATS_SYSTEM_PASSWORD: new URL(cluster.servers[0]?.systemUrl ?? "").password,
    });
    expect(stdout, stderr).to.match(/test-0[\s\S]*test-1[\s\S]*test-2/);
  });

  it("fails where the seed of a role is missing, and names the setting", async () => {
    await using nats = await SecuredNats.start();
    await declare([nats.server.url], 1);
    const folder = join(scene.folder, "seeds");
    await mkdir(folder);
    await copyFile(join(nats.folder, "gateway.nk"), join(folder, "gateway.nk"));
    const { level, found, mend } = await scene.finding(["bus"], {
      ...nats.settings("gateway"),
      TRUNKLINE_NATS_NKEYS: folder,
      TRUNKLINE_ROLES: "gateway,actors",
    });
    expect(level).to.equal("failure");
    expect(found).to.match(
      /^TRUNKLINE_NATS_NKEYS: Cannot read the NKey seed ".*actors\.nk": ENOENT$/,
    );
    expect(mend).to.match(/^set TRUNKLINE_NATS_NKEYS to .*: trunkline admin bus-credentials/);
  });

  it("finds a clock that differs, by how much it differs", async () => {
    await using server = await startNats();
    await declare([server.url], 1);
    const bus = await Bus.connect({ url: server.url, name: "test" });
    for (const [aheadMs, level] of [
      [0, "good"],
      [-60_000, "warning"],
      [3_600_000, "failure"],
    ] as const) {
      const clock = { ...systemClock, now: () => Date.now() + aheadMs };
      const [found] = await checkClock({
        ...{ config: configFromEnvironment({}), site: new URL("https://example.com"), clock },
        ...{ bus: Promise.resolve(bus), busProblem: Promise.resolve(undefined) },
      });
      expect(found?.level).to.equal(level);
    }
    await bus.close();
  });
});

async function declare(urls: readonly string[], replicas: number): Promise<void> {
  const bus = await Bus.connect({ url: urls.join(","), name: "test" });
  await declareStreams(bus.jetstream, { replicas, layout: FIRST_LAYOUT, tasks: [] });
  await bus.close();
}

/** Starts a fake bus server of a given version. It implements only the greeting and pings. */
function answerAs(version: string) {
  return (socket: Socket) => {
    const greeting = {
      server_id: "OLD",
      version,
      proto: 1,
      max_payload: 1_048_576,
      headers: true,
      jetstream: true,
    };
    socket.write(`INFO ${JSON.stringify(greeting)}\r\n`);
    socket.on("data", (bytes) => {
      for (const _ of bytes.toString().matchAll(/^PING\r\n/gm)) socket.write("PONG\r\n");
    });
  };
}
