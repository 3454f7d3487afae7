/** Reads the manifests in deploy/ as their platforms do: each container with its command, environment and probes. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parse, parseAllDocuments } from "yaml";
import { z } from "zod";
import { REPOSITORY } from "../tools.ts";

/** Sample values for the secrets that an operator chooses. */
export const SECRETS = {
  TRUNKLINE_NATS_PASSWORD: "p1",
  TRUNKLINE_NATS_SYSTEM_PASSWORD: "p2",
  TRUNKLINE_METRICS_TOKEN: "m".repeat(48),
  TRUNKLINE_SECRETS_KEY: Buffer.alloc(32, 1).toString("base64"),
};

/** One container as its platform would start it. All variables in its environment are resolved. */
export interface Container {
  name: string;
  command: string[];
  /** The command of the health check, if the health check is a command. */
  checks: string[];
  environment: Record<string, string>;
  graceS: number;
  probes: { port: number; path: string }[];
  ports: number[];
}

const ComposeService = z.object({
  command: z.array(z.string()).optional(),
  environment: z.record(z.string(), z.string()),
  healthcheck: z.object({ test: z.array(z.string()) }),
  stop_grace_period: z.string().regex(/^\d+s$/),
  ports: z.array(z.string()).default([]),
});

/** Returns the containers of deploy/compose.cluster.yaml, with anchors, merges and variables resolved. */
export function composeContainers(): Container[] {
  const text = composeText("compose.cluster.yaml");
  const { services } = z
    .object({ services: z.record(z.string(), ComposeService) })
    .parse(parse(text, { merge: true }));
  return Object.entries(services).map(([name, service]) => {
    const check = new URL(service.healthcheck.test.at(-1) ?? "");
    return {
      name,
      command: service.command ?? imageCommand(),
      checks: service.healthcheck.test,
      environment: { ...imageEnvironment(), ...service.environment },
      graceS: Number.parseInt(service.stop_grace_period, 10),
      probes: [{ port: Number(check.port), path: check.pathname + check.search }],
      ports: service.ports.map((port) => Number(port.split(":").at(-1))),
    };
  });
}

/** Returns a compose file below deploy/ with all variables replaced by values. */
export function composeText(file: string): string {
  const values: Record<string, string> = {
    ...SECRETS,
    TRUNKLINE_PUBLIC_URL: "http://localhost:8787",
  };
  const variable = /\$\{(\w+)[^}]*\}/g;
  return read(`deploy/${file}`).replace(variable, (_, name: string) => values[name] ?? "trunkline");
}

const Probe = z.object({ httpGet: z.object({ path: z.string(), port: z.number() }) });
const EnvironmentEntry = z.object({
  name: z.string(),
  value: z.string().optional(),
  valueFrom: z.unknown().optional(),
});
const Workload = z.object({
  kind: z.enum(["Deployment", "StatefulSet"]),
  metadata: z.object({ name: z.string() }),
  spec: z.object({
    replicas: z.number().optional(),
    template: z.object({
      spec: z.object({
        terminationGracePeriodSeconds: z.number(),
        containers: z.array(
          z.object({
            args: z.array(z.string()).optional(),
            env: z.array(EnvironmentEntry),
            ports: z.array(z.object({ containerPort: z.number() })),
            startupProbe: Probe,
            readinessProbe: Probe,
            livenessProbe: Probe,
            lifecycle: z
              .object({ preStop: z.object({ sleep: z.object({ seconds: z.number() }) }) })
              .optional(),
          }),
        ),
      }),
    }),
  }),
});

/** Returns the containers of deploy/kubernetes. */
export function kubernetesContainers(): Container[] {
  const configMap = kustomizedSettings();
  return kubernetesFiles()
    .flatMap((file) => parseAllDocuments(read(`deploy/${file}`)).map((document) => document.toJS()))
    .flatMap((object) => {
      const workload = Workload.safeParse(object);
      return workload.success ? [workload.data] : [];
    })
    .flatMap(({ kind, metadata, spec }) => {
      const { terminationGracePeriodSeconds, containers } = spec.template.spec;
      const names =
        kind === "StatefulSet"
          ? Array.from({ length: spec.replicas ?? 1 }, (_, index) => `${metadata.name}-${index}`)
          : [metadata.name];
      return names.flatMap((name) =>
        containers.map((container): Container => {
          const environment: Record<string, string> = { ...imageEnvironment() };
          if (kind === "Deployment") Object.assign(environment, configMap);
          for (const { name: variable, value } of container.env) {
            environment[variable] =
              value?.replace(/\$\((\w+)\)/g, (_, other: string) => environment[other] ?? "") ??
              { ...SECRETS, TRUNKLINE_NATS_NAME: name }[variable] ??
              "";
          }
          const { startupProbe, readinessProbe, livenessProbe, lifecycle } = container;
          return {
            name,
            command: container.args ?? imageCommand(),
            checks: [],
            environment,
            graceS: terminationGracePeriodSeconds - (lifecycle?.preStop.sleep.seconds ?? 0),
            probes: [startupProbe, readinessProbe, livenessProbe].map(({ httpGet }) => httpGet),
            ports: name.startsWith("bus") ? [] : container.ports.map((port) => port.containerPort),
          };
        }),
      );
    });
}

/** Files and folders of the repository that get into the image. */
export function imageCopies(): string[] {
  const copies = read("deploy/Containerfile").matchAll(/^COPY (?!--)(.*) \S+$/gm);
  return Array.from(copies, ([, sources = ""]) => sources.split(" ")).flat();
}

/** Returns the commands that make the Node packages of the image. */
export function imagePackageCommands(): string[] {
  const [, stage = ""] = read("deploy/Containerfile").split(" AS packages\n");
  const [commands = ""] = stage.split("\nFROM ");
  return Array.from(commands.matchAll(/^RUN (.*)$/gm), ([, command = ""]) => command);
}

export function imageEnvironment(): Record<string, string> {
  const lines = read("deploy/Containerfile").matchAll(/^ENV (.*)$/gm);
  return variablesOf(Array.from(lines, ([, line = ""]) => line.split(" ")).flat());
}

/** Reads variables from texts of the form `name=value`. */
export const variablesOf = (pairs: readonly string[]): Record<string, string> =>
  Object.fromEntries(pairs.map((pair) => pair.split(/=(.*)/s).slice(0, 2)));

/** Returns the image's default command. */
export const imageCommand = (): string[] => wordsOf(/^CMD (.*)$/m);

/** Returns the program of the image that starts each command. */
export const imageEntry = (): string[] => wordsOf(/^ENTRYPOINT (.*)$/m);

/** Returns the command of the image's health check. */
export const imageCheck = (): string[] => wordsOf(/^HEALTHCHECK .* CMD (.*)$/m);

function wordsOf(step: RegExp): string[] {
  const found = step.exec(read("deploy/Containerfile"))?.[1];
  return z.array(z.string()).parse(JSON.parse(found ?? "[]"));
}

/** Below deploy/. */
export const COMPOSE_FILES = ["compose.yaml", "compose.cluster.yaml"];

/** Below deploy/. */
export function kubernetesFiles(): string[] {
  return readdirSync(join(REPOSITORY, "deploy/kubernetes")).map((name) => `kubernetes/${name}`);
}

/** The text of a file of the repository. */
export function read(path: string): string {
  return readFileSync(join(REPOSITORY, path), "utf8");
}

/** Returns the settings of deploy/kubernetes/kustomization.yaml. */
export function kustomizedSettings(): Record<string, string> {
  const { configMapGenerator } = z
    .object({ configMapGenerator: z.tuple([z.object({ literals: z.array(z.string()) })]) })
    .parse(parse(read("deploy/kubernetes/kustomization.yaml")));
  return variablesOf(configMapGenerator[0].literals);
}

/**
 * Returns the contents for the files of deploy/kubernetes that are rendered from the chart, by file name. Skips
 * config.yaml, because kustomization.yaml has the settings.
 */
export function manifestsFrom(chart: ReadonlyMap<string, string>): Map<string, string> {
  const head =
    "# Made from deploy/helm/trunkline: node_modules/.bin/node scripts/testing/render-manifests.ts\n";
  return new Map(
    Array.from(chart)
      .filter(([name]) => name.endsWith(".yaml") && name !== "config.yaml")
      .map(([name, text]) => [name, `${head}${text}\n`]),
  );
}
