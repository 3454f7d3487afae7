import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { SyntaxNode } from "@lezer/common";
import { parser } from "@prometheus-io/lezer-promql";
import { expect } from "chai";
import { collectDefaultMetrics, Registry } from "prom-client";
import { z } from "zod";
import { declaredMetric, METRICS, type MetricName } from "../../schemas/metrics.ts";
import { alertRules } from "./alert-rules.ts";

const read = (file: string) => readFileSync(join(import.meta.dirname, file), "utf8");

/** Labels that Prometheus adds to scraped metrics. */
const SCRAPED = ["job", "instance"];

const rules = alertRules();

const GridPos = z.strictObject({ h: z.int(), w: z.int(), x: z.int(), y: z.int() });
const Panel = z.object({
  id: z.int(),
  title: z.string().min(1),
  type: z.enum(["row", "stat", "timeseries"]),
  gridPos: GridPos,
  targets: z.array(z.object({ expr: z.string(), legendFormat: z.string() })).optional(),
});
const panels = z
  .object({ panels: z.array(Panel) })
  .parse(JSON.parse(read("dashboard.json"))).panels;

describe("what is shipped for monitoring", () => {
  const labelsOf = new Map<string, readonly string[]>([["up", SCRAPED]]);
  before(async () => {
    for (const key of Object.keys(METRICS) as MetricName[]) {
      const { name, labelNames } = declaredMetric(key);
      labelsOf.set(name, [...labelNames, ...SCRAPED]);
      if (METRICS[key].type === "histogram") {
        labelsOf.set(`${name}_bucket`, [...labelNames, "le", ...SCRAPED]);
      }
    }
    const registry = new Registry();
    collectDefaultMetrics({ register: registry });
    for (const { name } of await registry.getMetricsAsJSON()) labelsOf.set(name, SCRAPED);
  });

  /** Returns the faults of an expression: syntax errors, and metric names and labels that no process exposes. */
  function faultsOf(expression: string): string[] {
    // Grafana replaces its variables before it sends a query to Prometheus.
    const text = expression.replaceAll("$__rate_interval", "1m");
    const found: string[] = [];
    const shown = new Set<string>();
    const used: string[] = [];
    const textOf = ({ from, to }: SyntaxNode) => text.slice(from, to);
    parser.parse(text).iterate({
      enter({ node, name, type }) {
        if (type.isError) found.push(`wrong syntax at ${node.from}`);
        if (name === "VectorSelector") {
          const metric = node.getChild("Identifier");
          const labels = metric === null ? undefined : labelsOf.get(textOf(metric));
          if (labels === undefined) found.push(`no metric ${textOf(node)}`);
          for (const label of labels ?? []) shown.add(label);
        }
        if (name === "LabelName") used.push(textOf(node));
      },
    });
    for (const label of used) if (!shown.has(label)) found.push(`no label ${label}`);
    return found;
  }

  it("faultsOf() finds wrong syntax, and names and labels that no process shows", () => {
    expect(faultsOf("sum(trunkline_dead_letters")).to.deep.equal(["wrong syntax at 26"]);
    expect(faultsOf("trunkline_nothing > 0")).to.deep.equal(["no metric trunkline_nothing"]);
    expect(faultsOf("max by (lane) (trunkline_dead_letters)")).to.deep.equal(["no label lane"]);
    expect(faultsOf('up{job="trunkline"} == 0')).to.deep.equal([]);
  });

  it("alerts ask for metrics and labels that processes show, and have names of their own", () => {
    expect(rules.length).to.be.at.least(12);
    for (const { alert, expr } of rules) expect(faultsOf(expr), alert).to.deep.equal([]);
    expect(new Set(rules.map(({ alert }) => alert)).size).to.equal(rules.length);
  });

  it("alerts name a section of the runbook that is there", () => {
    const runbook = read("../../docs/operate/runbook.md");
    const anchors = [...runbook.matchAll(/^## (.+)$/gm)].map(
      ([, title = ""]) =>
        `docs/operate/runbook.md#${title
          .toLowerCase()
          .replace(/[^a-z0-9 -]/g, "")
          .replaceAll(" ", "-")}`,
    );
    for (const { alert, annotations } of rules) {
      expect(anchors, alert).to.include(annotations.runbook);
    }
  });

  it("the dashboard asks for metrics and labels that processes show, and no panels overlap", () => {
    const taken = new Set<string>();
    for (const { title, gridPos, targets = [] } of panels) {
      for (const { expr } of targets) expect(faultsOf(expr), title).to.deep.equal([]);
      expect(gridPos.x + gridPos.w, title).to.be.at.most(24);
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++) {
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
          expect(taken.has(`${x} ${y}`), `${title} at ${x} ${y}`).to.equal(false);
          taken.add(`${x} ${y}`);
        }
      }
    }
    expect(new Set(panels.map(({ id }) => id)).size).to.equal(panels.length);
  });

  it("every metric of ours is in an alert or on the dashboard", () => {
    const asked = [
      ...rules.map(({ expr }) => expr),
      ...panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr)),
    ].join("\n");
    const unused = (Object.keys(METRICS) as MetricName[])
      .map((key) => declaredMetric(key).name)
      .filter((name) => !asked.includes(name));
    expect(unused).to.deep.equal([]);
  });
});
