/** Pages of the requests area. */
import type { Pages } from "../lib/router.ts";
import { FindRequestPage, RequestPage } from "./request-page.tsx";

export const pages: Pages = { "": FindRequestPage, ":id": RequestPage };
