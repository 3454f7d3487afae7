/** Pages of crawls. */
import type { Pages } from "../lib/router.ts";
import { CrawlPage } from "./crawl-page.tsx";
import { CrawlsPage, NewCrawlPage } from "./crawls-page.tsx";

export const pages: Pages = { "": CrawlsPage, new: NewCrawlPage, ":id": CrawlPage };
