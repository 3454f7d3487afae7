/** The first page of the console. */
import type { Pages } from "../lib/router.ts";
import { HomePage } from "./home-page.tsx";

export const pages: Pages = { "": HomePage };
