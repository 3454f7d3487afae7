/** Downloads packages of Debian. Documentation packages contain many real pages for the benchmarks. */
import { execFileSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";

/** Downloads a Debian package and unpacks it below `scratch`. Returns the path of one of the package's folders. */
export function unpackDebian(
  scratch: string,
  { package: name, folder }: { package: string; folder: string },
): string {
  execFileSync("apt-get", ["download", "-qq", name], { cwd: scratch, stdio: "ignore" });
  const [archive] = readdirSync(scratch).filter((file) => file.endsWith(".deb"));
  if (archive === undefined)
    throw new Error("Cannot find pages: set TRUNKLINE_BENCH_PAGES to a folder of HTML");
  execFileSync("dpkg", ["-x", archive, "."], { cwd: scratch });
  return join(scratch, folder);
}
