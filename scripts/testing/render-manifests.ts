/** Writes deploy/kubernetes from the Helm chart: `node_modules/.bin/node scripts/testing/render-manifests.ts`. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { REPOSITORY } from "../tools.ts";
import { helmChart, renderChart } from "./helm-chart.ts";
import { manifestsFrom } from "./manifests.ts";

const program = await helmChart();
if (program === undefined) throw new Error("Cannot render the chart: go is not installed");
const { files } = await renderChart(program);
for (const [name, text] of manifestsFrom(files)) {
  await writeFile(join(REPOSITORY, "deploy/kubernetes", name), text);
}
