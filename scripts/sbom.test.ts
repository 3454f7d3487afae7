import { join } from "node:path";
import { expect } from "chai";
import { z } from "zod";
import { runCommand } from "./testing/command-line.ts";
import { REPOSITORY } from "./tools.ts";

const Bill = z.object({
  bomFormat: z.literal("CycloneDX"),
  specVersion: z.literal("1.5"),
  version: z.number().int().positive(),
  components: z.array(
    z.object({
      type: z.enum(["library", "application"]),
      "bom-ref": z.string().min(1),
      name: z.string().min(1),
      version: z.string().min(1),
      purl: z.string().regex(/^pkg:(npm|golang|deb)\/[^@\s]+@[^@\s]+$/),
    }),
  ),
});

describe("the bill of materials", function () {
  this.timeout(120_000);

  it("is CycloneDX with nats-server and every package of npm's own bill, none twice", async () => {
    const path = join(REPOSITORY, "scripts/sbom.ts");
    const { code, stdout, stderr } = await runCommand(process.execPath, [path]);
    expect({ code, stderr }).to.deep.equal({ code: 0, stderr: "" });
    const { components } = Bill.parse(JSON.parse(stdout));
    const references = components.map((component) => component["bom-ref"]);
    expect(new Set(references).size).to.equal(references.length);
    const purls = new Set(components.map(({ purl }) => purl));
    expect(components.filter(({ name }) => name === "nats-server")).to.have.length(1);

    const ofNpm = await runCommand("npm", [
      ...["sbom", "--omit=dev", "--sbom-format=cyclonedx", "--prefix", REPOSITORY],
    ]);
    const expected = Bill.parse(JSON.parse(ofNpm.stdout)).components.map(({ purl }) => purl);
    expect(expected).to.have.length.above(100);
    // The program of Node is in the package `node`. npm counts the package that brought it too.
    const missing = expected.filter(
      (purl) => !purls.has(purl) && !purl.startsWith("pkg:npm/node-"),
    );
    expect(missing).to.deep.equal([]);
  });
});
