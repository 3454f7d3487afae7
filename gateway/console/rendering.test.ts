import { expect } from "chai";
import { ConsoleWorld } from "./testing/console-world.ts";
import { HOSTILE_TEXTS } from "./testing/hostile-texts.ts";

/** Longer than the interval between two reads of the list of jobs. */
const SLOW_MS = 3_000;

describe("rendering in the console", function () {
  this.timeout(900_000);
  let world: ConsoleWorld;
  before(async () => {
    world = await ConsoleWorld.start();
  });
  after(() => world?.[Symbol.asyncDispose]());
  afterEach(() => world.checkFaults());

  it("prints a page as a PDF, and names the field that is wrong", async () => {
    await world.open("rendering", "Rendering");
    await world.audit("rendering");
    await world.fill("Markup", "<h1>Printed</h1>");
    await world.type("Scale", "9");
    await world.press("Render");
    await world.says("/pdfOptions/scale");
    await world.type("Scale", "1.5");
    expect((await rendered()).toString()).to.equal("%PDF-");
    await world.audit("rendering-pdf");
    const wait = await world.page.waitForSelector('aria/Wait until[role="combobox"]');
    expect(await wait?.select("settled")).to.deep.equal(["settled"]);
    await world.choose("JSON", "radio");
    expect(await world.page.evaluate('document.querySelector("textarea").value')).to.contain(
      '"waitUntil": "settled"',
    );
    await world.fill("Body", '{"html": "x", "pdfOptions": {"landscape": "yes"}}');
    await world.choose("Form", "radio");
    await world.press("Render");
    await world.page.waitForFunction(
      `document.querySelector('[type="checkbox"][aria-invalid="true"]')?.closest("label").querySelector(".fault")`,
    );
  });

  it("takes a screenshot with options as JSON", async () => {
    await world.choose("Screenshot", "radio");
    await world.choose("JSON", "radio");
    await world.fill("Body", '{"html": "<h1>Seen</h1>"');
    await world.says("It is no JSON yet");
    const options = { type: "jpeg" };
    const body = { html: "<h1>Seen</h1>", viewport: { width: 300, height: 200 } };
    await world.fill("Body", JSON.stringify({ ...body, screenshotOptions: options }));
    expect((await rendered()).toString("hex")).to.match(/^ffd8ff/);
    await world.page.waitForFunction('document.querySelector("img.shown").naturalWidth === 300');
    await world.audit("rendering-screenshot");
  });

  it("reads a page as Markdown and its links", async () => {
    const html =
      '<main><h1>Harbour</h1><p>See <a href="https://example.com/tide">tides</a>.</main>';
    for (const [action, shown] of [
      ["Markdown", "# Harbour"],
      ["Links", "https://example.com/tide"],
    ] as const) {
      await world.choose(action, "radio");
      await world.fill("Body", JSON.stringify({ html }));
      await rendered();
      await world.page.waitForFunction(
        `document.querySelector("pre.source")?.innerText.includes(${JSON.stringify(shown)})`,
      );
    }
    await world.choose("Screenshot", "radio");
  });

  it("runs nothing of a hostile page in the console", async () => {
    for (const html of HOSTILE_TEXTS) {
      await world.fill("Body", JSON.stringify({ html }));
      await rendered();
    }
    expect(await world.isHacked()).to.equal(false);
  });

  it("runs a rendering as a job, gives its result, and cancels another one", async () => {
    await world.follow("Jobs");
    await world.says("There is no job yet");
    await world.follow("Playground");
    await world.fill("Markup", "<h1>Later</h1>");
    await world.choose("Run as a job");
    await world.press("Render");
    await world.heading("Rendering jobs");
    await world.says("completed");
    await world.page.evaluate(`{
      const make = URL.createObjectURL;
      URL.createObjectURL = (blob) => make.call(URL, (window.saved = blob));
    }`);
    await world.press("Download pdf");
    await world.page.waitForFunction("window.saved");
    expect(await world.page.evaluate("window.saved.slice(0, 5).text()")).to.equal("%PDF-");
    await world.follow("Playground");
    await world.choose("JSON", "radio");
    await world.fill("Body", JSON.stringify({ html: "x", waitForTimeout: 120_000 }));
    await world.choose("Run as a job");
    await world.press("Render");
    await world.says("running");
    await world.audit("rendering-jobs");
    await world.openDialog("Cancel pdf");
    await world.confirm("Cancel pdf");
    await world.says("cancelled");
    await world.page.select("select", "failed");
    await world.says("No job is in this state");
  });

  it("shows answers that take longer than the interval of reads", async () => {
    await using _answers = await world.intercept(
      (request) => request.url().includes("/browser-rendering/jobs"),
      (request) => setTimeout(() => void request.continue().catch(() => {}), SLOW_MS),
    );
    await world.open("rendering/jobs", "Rendering jobs");
    await world.says("completed");
  });

  it("says that the console is at fault where it cannot read an answer", async () => {
    await using _answers = await world.intercept(
      (request) => request.url().includes("/browser-rendering/jobs"),
      (request) => void request.respond({ status: 200, contentType: "text/html", body: "<h1>Hi" }),
    );
    await world.open("rendering/jobs", "Rendering jobs");
    await world.says("This is a fault of the console: reload the page.");
  });

  it("names the file of a screenshot in base64 as text", async () => {
    const { url, accountId, credentials } = world.platform;
    await fetch(`${url}/v4/accounts/${accountId}/browser-rendering/screenshot`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${credentials.api_token}`,
        "content-type": "application/json",
        prefer: "respond-async",
      },
      body: JSON.stringify({ html: "x", screenshotOptions: { encoding: "base64" } }),
    });
    await world.open("rendering/jobs", "Rendering jobs");
    await world.page.evaluate(
      "HTMLAnchorElement.prototype.click = function () { window.savedAs = this.download; }",
    );
    await world.press("Download screenshot");
    await world.page.waitForFunction("window.savedAs");
    expect(await world.page.evaluate("window.savedAs")).to.equal("screenshot.txt");
  });

  it("shows the browser time that was used, by day", async () => {
    await world.follow("Usage");
    await world.heading("Rendering usage");
    await world.says(new Date().toISOString().slice(0, 10));
    await world.audit("rendering-usage");
  });

  /** Presses the button Render, and resolves with the first bytes of the result. */
  async function rendered(): Promise<Buffer> {
    const answer = world.page.waitForResponse((one) => one.url().includes("/browser-rendering/"));
    await world.press("Render");
    const bytes = await (await answer).buffer();
    await world.says("Download");
    return bytes.subarray(0, 5);
  }
});
