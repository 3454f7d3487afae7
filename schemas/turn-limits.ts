/** Limits of lanes that serve their keys in turn, and of the pages that run in them. */

// --- Pages ---

/** How often a running page is checked against its account's browser time. A page may exceed its time by as much. */
export const BROWSER_TIME_CHECK_MS = 2_000;
/** Pages that a browser worker holds for each page that may compute: a waiting page costs some 30 MB. */
export const PAGES_PER_COMPUTING_PAGE = 3;
