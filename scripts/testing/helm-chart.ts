/** Renders the Helm chart with helm's own packages, and checks the rendered objects against Kubernetes schemas. */
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import { Ajv2020 } from "ajv/dist/2020.js";
import { parseAllDocuments, stringify } from "yaml";
import { z } from "zod";
import { REPOSITORY } from "../tools.ts";
import { goTool } from "./go-tool.ts";

const run = promisify(execFile);
export const CHART = join(REPOSITORY, "deploy/helm/trunkline");
/** The published schemas of the objects of Kubernetes 1.34 and KEDA 2.21, without descriptions. */
const SCHEMAS = join(import.meta.dirname, "helmchart/kubernetes-schemas.json");
const OUTPUT_BYTES_MAX = 10_000_000;

const Rendered = z.object({
  /** Messages of helm's linter. */
  lint: z.array(z.string()),
  files: z.record(z.string(), z.string()),
});

/** An object of a manifest. The schema accepts other fields, which tests read without types. */
export type KubernetesObject = z.infer<typeof KubernetesObject>;
const KubernetesObject = z.looseObject({
  apiVersion: z.string(),
  kind: z.string(),
  metadata: z.looseObject({ name: z.string() }),
});

/** Returns the path of the program that renders, or undefined where Go is missing. */
export const helmChart = (): Promise<string | undefined> =>
  goTool({ name: "helmchart", version: "4.3.1", package: ".", folder: "helmchart" });

/** Renders the chart. Returns the linter's messages and each template's text by its file name; rejects invalid values. */
export async function renderChart(program: string, values: unknown = {}) {
  const folder = await mkdtemp(join(tmpdir(), "trunkline-chart-"));
  try {
    const file = join(folder, "values.yaml");
    // Writes YAML 1.1, because Helm reads YAML 1.1. There an unquoted `off` is a boolean.
    await writeFile(file, stringify(values, { version: "1.1" }));
    const { stdout } = await run(program, [CHART, file], { maxBuffer: OUTPUT_BYTES_MAX });
    const { lint, files } = Rendered.parse(JSON.parse(stdout));
    const texts = Object.entries(files)
      .map(([path, text]) => [basename(path), text.trim()] as const)
      .filter(([, text]) => text !== "");
    return { lint, files: new Map(texts) };
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** Returns the objects of manifests. Throws for text that is not YAML or has no objects of Kubernetes. */
export function objectsOf(text: string): KubernetesObject[] {
  const documents = parseAllDocuments(text, { uniqueKeys: true });
  return documents
    .filter((document) => document.contents !== null)
    .map((document) => {
      const [error] = document.errors;
      if (error) throw error;
      return KubernetesObject.parse(document.toJS());
    });
}

/** Returns the violations of an object's schema, each with the object and the field. */
export function violationsOf(object: KubernetesObject): string[] {
  const name = `${object.apiVersion} ${object.kind}`;
  const validate = validators().getSchema(
    `kubernetes#/objects/${name.replaceAll("/", "~1").replaceAll(" ", "%20")}`,
  );
  if (!validate) return [`${name}: kubernetes-schemas.json has no schema of it`];
  if (validate(object)) return [];
  return (validate.errors ?? []).map(
    ({ instancePath, message }) => `${name} ${object.metadata.name}: ${instancePath} ${message}`,
  );
}

let loaded: Ajv2020 | undefined;

function validators(): Ajv2020 {
  if (loaded) return loaded;
  loaded = new Ajv2020({ strict: false, allErrors: true, validateFormats: false });
  loaded.addSchema(JSON.parse(readFileSync(SCHEMAS, "utf8")), "kubernetes");
  return loaded;
}
