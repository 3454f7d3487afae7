/** Pages of this area. */
import type { Pages } from "../frame/areas.ts";

export const pages: Pages = {};
