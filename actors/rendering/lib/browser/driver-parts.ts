/**
 * The parts of puppeteer-core that its users need beside a browser. They are imported without the entry file: that loads
 * 130 modules, 25 MB, which an instance needs only once it starts a browser.
 */
export { KnownDevices } from "puppeteer-core/internal/common/Device.js";
export { ProtocolError, PuppeteerError } from "puppeteer-core/internal/common/Errors.js";
