import { expect } from "chai";
import { ConsoleWorld } from "./testing/console-world.ts";
import { HOSTILE_TEXTS } from "./testing/hostile-texts.ts";

describe("rendering in the console", function () {
  this.timeout(240_000);
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

  it("runs nothing of a hostile page in the console", async () => {
    for (const html of HOSTILE_TEXTS) {
      await world.fill("Body", JSON.stringify({ html }));
      await rendered();
    }
    expect(await world.isHacked()).to.equal(false);
  });

  it("shows the browser time that was used, by day", async () => {
    await world.follow("Usage");
    await world.heading("Rendering usage");
    await world.says(new Date().toISOString().slice(0, 10));
    await world.audit("rendering-usage");
  });

  /** Presses Render, and resolves to the first bytes of the answer. */
  async function rendered(): Promise<Buffer> {
    const answer = world.page.waitForResponse((one) => one.url().includes("/browser-rendering/"));
    await world.press("Render");
    const bytes = await (await answer).buffer();
    await world.says("Download");
    return bytes.subarray(0, 5);
  }
});
