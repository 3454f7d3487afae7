/** Reads parts of puppeteer's pages that its types omit. */
import type { CDPSession, Page } from "puppeteer-core";

/** Returns puppeteer's own session of a page. With another session the browser would send every event twice. */
export function sessionOf(page: Page): CDPSession {
  return (page as unknown as { _client(): CDPSession })._client();
}

/** Returns the id of the main frame, which stays the same across navigations. */
export function mainFrameIdOf(page: Page): string {
  return (page.mainFrame() as unknown as { _id: string })._id;
}
