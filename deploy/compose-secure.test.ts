import { execFile } from "node:child_process";
import { copyFile, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect } from "chai";
import { z } from "zod";
import { makeSeeds } from "../scripts/bus-users/seeds.ts";
import { SERVER_PART, serverPart } from "../scripts/bus-users/server-part.ts";
import { configFromEnvironment } from "../scripts/config.ts";
import { composeGo } from "../scripts/testing/compose-go.ts";
import {
  composeContainers,
  composeText,
  imageEnvironment,
  kubernetesContainers,
  read,
} from "../scripts/testing/manifests.ts";
import { TestAuthority } from "../scripts/testing/self-signed-certificate.ts";
import { findNatsServer, REPOSITORY } from "../scripts/tools.ts";

const run = promisify(execFile);
const FILES = ["compose.cluster.yaml", "compose.secure.yaml"];
const ROLES = ["gateway", "actors", "browser"];

const Service = z.object({
  command: z.array(z.string()).nullish(),
  environment: z.array(z.string().regex(/^\w+=/)),
  volumes: z.array(z.object({ source: z.string().optional(), target: z.string() })),
});
const Project = z.object({ services: z.record(z.string(), Service) });

describe("compose.secure.yaml", function () {
  this.timeout(900_000);
  let services: z.infer<typeof Project>["services"];
  let folder: string;

  before(async function () {
    const compose = await composeGo();
    if (compose === undefined) return this.skip();
    folder = await mkdtemp(join(tmpdir(), "trunkline-secure-compose-"));
    for (const file of FILES) await writeFile(join(folder, file), composeText(file));
    const { stdout } = await run(compose, ["-format", "json", ...FILES], { cwd: folder });
    ({ services } = Project.parse(JSON.parse(stdout)));
  });
  after(async () => {
    if (folder !== undefined) await rm(folder, { recursive: true });
  });
  const environmentOf = (name: string) => {
    const entries = services[name]?.environment ?? [];
    return Object.fromEntries(entries.map((entry) => entry.split(/=(.*)/s, 2)));
  };
  const targetsOf = (name: string) => services[name]?.volumes.map(({ target }) => target) ?? [];

  it("gives each role its own seed, and an address without a password", () => {
    for (const role of ROLES) {
      const config = configFromEnvironment({ ...imageEnvironment(), ...environmentOf(role) });
      expect(config.roles).to.deep.equal([role]);
      expect(config.natsUrl)
        .to.match(/^nats:\/\/bus-0:4222,/)
        .and.not.include("@");
      expect(config.natsNkeys).to.equal(`/run/bus/${role}.nk`);
      expect(config.natsTls).to.deep.equal({ caFile: "/run/bus/ca.pem" });
      const seeds = targetsOf(role).filter((target) => target.endsWith(".nk"));
      expect(seeds).to.deep.equal([`/run/bus/${role}.nk`]);
      expect(targetsOf(role)).to.include("/data");
    }
  });

  it("servers start with a configuration that nats-server accepts, and with every file that it names", async () => {
    const authority = new TestAuthority();
    const { cert, key } = authority.issue("bus-0");
    const files = { "server.pem": cert, "server.key": key, "ca.pem": authority.cert };
    for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
    for (const name of ["nats-secure.conf", "nats-base.conf"]) {
      await copyFile(join(REPOSITORY, "deploy", name), join(folder, name));
    }
    const { publicKeys } = await makeSeeds(join(folder, "seeds"));
    await writeFile(join(folder, SERVER_PART), serverPart(publicKeys));
    const image = read("deploy/Containerfile");
    expect(image).to.match(/^WORKDIR \/app$/m);
    for (const name of ["bus-0", "bus-1", "bus-2"]) {
      expect(services[name]?.command).to.deep.equal([
        "nats-server",
        "-c",
        "deploy/nats-secure.conf",
      ]);
      const environment = environmentOf(name);
      const certificates = ["CERT", "CERT_KEY", "CA"].map((one) => `TRUNKLINE_NATS_${one}`);
      const mounted = certificates.map((one) => environment[one] ?? "");
      expect(targetsOf(name)).to.have.members([...mounted, "/app/deploy/bus-users.conf", "/data"]);
      for (const one of certificates) {
        environment[one] = join(folder, environment[one]?.split("/").at(-1) ?? "");
      }
      const env = { ...environment, TRUNKLINE_NATS_STORE: JSON.stringify(join(folder, "store")) };
      await run(findNatsServer(), ["-t", "-c", join(folder, "nats-secure.conf")], { env });
    }
  });
});

describe("manifests of roles", () => {
  const platforms = { compose: composeContainers(), kubernetes: kubernetesContainers() };
  for (const [platform, containers] of Object.entries(platforms)) {
    it(`${platform} gives the key of app secrets to gateways and actors alone`, () => {
      const have = containers.filter(({ environment }) => environment.TRUNKLINE_SECRETS_KEY);
      expect(have.map(({ name }) => name)).to.have.members(["gateway", "actors"]);
    });
  }
});
