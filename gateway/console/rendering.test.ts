import { expect } from "chai";
import { ConsoleWorld, HOSTILE_TEXTS } from "./testing/console-world.ts";

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
    await world.press("Render");
    await world.says("Browser time");
    const bytes = await shownBytes();
    expect(bytes.subarray(0, 5).toString()).to.equal("%PDF-");
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
    await world.press("Render");
    await world.says("Browser time");
    expect((await shownBytes()).subarray(0, 3).toString("hex")).to.equal("ffd8ff");
    await world.audit("rendering-screenshot");
  });

  it("runs nothing of a hostile page in the console", async () => {
    for (const html of HOSTILE_TEXTS) {
      await world.fill("Body", JSON.stringify({ html }));
      await world.press("Render");
      await world.says("Browser time");
    }
    expect(await world.isHacked()).to.equal(false);
  });

  it("shows the browser time that was used, by day", async () => {
    await world.follow("Usage");
    await world.heading("Rendering usage");
    await world.says(new Date().toISOString().slice(0, 10));
    await world.audit("rendering-usage");
  });

  async function shownBytes(): Promise<Buffer> {
    const text = await world.page.evaluate(`(async () => {
      const answer = await fetch(document.querySelector("a[download]").href);
      return btoa(String.fromCharCode(...new Uint8Array(await answer.arrayBuffer()).slice(0, 16)));
    })()`);
    return Buffer.from(String(text), "base64");
  }
});
