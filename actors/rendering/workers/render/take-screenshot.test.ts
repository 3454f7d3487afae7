import { expect } from "chai";
import {
  SCREENSHOT_BYTES_MAX,
  SCREENSHOT_PIXELS_MAX,
  TALL_PICTURE_PIXELS_MAX,
  TALL_PICTURE_PX_MAX,
} from "../../../../schemas/rendering/limits.ts";
import { capture, look } from "../../../../scripts/testing/camera.ts";
import { openPool } from "../../../../scripts/testing/printer.ts";
import { refusalOf } from "../../../../scripts/testing/refusal.ts";
import { until } from "../../../../scripts/testing/until.ts";
import { WebSite } from "../../../../scripts/testing/web-site.ts";

const RED = [255, 0, 0, 255];
const GREEN = [0, 255, 0, 255];
const BLUE = [0, 0, 255, 255];
const WHITE = [255, 255, 255, 255];
const NOTHING = [0, 0, 0, 0];

/**
 * A red page of 200 × 300 pixels, with a green box at position 20, 150 and a blue box in the corner of the window.
 */
const PAGE = `<!doctype html><title>a page</title><style>
  body { margin: 0; height: 300px; background: #f00 }
  #green { position: absolute; left: 20px; top: 150px; width: 60px; height: 40px; background: #0f0 }
  #blue { position: absolute; right: 0; top: 0; width: 10px; height: 10px; background: #00f }
  #none { display: none }
</style><div id=green></div><div id=blue></div><div id=none>x</div>`;
const viewport = { width: 200, height: 100 };

describe("takeScreenshot", function () {
  this.timeout(60_000);
  const pool = openPool();
  let site: WebSite;
  before(async () => {
    [site] = await Promise.all([WebSite.start(), pool.start()]);
  });
  after(async () => {
    await Promise.all([pool.close(), site[Symbol.asyncDispose]()]);
  });

  const take = (request: object) => capture(pool, { html: PAGE, viewport, ...request });
  const refused = (request: object) => refusalOf(take(request));

  describe("which part", () => {
    it("is the window where nothing is said, as a png of its size", async () => {
      const { bytes, browserMs } = await take({});
      const seen = await look(pool, bytes, [0, 0], [195, 5], [199, 99]);
      expect(seen).to.deep.equal({ type: "png", ...viewport, colors: [RED, BLUE, RED] });
      expect(browserMs).to.be.within(1, 60_000);
      const whole = await capture(pool, { html: PAGE });
      expect(await look(pool, whole.bytes)).to.include({ width: 1_920, height: 1_080 });
    });

    it("has as many pixels as the device has for each of the page", async () => {
      const { bytes } = await take({ viewport: { ...viewport, deviceScaleFactor: 2 } });
      const seen = await look(pool, bytes, [379, 0], [381, 0]);
      expect(seen).to.deep.include({ width: 400, height: 200, colors: [RED, BLUE] });
    });

    it("is the whole page with fullPage, drawn beyond the window or in a window that grew", async () => {
      for (const captureBeyondViewport of [true, false]) {
        const screenshotOptions = { fullPage: true, captureBeyondViewport };
        const { bytes } = await take({ screenshotOptions });
        const seen = await look(pool, bytes, [50, 170], [199, 299]);
        expect(seen).to.deep.include({ width: 200, height: 300, colors: [GREEN, RED] });
      }
    });

    it("is a clip, counted from the corner of the page, at its scale", async () => {
      const clip = { x: 70, y: 140, width: 20, height: 30 };
      const { bytes } = await take({ screenshotOptions: { clip } });
      const seen = await look(pool, bytes, [0, 0], [5, 15], [15, 15]);
      expect(seen).to.deep.include({ width: 20, height: 30, colors: [RED, GREEN, RED] });
      const scaled = await take({ screenshotOptions: { clip: { ...clip, scale: 2 } } });
      const larger = await look(pool, scaled.bytes, [10, 30]);
      expect(larger).to.deep.include({ width: 40, height: 60, colors: [GREEN] });
    });

    it("is what the window shows of a clip without captureBeyondViewport, and refused where that is nothing", async () => {
      const options = { captureBeyondViewport: false };
      const clip = { x: 10, y: 90, width: 20, height: 100 };
      const { bytes } = await take({ screenshotOptions: { ...options, clip } });
      expect(await look(pool, bytes)).to.include({ width: 20, height: 10 });
      const { code, details } = await refused({
        screenshotOptions: { ...options, clip: { ...clip, y: 100 } },
      });
      expect(code).to.equal("invalid_request");
      expect(details.faults?.[0]?.pointer).to.equal("/screenshotOptions/clip");
    });

    it("is the element of a selector alone, wherever it is on the page", async () => {
      const { bytes } = await take({ selector: "#green" });
      const seen = await look(pool, bytes, [0, 0], [59, 39]);
      expect(seen).to.deep.equal({ type: "png", width: 60, height: 40, colors: [GREEN, GREEN] });
    });

    it("is a clip of the element where there are both", async () => {
      const clip = { x: 50, y: 30, width: 20, height: 20 };
      const { bytes } = await take({ selector: "#green", screenshotOptions: { clip } });
      const seen = await look(pool, bytes, [5, 5], [15, 15]);
      expect(seen).to.deep.include({ width: 20, height: 20, colors: [GREEN, RED] });
    });

    it("is an element that its own box has to scroll to", async () => {
      const html = `<body style="margin:0"><div style="height:50px;overflow:auto">
        <p style="height:900px"></p><div id=inner style="width:30px;height:20px;background:#00f"></div></div>`;
      const { bytes } = await take({ html, selector: "#inner" });
      const seen = await look(pool, bytes, [15, 10]);
      expect(seen).to.deep.include({ width: 30, height: 20, colors: [BLUE] });
    });

    it("is refused where the selector finds nothing, or nothing that takes room", async () => {
      for (const selector of ["#missing", "#none", "title"]) {
        const { code, message, details } = await refused({ selector });
        expect(code, selector).to.equal("element_not_found");
        expect(message).to.contain(`"${selector}"`);
        expect(details.browserMs).to.be.above(0);
      }
    });

    it("is refused with the field's name where the selector is none", async () => {
      const { code, details } = await refused({ selector: "##" });
      expect(code).to.equal("invalid_request");
      expect(details.faults).to.deep.equal([
        { pointer: "/selector", message: "Expected a CSS selector" },
      ]);
    });
  });

  describe("which picture", () => {
    it("is of the type that was asked for, and smaller with less quality", async () => {
      for (const type of ["jpeg", "webp"] as const) {
        const noise = `<body style="background:repeating-linear-gradient(7deg,#f00,#0f0 3px,#00f 7px)">`;
        const fine = await take({ html: noise, screenshotOptions: { type, quality: 95 } });
        const rough = await take({ html: noise, screenshotOptions: { type, quality: 5 } });
        expect(await look(pool, rough.bytes)).to.include({ type, ...viewport });
        expect(rough.bytes.length).to.be.below(fine.bytes.length);
        const [color = []] = (
          await look(pool, (await take({ screenshotOptions: { type } })).bytes, [100, 50])
        ).colors;
        expect(color[0], type).to.be.above(245);
        expect(color[2], type).to.be.below(10);
      }
    });

    it("is transparent where there is no background with omitBackground, but for a jpeg", async () => {
      const html = `<body style="margin:0"><div style="width:9px;height:9px;background:#00f">`;
      const shown = async (options: object) => {
        const { bytes } = await take({ html, screenshotOptions: options });
        return (await look(pool, bytes, [4, 4], [100, 50])).colors;
      };
      expect(await shown({})).to.deep.equal([BLUE, WHITE]);
      expect(await shown({ omitBackground: true })).to.deep.equal([BLUE, NOTHING]);
      expect((await shown({ omitBackground: true, type: "jpeg" }))[1]).to.deep.equal(WHITE);
    });

    it("is text in base64 where that was asked for", async () => {
      const { bytes } = await take({ screenshotOptions: { encoding: "base64" } });
      const binary = await take({});
      expect(Buffer.from(bytes.toString(), "base64").equals(binary.bytes)).to.equal(true);
    });
  });

  describe("of which page", () => {
    it("is one that was loaded with all parameters that a PDF's page has", async () => {
      const url = site.page("/seen", (request, response) => {
        response.end(`<body style="background:${request.headers["x-color"]}"><p>`);
      });
      const { bytes } = await take({
        html: undefined,
        url,
        setExtraHTTPHeaders: { "X-Color": "#0f0" },
        addStyleTag: [{ content: "p { background: #00f; height: 50px; margin: 0 }" }],
        addScriptTag: [{ content: "document.body.style.margin = 0" }],
        waitForSelector: { selector: "p", visible: true },
      });
      expect((await look(pool, bytes, [5, 5], [5, 90])).colors).to.deep.equal([BLUE, GREEN]);
    });

    it("has its images, also where the page counts as loaded before them", async () => {
      site.page("/late.svg", (_, response) => {
        setTimeout(() => {
          response.setHeader("Content-Type", "image/svg+xml");
          response.end(
            `<svg xmlns="http://www.w3.org/2000/svg" width="50" height="50"><rect width="50" height="50" fill="#0f0"/></svg>`,
          );
        }, 300);
      });
      const url = site.page("/late", `<body style="margin:0"><img src="/late.svg">`);
      for (const setJavaScriptEnabled of [true, false]) {
        const { bytes } = await take({ html: undefined, url, setJavaScriptEnabled });
        expect((await look(pool, bytes, [25, 25])).colors).to.deep.equal([GREEN]);
      }
    });

    it("has what loads only on sight with scrollPage, and is at its beginning again", async () => {
      const html = `<body style="margin:0;background:#f00;height:3000px"><script>
        addEventListener("scroll", () => { if (scrollY > 2_500) document.body.style.background = "#00f" });
        document.write('<div style="height:10px;background:#0f0">');
      </script>`;
      const { bytes } = await take({ html, scrollPage: true });
      expect((await look(pool, bytes, [5, 5], [5, 50])).colors).to.deep.equal([GREEN, BLUE]);
    });

    it("is drawn as it is where something never comes", async () => {
      site.page("/never.png", () => {});
      const url = site.page("/waiting", `<body style="background:#0f0"><img src="/never.png">`);
      const { bytes } = await take({ html: undefined, url, actionTimeout: 20_000 });
      expect((await look(pool, bytes, [150, 50])).colors).to.deep.equal([GREEN]);
    });

    it("is none that the egress guard refuses", async () => {
      const { code } = await refused({ html: undefined, url: "http://127.0.0.1:1/" });
      expect(code).to.equal("address_refused");
    });

    it("is left alone when the time is up, or the caller left", async () => {
      const slow = { html: undefined, url: site.page("/slow", () => {}), viewport };
      const late = await refusalOf(capture(pool, slow, { deadlineMs: 500 }));
      expect([late.code, late.message]).to.deep.equal([
        "deadline_exceeded",
        "Cannot capture the page: the deadline has passed",
      ]);
      const leaving = new AbortController();
      const before = site.requests.length;
      const taken = refusalOf(capture(pool, slow, { signal: leaving.signal }));
      await until("the page is loading", () => site.requests.length > before);
      leaving.abort();
      expect((await taken).code).to.equal("cancelled");
      const { code } = await refused({ actionTimeout: 1 });
      expect(code).to.equal("wait_timed_out");
    });
  });

  describe("how large", () => {
    /** The size of a picture with the maximum number of pixels. Tests also use one row more. */
    const width = 1_920;
    const height = SCREENSHOT_PIXELS_MAX / width;
    const tall = (px: number) => `<body style="margin:0;background:#0f0;height:${px}px">`;
    const window = { width, height: 100 };

    it("is bounded in pixels", async () => {
      const screenshotOptions = { fullPage: true, type: "jpeg", quality: 10 };
      const full = { screenshotOptions, viewport: window };
      await take({ ...full, html: tall(height) });
      const { code, message } = await refused({ ...full, html: tall(height + 1) });
      expect(code).to.equal("page_not_printable");
      expect(message).to.contain(`1920 × ${height + 1} device pixels`);
    });

    it("is a png of several pieces for a page that is taller, with every row in its place", async () => {
      // Stripes of 1,000 rows each, and a diagonal that crosses them, so that no two rows of a piece are equal.
      const rows = 36;
      const stripes = Array.from(
        { length: rows },
        (_, row) => `<p style="background:rgb(${row},${255 - row},0)"></p>`,
      ).join("");
      const html = `<style>body { margin: 0 } p { margin: 0; height: 1000px }
        i { position: absolute; inset: 0 auto auto 0; width: 100%; height: ${rows}000px;
          background: linear-gradient(135deg, #00f, transparent) 0 0 / 50% 100% no-repeat }
        b { position: fixed; top: 0; right: 0; width: 5px; height: 5px; background: #f00 }</style>
        ${stripes}<i></i><b></b>`;
      for (const deviceScaleFactor of [1, 1.25]) {
        const wide = { width: 400, height: 300, deviceScaleFactor };
        const screenshotOptions = { fullPage: true };
        const { bytes } = await take({ html, viewport: wide, screenshotOptions });
        const [width, height] = [400 * deviceScaleFactor, rows * 1_000 * deviceScaleFactor];
        expect([bytes.readUInt32BE(16), bytes.readUInt32BE(20)]).to.deep.equal([width, height]);
        const at = (y: number): [number, number] => [width - 20, Math.round(y * deviceScaleFactor)];
        const points = Array.from({ length: rows }, (_, row) => at(row * 1_000 + 500));
        const { colors } = await look(pool, bytes, ...points, [width - 2, 2]);
        const expected = points.map((_, row) => [row, 255 - row, 0, 255]);
        expect(colors).to.deep.equal([...expected, RED]);
      }
    });

    it("is bounded in rows and pixels where it is of several pieces", async () => {
      const screenshotOptions = { fullPage: true };
      const narrow = { screenshotOptions, viewport: { width: 100, height: 100 } };
      const { bytes } = await take({ ...narrow, html: tall(TALL_PICTURE_PX_MAX) });
      expect(bytes.readUInt32BE(20)).to.equal(TALL_PICTURE_PX_MAX);
      const higher = await refused({ ...narrow, html: tall(TALL_PICTURE_PX_MAX + 1) });
      expect(higher.code).to.equal("page_not_printable");
      expect(higher.message).to.contain(`${TALL_PICTURE_PX_MAX} down`);
      const rows = TALL_PICTURE_PIXELS_MAX / width;
      const larger = await refused({ screenshotOptions, viewport: window, html: tall(rows + 1) });
      expect(larger.code).to.equal("page_not_printable");
      const light = { html: tall(40_000), viewport: narrow.viewport, screenshotOptions };
      const heavy = await refusalOf(capture(pool, light, { bytesMax: 1_000 }));
      expect(heavy.message).to.contain("1000 are the most");
    });

    it("is bounded in pixels of a side, and so is an element", async () => {
      const html = (px: number) => `<div id=wide style="width:${px}px;height:2px;background:#00f">`;
      const { bytes } = await take({ html: html(16_383), selector: "#wide" });
      expect(bytes.readUInt32BE(16)).to.equal(16_383);
      const { code } = await refused({ html: html(16_384), selector: "#wide" });
      expect(code).to.equal("page_not_printable");
      const dense = { viewport: { ...viewport, deviceScaleFactor: 2 } };
      expect((await refused({ html: html(8_192), selector: "#wide", ...dense })).code).to.equal(
        "page_not_printable",
      );
    });

    it("is bounded in bytes", async () => {
      const request = { html: PAGE, viewport };
      const { bytes } = await capture(pool, request);
      const taken = await capture(pool, request, { bytesMax: bytes.length });
      expect(taken.bytes.equals(bytes)).to.equal(true);
      const { code, message } = await refusalOf(
        capture(pool, request, { bytesMax: bytes.length - 1 }),
      );
      expect(code).to.equal("page_not_printable");
      expect(message).to.contain(`${bytes.length} bytes`);
      expect(SCREENSHOT_BYTES_MAX).to.be.above(bytes.length);
    });
  });
});
