/** Pages of rendering. */
import type { Pages } from "../lib/router.ts";
import { JobsPage, UsagePage } from "./jobs-page.tsx";
import { PlaygroundPage } from "./playground-page.tsx";

export const pages: Pages = { "": PlaygroundPage, jobs: JobsPage, usage: UsagePage };
