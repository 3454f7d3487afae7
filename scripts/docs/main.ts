/** `npm run docs`: writes the pages of docs/reference that are made from the code. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { REPOSITORY } from "../tools.ts";
import { referencePages } from "./pages.ts";

for (const [path, text] of referencePages()) writeFileSync(join(REPOSITORY, path), text);
