/** Pages of this area. */
import type { Pages } from "../lib/pages.ts";

export const pages: Pages = {};
