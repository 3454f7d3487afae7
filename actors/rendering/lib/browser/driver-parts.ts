/**
 * The parts of puppeteer-core that our code needs without a browser. It imports them without the entry file, because
 * the entry file loads 130 modules (25 MB) that an instance needs only once it starts a browser.
 */
export { KnownDevices } from "puppeteer-core/internal/common/Device.js";
export { ProtocolError, PuppeteerError } from "puppeteer-core/internal/common/Errors.js";
