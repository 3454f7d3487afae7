/** Pages of the requests area. */
import type { Pages } from "../lib/pages.ts";
import { FindRequestPage } from "./find-request-page.tsx";
import { RequestPage } from "./request-page.tsx";

export const pages: Pages = { "": FindRequestPage, ":id": RequestPage };
