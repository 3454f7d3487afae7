/**
 * Prints the software of this image as a bill of materials in CycloneDX 1.5 (JSON): the npm packages that the platform
 * runs, nats-server, and the packages of Debian, which include Chromium and git. Needs no npm, so it runs in the image.
 */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { findNatsServer, REPOSITORY } from "./tools.ts";

interface Component {
  type: "library" | "application";
  "bom-ref": string;
  name: string;
  version: string;
  purl: string;
  licenses?: { expression: string }[];
  hashes?: { alg: "SHA-512"; content: string }[];
}

/** The list of installed packages that npm writes into `node_modules`. */
const Installed = z.object({
  packages: z.record(
    z.string(),
    z.object({
      version: z.string(),
      dev: z.boolean().optional(),
      license: z.string().optional(),
      integrity: z.string().optional(),
    }),
  ),
});

const Package = z.object({ name: z.string(), version: z.string() });

function npmPackages(): Component[] {
  const path = join(REPOSITORY, "node_modules/.package-lock.json");
  const { packages } = Installed.parse(JSON.parse(readFileSync(path, "utf8")));
  return Object.entries(packages).flatMap(([folder, { version, dev, license, integrity = "" }]) => {
    if (dev) return [];
    const name = folder.slice(folder.lastIndexOf("node_modules/") + "node_modules/".length);
    const sha512 = /^sha512-(\S+)$/.exec(integrity)?.[1];
    return {
      type: "library",
      // One package can be installed in several folders.
      "bom-ref": folder,
      name,
      version,
      purl: `pkg:npm/${name.replace("@", "%40")}@${version}`,
      ...(license !== undefined && { licenses: [{ expression: license }] }),
      ...(sha512 !== undefined && {
        hashes: [{ alg: "SHA-512", content: Buffer.from(sha512, "base64").toString("hex") }],
      }),
    };
  });
}

function natsServer(): Component {
  const text = execFileSync(findNatsServer(), ["--version"], { encoding: "utf8" });
  const version = /v(\d\S*)/.exec(text)?.[1];
  if (version === undefined) throw new Error(`Cannot read the version of nats-server: ${text}`);
  const purl = `pkg:golang/github.com/nats-io/nats-server/v2@v${version}`;
  return { type: "application", "bom-ref": purl, name: "nats-server", version, purl };
}

/** Returns the installed packages of Debian. There are none on systems without dpkg. */
function debianPackages(): Component[] {
  let lines: string;
  try {
    const format = `${["Package", "Version", "Architecture", "db:Status-Status"].map((field) => `\${${field}}`).join(" ")}\n`;
    lines = execFileSync("dpkg-query", ["--show", "--showformat", format], { encoding: "utf8" });
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return [];
    throw error;
  }
  return lines.split("\n").flatMap((line) => {
    const [name = "", version = "", architecture, status] = line.split(" ");
    if (status !== "installed") return [];
    const purl = `pkg:deb/debian/${encodeURIComponent(name)}@${encodeURIComponent(version)}?arch=${architecture}`;
    return { type: "library", "bom-ref": purl, name, version, purl };
  });
}

const { name, version } = Package.parse(
  JSON.parse(readFileSync(join(REPOSITORY, "package.json"), "utf8")),
);
const bill = {
  bomFormat: "CycloneDX",
  specVersion: "1.5",
  version: 1,
  metadata: { component: { type: "application", "bom-ref": `${name}@${version}`, name, version } },
  components: [...npmPackages(), natsServer(), ...debianPackages()],
};
process.stdout.write(`${JSON.stringify(bill, null, 2)}\n`);
