/** The program of `npm run build`: builds the package `trunkline` in dist/. */
import { join } from "node:path";
import { REPOSITORY } from "../tools.ts";
import { buildPackage } from "./build-package.ts";

const folder = join(REPOSITORY, "dist");
await buildPackage(folder);
console.log(`Made ${folder}: npm pack ${folder} makes a tarball of it`);
