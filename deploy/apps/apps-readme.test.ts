import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect } from "chai";
import type { Browser } from "puppeteer-core";
import { AppPlatform } from "../../scripts/testing/app-platform.ts";
import { shellBlocksOf, WORK_FOLDER } from "../../scripts/testing/guide.ts";
import { startPersonBrowser } from "../../scripts/testing/person-browser.ts";
import { until } from "../../scripts/testing/until.ts";
import { REPOSITORY } from "../../scripts/tools.ts";

const run = promisify(execFile);

describe("a first app", function () {
  this.timeout(300_000);
  let platform: AppPlatform;
  let folder: string;
  let browser: Browser;
  before(async () => {
    platform = await AppPlatform.start();
    browser = await startPersonBrowser();
    folder = await mkdtemp(join(tmpdir(), "trunkline-person-"));
    await mkdir(join(folder, "data"));
    await symlink(join(REPOSITORY, "scripts"), join(folder, "scripts"));
    const credentials = "credentials.json";
    await cp(join(platform.instance.dataDir, credentials), join(folder, "data", credentials));
  });
  after(async () => {
    await browser?.close();
    await platform?.[Symbol.asyncDispose]();
    if (folder) await rm(folder, { recursive: true, force: true });
  });

  it("works as the guide says, word for word", async () => {
    const [helpers = "", lines = ""] = shellBlocksOf("docs/guides/apps-and-agents.md");
    const shell = async (script: string) => {
      const command = `${WORK_FOLDER}${helpers}${script}`;
      const options = { cwd: folder, env: { PATH: process.env.PATH, HOME: folder } };
      return (await run("bash", ["-euo", "pipefail", "-c", command], options)).stdout;
    };
    const commands = commandsOf(lines);
    expect(commands).to.have.length(10);
    const stdout = await shell(lines);
    const [address = ""] = /http:\/\/localhost:\d+/.exec(stdout) ?? [];
    expect(stdout).to.include('"is_new":true');

    const page = await browser.newPage();
    await page.goto(`${address}/`);
    const shown = (text: string) =>
      until(`it shows ${text}`, async () => {
        return (await page.$eval("h1", ({ textContent }) => textContent)) === text;
      });
    await shown("1 events");
    const sending = commands.slice(-4).join("\n");
    await shell(sending);
    await shown("2 events");
    const known = sending.replace("$(openssl rand -hex 8)", "known");
    expect(await shell(known)).to.include('"is_new":true');
    expect(await shell(known)).to.include('"is_new":false');
    await shell(sending);
    await shown("4 events");
  });
});

/** Splits a script into commands. A command includes its here-document and its continuation lines. */
const commandsOf = (script: string): string[] =>
  script.match(/(?:.*<<'END'\n[\s\S]*?\nEND|(?:.*\\\n)*.+)(?=\n)/g) ?? [];
