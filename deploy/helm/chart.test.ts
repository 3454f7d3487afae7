import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { parse } from "yaml";
import { configFromEnvironment } from "../../scripts/config.ts";
import {
  CHART,
  helmChart,
  type KubernetesObject,
  objectsOf,
  renderChart,
  violationsOf,
} from "../../scripts/testing/helm-chart.ts";
import {
  imageEnvironment,
  kustomizedSettings,
  manifestsFrom,
  read,
  SECRETS,
} from "../../scripts/testing/manifests.ts";

/** Values that enable every optional part of the chart, within the bounds of the schema. */
const EVERYTHING = {
  image: { repository: "registry.example.com/trunkline", tag: "1.2.3", pullSecrets: ["registry"] },
  publicUrl: "https://trunkline.example.org",
  shutdownSeconds: 60,
  settings: {
    TRUNKLINE_TRUST_PROXY: "uniquelocal",
    TRUNKLINE_REQUESTS_PER_5_MINUTES: 50_000_000,
    OTEL_EXPORTER_OTLP_ENDPOINT: "http://10.1.0.7:4318",
  },
  extraEnvFrom: [{ secretRef: { name: "trunkline-ai" } }],
  bus: { storageClass: "fast", users: { enabled: true } },
  browser: { scaleByQueue: { enabled: true } },
  ingress: {
    enabled: true,
    className: "nginx",
    annotations: { "nginx.ingress.kubernetes.io/proxy-body-size": "0" },
    tlsSecret: "trunkline-tls",
    appsDomain: "apps.example.org",
    appsTlsSecret: "apps-tls",
  },
  networkPolicies: {
    metricsFrom: [
      { namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": "monitoring" } } },
    ],
    egressTo: [{ ipBlock: { cidr: "10.1.0.0/16" } }],
  },
};

describe("the Helm chart", function () {
  // The first build of helm takes a minute of processor time, so the timeout is long.
  this.timeout(900_000);
  let program: string;

  before(async function () {
    const found = await helmChart();
    if (found === undefined) return this.skip();
    program = found;
  });

  const objectsWith = async (values: unknown): Promise<KubernetesObject[]> => {
    const { lint, files } = await renderChart(program, values);
    expect(lint.filter((line) => !line.startsWith("[INFO]"))).to.deep.equal([]);
    const manifests = Array.from(files).filter(([name]) => name.endsWith(".yaml"));
    return manifests.flatMap(([, text]) => objectsOf(text));
  };

  it("with its default values is deploy/kubernetes", async () => {
    const { files } = await renderChart(program);
    const [map] = objectsOf(files.get("config.yaml") ?? "");
    expect(kustomizedSettings()).to.deep.equal(map?.data);
    for (const [name, text] of manifestsFrom(files)) {
      const advice = "run: node_modules/.bin/node scripts/testing/render-manifests.ts";
      expect(read(`deploy/kubernetes/${name}`), advice).to.equal(text);
    }
  });

  for (const [what, values] of [
    ["its default values", {}],
    ["every optional part", EVERYTHING],
    [
      "nothing optional",
      { disruptionBudgets: { enabled: false }, networkPolicies: { enabled: false } },
    ],
  ] as const) {
    it(`with ${what} passes helm's linter and the schemas of Kubernetes`, async () => {
      const objects = await objectsWith(values);
      expect(objects.flatMap(violationsOf)).to.deep.equal([]);
      const names = objects.map(({ kind, metadata }) => `${kind} ${metadata.name}`);
      expect(names.toSorted()).to.deep.equal([...new Set(names)].toSorted());
    });
  }

  it("the schemas refuse an unknown field, a wrong type and a missing field", async () => {
    const [service] = objectsOf(read("deploy/kubernetes/bus.yaml"));
    if (!service) throw new Error("no Service");
    for (const [spec, fault] of [
      [{ clusterIp: "None" }, /Service bus: \/spec must NOT have additional properties/],
      [{ ports: [{ port: "4222" }] }, /Service bus: \/spec\/ports\/0\/port must be integer/],
      [
        { ports: [{ name: "client" }] },
        /Service bus: \/spec\/ports\/0 must have required property 'port'/,
      ],
    ] as const) {
      expect(violationsOf({ ...service, spec }).join()).to.match(fault);
    }
    expect(violationsOf({ ...service, kind: "Sevice" }).join()).to.include("has no schema of it");
  });

  it("gives each role valid settings, with TLS and its own seed where the bus has users", async () => {
    const objects = await objectsWith(EVERYTHING);
    for (const role of ["gateway", "actors", "browser"]) {
      const environment = environmentOf(objects, role);
      const config = configFromEnvironment(environment);
      expect(config).to.deep.include({
        roles: [role],
        publicUrl: "https://trunkline.example.org",
        natsUrl: "nats://bus-0.bus:4222,nats://bus-1.bus:4222,nats://bus-2.bus:4222",
        natsNkeys: `/run/bus/${role}.nk`,
        natsTls: { caFile: "/run/bus/ca.pem" },
        appsDomain: "apps.example.org",
        shutdownSeconds: 60,
        requestsPerWindow: 50_000_000,
        metricsPort: 9_090,
      });
      const { template } = specOf(objects, "Deployment", role);
      expect(template.spec.terminationGracePeriodSeconds).to.be.above(65);
      expect(JSON.stringify(template.spec.volumes)).to.include(`"trunkline-bus-${role}"`);
      expect("TRUNKLINE_SECRETS_KEY" in environment).to.equal(role !== "browser");
    }
  });

  it("scales browsers by the queue in place of processor time, with metrics that exist", async () => {
    const objects = await objectsWith(EVERYTHING);
    const scalers = objects.filter(({ metadata }) => metadata.name === "browser");
    const kinds = scalers.map(({ kind }) => kind);
    expect(kinds).to.include("ScaledObject").and.not.include("HorizontalPodAutoscaler");
    const { query } = specOf(objects, "ScaledObject", "browser").triggers[0].metadata;
    const metrics = readFileSync(join(CHART, "../../../docs/reference/metrics.md"), "utf8");
    const names = query.match(/trunkline_\w+/g);
    expect(names).to.have.length(2);
    for (const name of names) expect(metrics).to.include(`\`${name}`);
  });

  it("starts only the bus for a restore", async () => {
    const objects = await objectsWith({ ...EVERYTHING, restore: true });
    const running = ["Deployment", "StatefulSet", "HorizontalPodAutoscaler", "ScaledObject"];
    const names = objects.filter(({ kind }) => running.includes(kind));
    expect(names.map(({ kind, metadata }) => `${kind} ${metadata.name}`)).to.deep.equal([
      "StatefulSet bus",
    ]);
  });

  it("sends every host of an app to the gateways, because a wildcard stands for one label", async () => {
    const spec = specOf(await objectsWith(EVERYTHING), "Ingress", "gateway");
    const gateway = { service: { name: "gateway", port: { name: "http" } } };
    expect(spec.defaultBackend).to.deep.equal(gateway);
    expect(spec.rules[0].host).to.equal("trunkline.example.org");
    expect(spec.rules[0].http.paths[0].backend).to.deep.equal(gateway);
    expect(spec.tls).to.deep.equal([
      { secretName: "trunkline-tls", hosts: ["trunkline.example.org"] },
      { secretName: "apps-tls", hosts: ["*.apps.example.org"] },
    ]);
  });

  for (const seconds of [15, "15"]) {
    it(`ends a pod after its drain, also with TRUNKLINE_LEAVE_SECONDS ${typeof seconds}`, async () => {
      const graceOf = async (settings: unknown) =>
        specOf(await objectsWith({ settings }), "Deployment", "gateway").template.spec
          .terminationGracePeriodSeconds;
      expect(await graceOf({})).to.equal(40);
      expect(await graceOf({ TRUNKLINE_LEAVE_SECONDS: seconds })).to.equal(55);
    });
  }

  it("lets actors and browsers reach the private ranges that are allowed", async () => {
    const objects = await objectsWith(EVERYTHING);
    for (const role of ["actors", "browser"]) {
      const { egress } = specOf(objects, "NetworkPolicy", role);
      expect(egress.at(-1).to).to.have.length(3);
      expect(egress.at(-1).to.at(-1)).to.deep.equal({ ipBlock: { cidr: "10.1.0.0/16" } });
    }
  });

  it("gives every role the settings of further Secrets", async () => {
    const objects = await objectsWith(EVERYTHING);
    for (const role of ["gateway", "actors", "browser"]) {
      const [container] = specOf(objects, "Deployment", role).template.spec.containers;
      expect(container.envFrom.at(-1)).to.deep.equal({ secretRef: { name: "trunkline-ai" } });
    }
  });

  it("replaces pods when a setting changes", async () => {
    const stamp = async (values: unknown) =>
      specOf(await objectsWith(values), "Deployment", "actors").template.metadata.annotations;
    const changed = { settings: { TRUNKLINE_LOG_LEVEL: "debug" } };
    expect(await stamp({})).to.deep.equal(await stamp({}));
    expect(await stamp(changed)).to.not.deep.equal(await stamp({}));
  });

  for (const [what, values, sentence] of [
    ["an unknown value", { browser: { minimum: 2 } }, /\/browser'?: .*'minimum'/],
    [
      "a text for a number",
      { browser: { min: "two" } },
      /\/browser\/min'?: got string, want integer/,
    ],
    ["no process of a role", { gateway: { min: 0 } }, /\/gateway\/min'?: minimum: got 0, want 1/],
    ["a path in the public URL", { publicUrl: "https://a.example/x" }, /\/publicUrl'?: .*\^https/],
    ["a setting that the chart sets", { settings: { TRUNKLINE_ROLES: "all" } }, /TRUNKLINE_ROLES/],
    ["a secret as a setting", { settings: { TRUNKLINE_AI_KEY: "x" } }, /TRUNKLINE_AI_KEY/],
    [
      "a setting that names a file",
      { settings: { TRUNKLINE_NATS_CERT: "/x.pem" } },
      /TRUNKLINE_NATS_CERT/,
    ],
    [
      "a setting with another name",
      { settings: { LOG_LEVEL: "debug" } },
      /LOG_LEVEL.*\^\(TRUNKLINE_/s,
    ],
    ["a size without a number", { bus: { storage: "large" } }, /\/bus\/storage'?: .*pattern/],
    [
      "more processes at least than at most",
      { actors: { min: 11 } },
      /Cannot scale actors: actors.min is 11; it must be at most actors.max, which is 10/,
    ],
    [
      "a certificate for apps without their domain",
      { ingress: { appsTlsSecret: "tls" } },
      /ingress.appsTlsSecret needs ingress.appsDomain/,
    ],
  ] as const) {
    it(`refuses ${what} with a sentence that names it`, async () => {
      const refused = await renderChart(program, values).catch((error: Error) => error);
      expect(refused).to.have.property("stderr").that.matches(sentence);
    });
  }

  it("docs/operate/kubernetes.md makes the Secrets that pods need, and its example is valid", async () => {
    const page = read("docs/operate/kubernetes.md");
    const example = parse(/```yaml\n(.*?)```/s.exec(page)?.[1]?.replace(/^ {3}/gm, "") ?? "");
    expect(example).to.have.nested.property("ingress.enabled", true);
    const objects = [...(await objectsWith(example)), ...(await objectsWith(EVERYTHING))];
    expect(objects.flatMap(violationsOf)).to.deep.equal([]);
    const text = JSON.stringify(objects);
    const needed = [
      ...text.matchAll(/"secretKeyRef":\{"name":"([\w-]+)","key":"([\w-]+)"/g),
      ...text.matchAll(/"secretName":"(trunkline-bus-[a-z]+)()"/g),
    ];
    const named = new Set(needed.map(([, secret]) => secret ?? ""));
    expect([...named]).to.have.length(7);
    const loop = /for role in (.*); do/.exec(page)?.[1]?.split(" ") ?? [];
    const made = page.replace(
      "generic trunkline-bus-$role",
      loop.map((role) => `generic trunkline-bus-${role}`).join(" "),
    );
    for (const [, secret, key] of needed) {
      expect(made).to.match(new RegExp(`generic ${secret}\\s`));
      if (key !== "") expect(made).to.include(`--from-literal=${key}=`);
    }
  });

  it("the pods of docs/operate have a spec that the schemas of Kubernetes accept, and the clients' label", () => {
    const [deployment] = objectsOf(read("deploy/kubernetes/actors.yaml")).filter(
      ({ kind }) => kind === "Deployment",
    );
    if (!deployment) throw new Error("no Deployment");
    const pages = ["kubernetes.md", "runbook.md"].map((name) => read(`docs/operate/${name}`));
    const blocks = pages.flatMap((page) => [...page.matchAll(/^```yaml\n(.*?)^```/gms)]);
    const pods = blocks.map(([, text]) => parse(text ?? "")).filter(({ kind }) => kind === "Pod");
    expect(pods.map(({ metadata }) => metadata.name)).to.deep.equal(["admin", "mend"]);
    expect(pods[0].metadata.labels).to.deep.equal({ "trunkline-bus-client": "true" });
    for (const { metadata, spec } of pods) {
      const template = { metadata, spec };
      const wrapped = { ...deployment, spec: { selector: {}, template } };
      expect(violationsOf(wrapped), metadata.name).to.deep.equal([]);
    }
  });

  it("has the version of the package, and a schema for each value", () => {
    const chart = parse(read("deploy/helm/trunkline/Chart.yaml"));
    const { version } = JSON.parse(read("package.json"));
    expect(chart).to.include({ version, appVersion: version });
    const { images } = parse(read("deploy/kubernetes/kustomization.yaml"));
    expect(images).to.deep.equal([{ name: "trunkline", newName: "trunkline", newTag: version }]);
    const values = parse(read("deploy/helm/trunkline/values.yaml"));
    const schema = JSON.parse(read("deploy/helm/trunkline/values.schema.json"));
    expect(schema.required).to.have.members(Object.keys(values));
  });
});

/** Returns the spec of one object. Its shape is what the schemas of Kubernetes say. */
// biome-ignore lint/suspicious/noExplicitAny: the schemas check the shape before.
function specOf(objects: KubernetesObject[], kind: string, name: string): any {
  const found = objects.find((object) => object.kind === kind && object.metadata.name === name);
  if (!found) throw new Error(`no ${kind} ${name}`);
  return found.spec;
}

/** Returns the environment variables of a role's container. The values of Secrets are filled in. */
function environmentOf(objects: KubernetesObject[], role: string): Record<string, string> {
  const map = objects.find(({ kind }) => kind === "ConfigMap");
  const environment = { ...imageEnvironment(), ...(map?.data as Record<string, string>) };
  const [container] = specOf(objects, "Deployment", role).template.spec.containers;
  for (const { name, value } of container.env) {
    environment[name] = value ?? SECRETS[name as keyof typeof SECRETS];
  }
  return environment;
}
