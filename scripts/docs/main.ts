/** `npm run docs`: writes the documents that are made from the code. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { REPOSITORY } from "../tools.ts";
import { madeDocuments } from "./pages.ts";

for (const [path, text] of madeDocuments()) writeFileSync(join(REPOSITORY, path), text);
