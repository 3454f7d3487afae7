/** Starts the browser of a person, who uses the platform's pages. */
import puppeteer, { type Browser, type LaunchOptions } from "puppeteer-core";
import { findChromium } from "../tools.ts";

/**
 * Switches off the graphics card and its emulation in software. The emulation takes processor time, and machines that
 * run tests have no card.
 */
const DRAWING = ["--disable-gpu", "--disable-software-rasterizer"];

export function startPersonBrowser(options: LaunchOptions = {}): Promise<Browser> {
  return puppeteer.launch({
    executablePath: findChromium(process.env),
    args: process.getuid?.() === 0 ? [...DRAWING, "--no-sandbox"] : DRAWING,
    ...options,
  });
}
