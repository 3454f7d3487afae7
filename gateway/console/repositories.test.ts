import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { expect } from "chai";
import { ConsoleWorld } from "./testing/console-world.ts";
import { HOSTILE_TEXTS } from "./testing/hostile-texts.ts";
import { longestTaskMs, measured, paintMs, plainRowsMs } from "./testing/page-speed.ts";

const run = promisify(execFile);
/** One point of one colour. */
const PICTURE = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);
const README = `# Parcel

Counts *parcels* by **weight**. See the [guide](docs/guide.md#use) and [the web](https://example.com/?a=1&amp;b=2).

![dot](docs/dot.png) ![tracked](https://tracker.example/x.png)

\`\`\`ts
const answer: number = 42; // the answer
\`\`\`

| kind | count |
| --- | ---: |
| small | 3 |

- [x] done
- [ ] open

<p align="center" onclick="window.hacked=1"><b>Centred</b> &amp; bold<script>window.hacked=1</script></p>
`;
const HOSTILE_DOCUMENT = [
  ...HOSTILE_TEXTS,
  ...HOSTILE_TEXTS.map(
    (text) => `# ${text}\n\n- ${text}\n\n> ${text}\n\n\`\`\`html\n${text}\n\`\`\``,
  ),
  "[click](javascript:window.hacked=1) <a href='jav&#x09;ascript:window.hacked=1'>x</a>",
  "![x](javascript:window.hacked=1) ![x](data:text/html,<script>parent.hacked=1</script>)",
  "<div><iframe src=https://evil.example></iframe><style>*{display:none}</style><form action=https://evil.example><button>b</button></form></div>",
  "<details open ontoggle=window.hacked=1><summary onclick=window.hacked=1>s</summary>t</details>",
  `${">".repeat(3_000)} deep`,
  "| a |\n|---|\n| <img src=x onerror=window.hacked=1> |",
].join("\n\n");

describe("repositories in the console", function () {
  this.timeout(900_000);
  let world: ConsoleWorld;
  let folder: string;
  before(async () => {
    world = await ConsoleWorld.start();
    folder = await mkdtemp(join(tmpdir(), "console-git-"));
  });
  after(async () => {
    if (folder) await rm(folder, { recursive: true, force: true });
    await world?.[Symbol.asyncDispose]();
  });
  afterEach(() => world.checkFaults());

  it("makes a repository and its first file without a terminal", async () => {
    await world.open("repositories", "Repositories");
    await world.says("There is no repository here yet");
    await world.audit("repositories-empty");
    await world.follow("New repository");
    await world.fill("Name", "notes");
    await world.fill("Description", "What we found");
    await world.press("Make the repository");
    await world.says("It is not shown again");
    await world.audit("repository-new");
    await world.follow("Go to the repository");
    await world.says("This repository is empty");
    await world.press("Download zip");
    await world.says("Ref not found");
    await world.audit("repository-empty");
    await world.follow("Add a file");
    await world.fill("Path", "docs/first.md");
    await world.fill("Content", "# First\n\nA *note*.");
    await world.audit("file-new");
    await world.press("Commit to main");
    await world.heading("first.md");
    await world.says("A note.");
    await world.follow("Edit");
    await world.fill("Content", "# First\n\nA longer note.");
    await world.fill("Message", "Say more");
    await world.press("Commit to main");
    await world.says("A longer note.");
    await world.follow("History");
    await world.says("Add first.md");
    await world.follow("Say more");
    await world.says("1 file changed");
    await world.follow("History");
    await world.follow("Add first.md");
    await world.says("+3");
    expect(await world.page.$$eval(".line.added", (lines) => lines.length)).to.equal(3);
  });

  it("makes a repository that begins with a README", async () => {
    await world.open("repositories/-/new", "New repository");
    await world.fill("Name", "begun");
    await world.fill("Description", "It begins here");
    await world.choose("Begin with a README");
    await world.press("Make the repository");
    await world.follow("Go to the repository");
    await world.says("Add README.md");
    await world.page.waitForSelector(".markup h3");
    expect(await world.text()).to.contain("It begins here");
  });

  it("shows files, README, history, differences and branches of what git pushed", async () => {
    await push("parcel", [
      { message: "Begin", files: { "README.md": README, "docs/dot.png": PICTURE } },
      {
        message: "Add the guide\n\nIt says how to count.",
        files: {
          "docs/guide.md": "# Guide\n\n## Use\n\nCount.",
          "src/main.ts": source(104),
          "data.bin": Buffer.from([0, 1, 2, 255]),
        },
      },
      { branch: "feature/count", message: "Count twice", files: { "src/main.ts": source(98) } },
    ]);
    await world.open("repositories", "Repositories");
    await world.says("parcel");
    await world.audit("repositories");
    await world.follow("parcel");
    await world.heading("Parcel");
    await world.page.waitForSelector("aria/dot[role='image']");
    await world.page.waitForSelector(".token.keyword");
    await world.audit("repository");
    expect(await world.text()).to.contain("Centred & bold");
    await world.follow("src");
    await world.follow("main.ts");
    await world.page.waitForSelector(".token.keyword");
    await world.says("104 lines");
    await world.audit("file");
    await world.open("repositories/default/parcel", "parcel");
    await world.follow("data.bin");
    await world.says("This file is no text");
    await world.open("repositories/default/parcel", "parcel");
    await world.follow("guide");
    await world.heading("guide.md");
    await world.follow("History");
    await world.says("Begin");
    await world.audit("history");
    await world.follow("Add the guide");
    await world.says("It says how to count.");
    await world.audit("commit");
    await world.follow("Branches");
    await world.says("2 branches");
    await world.audit("branches");
    await world.follow("Compare");
    await world.says("1 file changed");
    await world.audit("compare");
    await world.page.evaluate(
      "navigator.clipboard.writeText = async (text) => { window.copied = text; }",
    );
    await world.press("Copy as curl");
    await world.page.waitForFunction("window.copied");
    expect(await world.page.evaluate("window.copied")).to.contain("/diff?base=");
  });

  it("makes and revokes a token that clones", async () => {
    await world.open("repositories/default/parcel/tokens", "parcel");
    // Waits until the page is complete, because the list above would move the button when it loads.
    await world.settled();
    await world.press("Make the token");
    await world.says("It is not shown again");
    const remote = (await repoOf("parcel")).remote;
    const address = remote.replace("://", `://x:${encodeURIComponent(await world.secret())}@`);
    await world.audit("repository-tokens");
    await git(folder, "clone", "-q", address, "cloned");
    for (let left = await tokens(); left > 0; left--) {
      await world.openDialog("Revoke");
      await world.confirm("Revoke");
      await world.page.waitForFunction(
        `document.querySelectorAll('[aria-label="Active tokens"] tbody tr').length < ${left}`,
      );
    }
    await world.says("There is no active token");
    const again = await git(folder, "ls-remote", address).catch((error: Error) => error);
    expect(again).to.be.an("error");
  });

  it("makes one token for a command that clones, also by two presses", async () => {
    await world.open("repositories/default/parcel", "parcel");
    const button = await world.page.waitForSelector('aria/Command with a token[role="button"]');
    {
      // Until the answer has come, the button is there.
      await using _slow = await world.intercept(
        (request) => request.url().endsWith("/tokens"),
        (request) => setTimeout(() => void request.continue(), 500),
      );
      await button?.click();
      await button?.click();
      await world.says("git clone");
    }
    await world.open("repositories/default/parcel/tokens", "parcel");
    await world.says("1 token");
    expect(await tokens()).to.equal(1);
  });

  it("shows the progress and the failure of an import", async () => {
    await world.open("repositories/-/import", "Import a repository");
    await world.fill("Address", "http://example.com/x.git");
    await world.fill("Name", "theirs");
    await world.press("Import");
    await world.says("url must be the HTTPS address of a git repository");
    await world.fill("Address", "https://127.0.0.1:1/owner/theirs.git");
    await world.audit("import");
    await world.press("Import");
    await world.heading("theirs");
    await world.says("This repository could not be filled");
    await world.audit("import-failed");
  });

  it("changes settings, and deletes only when the name is typed", async () => {
    await world.open("repositories/default/notes/settings", "notes");
    await world.fill("Protected refs", "heads/main");
    await world.press("Save");
    await world.says("/protected_refs/0");
    await world.fill("Protected refs", "refs/heads/main");
    await world.choose("Read only");
    await world.press("Save");
    await world.says("Saved.");
    expect(await repoOf("notes")).to.deep.include({
      read_only: true,
      protected_refs: ["refs/heads/main"],
    });
    await world.audit("repository-settings");
    await world.openDialog("Delete the repository");
    await world.fill('Type "notes" to confirm', "notes");
    await world.confirm("Delete the repository");
    await world.heading("Repositories");
    await world.settled();
    expect(await world.text()).to.not.contain("What we found");
  });

  it("scrolls 10,000 files without a task that blocks the page", async () => {
    const { page } = world;
    const files = Array.from({ length: 10_000 }, (_, index) => [`file-${index}.txt`, ""]);
    await push("many", [{ message: "many", files: Object.fromEntries(files) }]);
    const { ms, limitMs } = await measured(async () => {
      await world.open("", "Home");
      const plainMs = await plainRowsMs(page);
      await world.open("repositories/default/many", "many");
      await world.says("file-1.txt");
      return { ms: await longestTaskMs(page), limitMs: Math.max(100, plainMs) };
    });
    if (process.env.PAGE_PICTURES) console.log({ ms, limitMs });
    expect(ms).to.be.below(limitMs);
    await world.says("file-9999.txt");
    await world.page.type('[type="search"]', "file-77");
    await world.page.waitForFunction('document.querySelectorAll(".entries > li").length === 111');
    await world.audit("repository-many");
  });

  it("shows pages soon, and moves nothing that is shown", async () => {
    const { page, platform } = world;
    const shifts: [path: string, moved: string[]][] = [];
    const plainMs = await paintMs(page, `${platform.url}/profile`);
    for (const path of [
      ...["", "rendering", "crawls", "repositories", "repositories/default/parcel"],
      ...["oauth-clients", "apps", "webhooks", "account", "account/members", "operator"],
    ]) {
      const address = `${platform.url}/console/${platform.accountId}/${path}`;
      const { ms, limitMs } = await measured(async () => {
        return { ms: await paintMs(page, address), limitMs: Math.max(1_000, 20 * plainMs) };
      });
      expect(ms, path).to.be.below(limitMs);
      await world.settled();
      const moved = (await page.evaluate(`new Promise((done) => {
        const moved = [];
        new PerformanceObserver((list) => moved.push(...list.getEntries().filter(({ value }) => value >= 0.001).map(({ value, sources }) =>
          value.toFixed(3) + " " + sources.map(({ node }) => (node?.outerHTML ?? "").slice(0, 60)).join(" ")))
        ).observe({ type: "layout-shift", buffered: true });
        requestAnimationFrame(() => requestAnimationFrame(() => done(moved)));
      })`)) as string[];
      if (process.env.PAGE_PICTURES) console.log(path, { plainMs, ms }, moved);
      if (moved.length > 0) shifts.push([path, moved]);
    }
    expect(shifts).to.deep.equal([]);
  });

  it("shows hostile names, files, messages and documents as text", async () => {
    const named = HOSTILE_TEXTS.map((text) => text.replaceAll("/", "∕"));
    await push("hostile", [
      {
        message: HOSTILE_TEXTS.join("\n"),
        author: "<img src=x onerror=window.hacked=1>".replaceAll(/[<>]/g, '"'),
        files: {
          ...Object.fromEntries(named.map((name) => [name, HOSTILE_TEXTS.join("\n")])),
          "README.md": HOSTILE_DOCUMENT,
          "page.html": HOSTILE_DOCUMENT,
          "picture.svg":
            '<svg xmlns="http://www.w3.org/2000/svg" onload="parent.hacked=1"><script>parent.hacked=1</script></svg>',
        },
      },
      { branch: "x/<img-src=x-onerror=window.hacked=1>", message: "m", files: { a: "b" } },
    ]);
    const below = "repositories/default/hostile";
    await world.platform.rest("PATCH", "/artifacts/namespaces/default/repos/hostile", {
      description: HOSTILE_TEXTS[0],
    });
    const [first = ""] = named;
    for (const [path, seen] of [
      ["", first],
      [`/file/${encodeURIComponent(first)}`, HOSTILE_TEXTS[1]],
      ["/file/README.md", "click"],
      ["/file/page.html", HOSTILE_TEXTS[1]],
      ["/file/picture.svg", "Download"],
      ["/history", HOSTILE_TEXTS[0]],
      ["/branches", "x/<img-src=x"],
      ["/settings", "Protected refs"],
    ] as const) {
      await world.open(below + path, path.startsWith("/file/") ? last(path) : "hostile");
      await world.settled();
      await world.says(seen ?? "");
    }
    const { body } = await world.platform.rest(
      "GET",
      "/artifacts/namespaces/default/repos/hostile/log",
    );
    await world.open(`${below}/commit/${body.result[0].hash}`, HOSTILE_TEXTS[0] ?? "");
    await world.says(HOSTILE_TEXTS[1] ?? "");
    await world.open("repositories", "Repositories");
    await world.says(HOSTILE_TEXTS[0] ?? "");
    expect(await world.isHacked()).to.equal(false);
  });

  const last = (path: string) => decodeURIComponent(path.split("/").at(-1) ?? "");

  async function repoOf(name: string) {
    const path = `/artifacts/namespaces/default/repos/${name}`;
    return (await world.platform.rest("GET", path)).body.result;
  }

  const tokens = () =>
    world.page.$$eval('[aria-label="Active tokens"] tbody tr', (rows) => rows.length);

  interface Commit {
    branch?: string;
    message: string;
    author?: string;
    files: Record<string, string | Buffer>;
  }

  /** Creates a repository with git and pushes its commits. */
  async function push(name: string, commits: readonly Commit[]): Promise<void> {
    const path = "/artifacts/namespaces/default/repos";
    const { body } = await world.platform.rest("POST", path, { name });
    const work = join(folder, name);
    await git(folder, "init", "-q", "-b", "main", name);
    for (const { branch, message, author = "Ada", files } of commits) {
      if (branch) await git(work, "checkout", "-q", "-b", branch);
      for (const [file, content] of Object.entries(files)) {
        await mkdir(dirname(join(work, file)), { recursive: true });
        await writeFile(join(work, file), content);
      }
      await git(work, "add", ".");
      const who = ["-c", `user.name=${author}`, "-c", "user.email=ada@example.com"];
      await git(work, ...who, "commit", "-q", "-m", message);
    }
    await git(work, "tag", "v1");
    const { remote, token } = body.result;
    const address = remote.replace("://", `://x:${encodeURIComponent(token)}@`);
    await git(work, "push", "-q", address, "--all");
    await git(work, "push", "-q", address, "--tags");
  }

  const git = (cwd: string, ...parameters: string[]) => run("git", parameters, { cwd });
});

/** Returns source code with this number of lines. */
const source = (lines: number) =>
  Array.from(
    { length: lines },
    (_, index) => `export const value${index}: string = "text ${index}"; // of line ${index}`,
  ).join("\n");
