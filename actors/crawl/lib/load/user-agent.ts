/** The name of our crawler: for servers, and in robots.txt. */
export const PRODUCT_TOKEN = "VendorBrowserRenderingCrawler";
export const CRAWLER_USER_AGENT = `${PRODUCT_TOKEN}/1.0`;
