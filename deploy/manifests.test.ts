import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect } from "chai";
import { parse, parseAllDocuments } from "yaml";
import { z } from "zod";
import { configFromEnvironment } from "../scripts/config.ts";
import { NATS_START_MS_MAX, NATS_STOP_MS_MAX } from "../scripts/nats-server.ts";
import { ROLES } from "../scripts/settings.ts";
import { composeGo } from "../scripts/testing/compose-go.ts";
import { objectsOf, violationsOf } from "../scripts/testing/helm-chart.ts";
import {
  COMPOSE_FILES,
  composeContainers,
  composeText,
  imageCheck,
  imageEnvironment,
  kubernetesContainers,
  kubernetesFiles,
  kustomizedSettings,
  read,
  SECRETS,
} from "../scripts/testing/manifests.ts";
import { findNatsServer, REPOSITORY } from "../scripts/tools.ts";

const run = promisify(execFile);
/** The stop of the embedded bus after the drain, with 5 s for the rest of the stop. */
const BUS_STOP_SECONDS = NATS_STOP_MS_MAX / 1_000 + 5;

describe("manifests", () => {
  const platforms = { compose: composeContainers(), kubernetes: kubernetesContainers() };
  for (const [platform, containers] of Object.entries(platforms)) {
    const buses = containers.filter(({ name }) => name.startsWith("bus"));
    const roles = containers.filter(({ name }) => !name.startsWith("bus"));

    it(`${platform} runs three servers of the bus and every role`, () => {
      expect(buses.map(({ name }) => name)).to.deep.equal(["bus-0", "bus-1", "bus-2"]);
      expect(roles.map(({ name }) => name)).to.have.members(ROLES);
      for (const { name, environment } of roles) {
        expect(environment).to.include({ TRUNKLINE_ROLES: name, TRUNKLINE_REPLICAS: "3" });
      }
    });

    it(`${platform} gives roles valid settings of scripts/settings.ts`, () => {
      const known = read("scripts/settings.ts");
      for (const { environment } of roles) {
        const config = configFromEnvironment(environment);
        expect(config).to.include({ host: "0.0.0.0", port: 8787, dataDir: "/data", replicas: 3 });
        for (const name of ownVariables(environment)) {
          if (!(name in SECRETS)) expect(known).to.include(`  ${name}:`);
        }
      }
    });

    it(`${platform} gives servers the values of their configuration, which nats-server accepts`, async () => {
      const store = await mkdtemp(join(tmpdir(), "trunkline-manifests-"));
      for (const { command, environment } of buses) {
        expect(ownVariables(environment)).to.include.members(busVariables());
        const [program, ...parameters] = command;
        expect(program).to.equal("nats-server");
        expect(parameters).to.deep.equal(["-c", "deploy/nats-cluster.conf"]);
        const env = { ...environment, TRUNKLINE_NATS_STORE: JSON.stringify(store) };
        await run(findNatsServer(), ["-t", ...parameters], { cwd: REPOSITORY, env });
      }
      await rm(store, { recursive: true });
    });

    it(`${platform} names the same ports on both ends, and every server`, () => {
      const listens = ["LISTEN", "CLUSTER_LISTEN", "MONITOR_LISTEN"].map((name) =>
        portOf(`tcp://${buses[0]?.environment[`TRUNKLINE_NATS_${name}`]}`),
      );
      const [client, cluster, monitor] = listens;
      for (const server of buses) {
        const peers = server.environment.TRUNKLINE_NATS_ROUTES?.slice(1, -1).split(", ") ?? [];
        expect(peers.map(portOf)).to.deep.equal([cluster, cluster, cluster]);
        expect(peers.map(serverOf)).to.deep.equal(buses.map(({ name }) => name));
        for (const peer of peers) expect(new URL(peer).password).to.equal("p2");
        expect(server.probes.length).to.be.above(0);
        for (const { port } of server.probes) expect(port).to.equal(monitor);
      }
      for (const { environment, probes, ports } of roles) {
        const urls = environment.TRUNKLINE_NATS_URL?.split(",") ?? [];
        expect(urls.map(portOf)).to.deep.equal([client, client, client]);
        expect(urls.map(serverOf)).to.deep.equal(buses.map(({ name }) => name));
        for (const url of urls) expect(new URL(url).password).to.equal("p1");
        const own = Number(environment.TRUNKLINE_PORT);
        const metrics = Number(environment.TRUNKLINE_METRICS_PORT);
        for (const { port } of probes) expect(port).to.equal(own);
        for (const port of ports.filter((one) => one !== metrics)) {
          expect(port).to.equal(own);
        }
      }
    });

    it(`${platform} checks health at the port and path that serve it`, () => {
      // This test checks only port and path. health-server.test.ts and cluster.test.ts check the responses of real
      // processes.
      for (const { probes } of roles) {
        expect(probes.map(({ path }) => path)).to.include("/healthz");
        for (const { path } of probes) expect(path).to.be.oneOf(["/healthz", "/livez"]);
      }
      for (const { probes } of buses) {
        // A probe of the bus checks only the server itself, not its streams, because a restart would not repair a
        // stream.
        for (const { path } of probes)
          expect(path).to.match(/^\/healthz(\?js-enabled-only=true)?$/);
      }
    });

    it(`${platform} waits longer for a stop than a drain may take`, () => {
      for (const { environment, graceS } of roles) {
        expect(graceS).to.be.above(Number(environment.TRUNKLINE_SHUTDOWN_SECONDS) + 5);
      }
    });

    it(`${platform} starts files that are in the image`, () => {
      for (const { command, checks } of containers) {
        for (const part of [...command, ...checks].filter((part) =>
          /^(deploy|scripts)\//.test(part),
        )) {
          expect(existsSync(join(REPOSITORY, part)), part).to.equal(true);
        }
      }
    });
  }

  it("roles that fetch have network access and enough memory", () => {
    const compose = Services.parse(
      parse(read("deploy/compose.cluster.yaml"), { merge: true }),
    ).services;
    const policies = parseAllDocuments(read("deploy/kubernetes/network-policies.yaml")).map(
      (document) => Policy.parse(document.toJS()),
    );
    const egressOf = (role: string) =>
      policies.find(({ metadata }) => metadata.name === role)?.spec.egress;
    expect(JSON.stringify(egressOf("browser"))).to.include("0.0.0.0/0");
    // Both roles need the internet: browsers fetch pages, and hosts of actors send the requests of apps.
    expect(egressOf("actors")).to.deep.equal(egressOf("browser"));
    for (const role of ["actors", "browser"]) {
      expect(compose[role]?.networks).to.deep.equal(["bus", "outside"]);
      expect(compose[role]?.shm_size).to.match(/^\dgb$/);
      expect(read(`deploy/kubernetes/${role}.yaml`)).to.match(/mountPath: \/dev\/shm/);
    }
  });

  it("deploy/kubernetes has objects that the schemas of Kubernetes accept", () => {
    const files = kubernetesFiles().filter((file) => !file.endsWith("kustomization.yaml"));
    const objects = files.flatMap((file) => objectsOf(read(`deploy/${file}`)));
    expect(objects.length).to.be.above(15);
    expect(objects.flatMap(violationsOf)).to.deep.equal([]);
    const { resources } = parse(read("deploy/kubernetes/kustomization.yaml"));
    expect(resources.map((name: string) => `kubernetes/${name}`)).to.have.members(files);
  });

  it("metrics have a port that no Service of Kubernetes exposes", () => {
    const objects = kubernetesFiles()
      .flatMap((file) => parseAllDocuments(read(`deploy/${file}`)))
      .map((document) => document.toJS());
    const services = objects.filter(({ kind }) => kind === "Service");
    expect(services.length).to.be.above(0);
    const metricsPort = Number(kustomizedSettings().TRUNKLINE_METRICS_PORT);
    expect(metricsPort).to.be.above(0);
    for (const { spec } of services) {
      for (const { port, targetPort = port } of spec.ports) {
        expect(targetPort).to.not.equal(metricsPort).and.to.not.equal("metrics");
      }
    }
  });

  it("seccomp-browser.json allows the system calls of Chromium's sandbox", () => {
    const { defaultAction, syscalls } = SeccompProfile.parse(
      JSON.parse(read("deploy/seccomp-browser.json")),
    );
    expect(defaultAction).to.equal("SCMP_ACT_ALLOW");
    const refused = syscalls.flatMap(({ names }) => names);
    expect(refused).to.not.include.members(["clone", "clone3", "unshare", "chroot", "seccomp"]);
    for (const needed of ["clone", "clone3", "unshare", "chroot", "seccomp", "prctl"]) {
      expect(refused).to.not.include(needed);
    }
    for (const file of COMPOSE_FILES) {
      expect(read(`deploy/${file}`), file).to.include("seccomp=./seccomp-browser.json");
    }
  });

  for (const file of COMPOSE_FILES) {
    it(`${file} is what docker compose accepts`, async function () {
      this.timeout(900_000);
      const compose = await composeGo();
      if (compose === undefined) return this.skip();
      const folder = await mkdtemp(join(tmpdir(), "trunkline-compose-"));
      const text = composeText(file);
      const check = async (content: string) => {
        await writeFile(join(folder, file), content);
        return run(compose, ["-format", "json", file], { cwd: folder }).catch((error) => error);
      };
      const accepted = await check(text);
      expect(accepted.code, accepted.stderr).to.equal(undefined);
      expect(JSON.parse(accepted.stdout).name).to.equal("trunkline");
      const refused = await check(text.replace("stop_grace_period", "stop_grace"));
      await rm(folder, { recursive: true });
      expect(refused.code).to.equal(1);
      expect(refused.stderr).to.include("stop_grace");
    });
  }

  it("compose.yaml is a whole platform: every role, a volume, and a port of this machine alone", () => {
    const { services } = parse(read("deploy/compose.yaml"));
    const { environment, ports, volumes, stop_grace_period: grace } = services.trunkline;
    const own = { TRUNKLINE_SHUTDOWN_SECONDS: environment.TRUNKLINE_SHUTDOWN_SECONDS };
    const config = configFromEnvironment({ ...imageEnvironment(), ...own });
    expect(config.roles).to.have.members(ROLES);
    expect(config).to.include({ natsUrl: undefined, publicUrl: "http://localhost:8787" });
    expect(volumes).to.deep.equal([`data:${config.dataDir}`]);
    expect(ports).to.deep.equal([`127.0.0.1:${config.port}:${config.port}`]);
    expect(Number.parseInt(grace, 10)).to.be.above(config.shutdownSeconds + BUS_STOP_SECONDS);
  });

  it("Containerfile takes each base from an argument, runs as no root, and checks its health", () => {
    const text = read("deploy/Containerfile");
    const bases = Array.from(text.matchAll(/^FROM \$\{(\w+)\}/gm), ([, name]) => name);
    expect(bases).to.deep.equal(["NATS_IMAGE", "NODE_IMAGE", "BASE_IMAGE"]);
    for (const name of bases) expect(text).to.match(new RegExp(`^ARG ${name}=`, "m"));
    expect(text).to.match(/^USER 10001:10001$/m);
    expect(imageCheck()).to.deep.equal(["node_modules/.bin/node", "deploy/healthy.ts"]);
  });

  it("a server of the bus on Kubernetes has as long for its start as an embedded one", () => {
    const probe = /startupProbe:.*?periodSeconds: (\d+)\s+failureThreshold: (\d+)/s;
    const [, seconds, failures] = probe.exec(read("deploy/kubernetes/bus.yaml")) ?? [];
    expect(Number(seconds) * Number(failures) * 1_000).to.be.at.least(NATS_START_MS_MAX);
  });

  it("trunkline.service outlasts a drain and the stop of the bus", () => {
    const unit = read("deploy/systemd/trunkline.service");
    const seconds = Number(/^TimeoutStopSec=(\d+)$/m.exec(unit)?.[1]);
    expect(seconds).to.be.above(configFromEnvironment({}).shutdownSeconds + BUS_STOP_SECONDS);
  });

  it("the units of deploy/systemd are accepted by systemd", async function () {
    const folder = await mkdtemp(join(tmpdir(), "trunkline-unit-"));
    const names = ["trunkline.service", "trunkline-backup.service", "trunkline-backup.timer"];
    for (const name of names) {
      // The units name the path of the installed package, which does not exist here, so the test replaces it.
      const unit = read(`deploy/systemd/${name}`);
      await writeFile(
        join(folder, name),
        unit.replace(/^ExecStart=\S+/gm, `ExecStart=${process.execPath}`),
      );
    }
    const paths = names.map((name) => join(folder, name));
    const verified = await run("systemd-analyze", ["verify", ...paths]).catch((error) => error);
    await rm(folder, { recursive: true });
    if (verified.code === "ENOENT") return this.skip();
    expect(verified.stderr).to.not.include("trunkline");
    expect(verified.code).to.equal(undefined);
  });

  it("no file turns Chromium's sandbox off", () => {
    const files = ["Containerfile", ...COMPOSE_FILES, ...kubernetesFiles()];
    for (const file of files) {
      expect(read(`deploy/${file}`), file).to.not.match(/no-sandbox|privileged: true|unconfined/i);
    }
  });

  it("Containerfile has the same nats-server and fonts as scripts/setup", () => {
    const setup = read("scripts/setup");
    const containerfile = read("deploy/Containerfile");
    const version = /^NATS_SERVER=(\S+)/m.exec(setup)?.[1];
    expect(containerfile).to.include(`ARG NATS_IMAGE=docker.io/library/nats:${version}\n`);
    for (const font of /^FONTS="(.*)"/m.exec(setup)?.[1]?.split(" ") ?? ["none"]) {
      expect(containerfile).to.include(` ${font}`);
    }
  });
});

const Services = z.object({
  services: z.record(
    z.string(),
    z.object({ networks: z.array(z.string()), shm_size: z.string().optional() }),
  ),
});
const Policy = z.object({
  metadata: z.object({ name: z.string() }),
  spec: z.object({ egress: z.array(z.unknown()).optional() }),
});

const SeccompProfile = z.object({
  defaultAction: z.string(),
  syscalls: z.array(z.object({ names: z.array(z.string()), action: z.literal("SCMP_ACT_ERRNO") })),
});

/** Returns the environment variables that the server's configuration reads. */
function busVariables(): string[] {
  const files = ["nats.conf", "deploy/nats-base.conf", "deploy/nats-cluster.conf"];
  const text = files
    .map(read)
    .join("")
    .replace(/^\s*#.*$/gm, "");
  return Array.from(text.matchAll(/\$(TRUNKLINE_\w+)/g), ([, name]) => name ?? "");
}

const ownVariables = (environment: Record<string, string>) =>
  Object.keys(environment).filter((name) => name.startsWith("TRUNKLINE_"));
const portOf = (url: string) => Number(new URL(url).port);
/** Returns the pod of a URL. The host name of a pod in a StatefulSet is `<pod>.<service>`. */
const serverOf = (url: string) => new URL(url).hostname.split(".")[0];
