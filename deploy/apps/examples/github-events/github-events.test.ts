import { createHmac } from "node:crypto";
import { join } from "node:path";
import { expect } from "chai";
import type { Browser, Page } from "puppeteer-core";
import { AppPlatform } from "../../../../scripts/testing/app-platform.ts";
import { deployExample } from "../../../../scripts/testing/example-app.ts";
import { startPersonBrowser } from "../../../../scripts/testing/person-browser.ts";
import { until } from "../../../../scripts/testing/until.ts";

/** A folder for screenshots of the page, for people to look at. If unset, none are taken. */
const PICTURES = process.env.PAGE_PICTURES;
const SECRET = "it is a secret";

describe("example github-events", function () {
  this.timeout(300_000);
  let platform: AppPlatform;
  let browser: Browser;
  let page: Page;
  before(async () => {
    platform = await AppPlatform.start();
    await deployExample(platform, "github-events", { GITHUB_SECRET: SECRET });
    browser = await startPersonBrowser();
    page = await browser.newPage();
  });
  after(async () => {
    await browser?.close();
    await platform[Symbol.asyncDispose]();
  });

  const send = async (id: string, type: string, event: object, secret = SECRET) => {
    const body = JSON.stringify({ repository: { full_name: "Octo/Cat" }, ...event });
    const digest = createHmac("sha256", secret).update(body).digest("hex");
    const headers = {
      "content-type": "application/json",
      "x-github-event": type,
      "x-github-delivery": id,
      "x-hub-signature-256": `sha256=${digest}`,
    };
    const path = "/webhooks/github";
    return (await platform.ask("github-events", path, { method: "POST", headers, body })).status;
  };
  const lines = () =>
    page.$$eval("#events li", (items) =>
      items.map((item) => [...item.children].slice(0, 2).map(({ textContent }) => textContent)),
    );
  const sender = { login: "ada" };

  it("shows events live on its page, each once, and escapes their markup", async () => {
    const faults: unknown[] = [];
    page.on("pageerror", (error) => faults.push(error));
    await page.goto(`http://${platform.hostOf("github-events")}/`);
    expect(
      await send("d1", "push", { ref: "refs/heads/main", commits: [{}, {}], sender }),
    ).to.equal(202);
    await until("the first is shown", async () => (await lines()).length === 1);
    expect(await lines()).to.deep.equal([["push", "2 commits to refs/heads/main, by ada"]]);
    const action = "<img src=x onerror=alert(1)>";
    for (const id of ["d2", "d1", "d2"]) {
      expect(await send(id, "issues", { action, sender })).to.equal(202);
    }
    await until("the next one too", async () => (await lines()).length === 2);
    expect((await lines())[0]).to.deep.equal(["issues", `${action}, by ada`]);
    const other = { repository: { full_name: "Octo/Dog" }, action: "started" };
    expect(await send("d3", "star", other)).to.equal(202);
    await page.waitForSelector('button[data-name="octo-dog"]');
    expect(await page.$eval("#status", ({ textContent }) => textContent)).to.equal(
      "Octo/Cat: 2 events",
    );
    if (PICTURES) await page.screenshot({ path: join(PICTURES, "github-events.png") });
    await page.click('button[data-name="octo-dog"]');
    await until("the other is shown", async () => (await lines())[0]?.[0] === "star");
    expect(faults).to.deep.equal([]);
  });

  it("refuses unsigned events, and serves agents to sockets only", async () => {
    expect(await send("d9", "push", {}, "another")).to.equal(401);
    for (const method of ["GET", "POST"]) {
      const path = "/agents/repository/octo-cat";
      const answer = await platform.ask("github-events", path, { method });
      expect(answer.status, method).to.equal(404);
    }
  });
});
