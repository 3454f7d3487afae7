/** Pages of crawls. */
import type { Pages } from "../lib/pages.ts";
import { CrawlPage } from "./crawl-page.tsx";
import { CrawlsPage } from "./crawls-page.tsx";
import { NewCrawlPage } from "./new-crawl-page.tsx";

export const pages: Pages = { "": CrawlsPage, new: NewCrawlPage, ":id": CrawlPage };
