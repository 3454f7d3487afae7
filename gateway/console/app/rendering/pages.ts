/** Pages of rendering. */
import type { Pages } from "../lib/pages.ts";
import { PlaygroundPage } from "./playground-page.tsx";
import { UsagePage } from "./usage-page.tsx";

export const pages: Pages = { "": PlaygroundPage, usage: UsagePage };
