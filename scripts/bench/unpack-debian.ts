/** Real pages to measure with: packages of documentation are full of them. */
import { execFileSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";

/** Downloads a package of Debian and returns the path of one of its folders, below `scratch`. */
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
