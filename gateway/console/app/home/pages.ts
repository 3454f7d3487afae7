/** The first page of the console. */
import type { Pages } from "../frame/areas.ts";
import { HomePage } from "./home-page.tsx";

export const pages: Pages = { "": HomePage };
