import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect } from "chai";
import { REPOSITORY } from "./tools.ts";

describe("links of documents", () => {
  const paths = execFileSync(
    "git",
    ["ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
    { cwd: REPOSITORY, encoding: "utf8" },
  )
    .split("\n")
    .filter((path) => path !== "" && existsSync(join(REPOSITORY, path)));

  it("lead to files and headings that exist", () => {
    expect(paths.length).to.be.above(50);
    const broken = paths.flatMap((path) =>
      linksOf(read(path)).flatMap((link) => {
        const [file = "", heading] = link.split("#");
        const target = file === "" ? path : join(dirname(path), file);
        if (!existsSync(join(REPOSITORY, target))) return `${path}: ${link}`;
        const isThere = heading === undefined || headingsOf(read(target)).includes(heading);
        return isThere ? [] : `${path}: ${link}`;
      }),
    );
    expect(broken).to.deep.equal([]);
  });

  it("and file names in text exist", () => {
    const wrong = paths
      .filter((path) => !path.startsWith("docs/decisions/"))
      .flatMap((path) =>
        filesNamedIn(read(path)).flatMap((file) =>
          existsSync(join(REPOSITORY, file)) ? [] : `${path}: ${file}`,
        ),
      );
    expect(wrong).to.deep.equal([]);
  });

  it("are recognized in text, and not in code", () => {
    const text = "[a](b.md#c) ![d](e.png) [f](https://g.example/)\n```\n[h](i)\n```\n`[j](k)`";
    expect(linksOf(text)).to.deep.equal(["b.md#c", "e.png"]);
    expect(headingsOf("# A `b` C?\n\n## D-e")).to.deep.equal(["a-b-c", "d-e"]);
    expect(filesNamedIn("`actors/a.ts`, `gateway/b/` and `c.ts`")).to.deep.equal([
      "actors/a.ts",
      "gateway/b/",
    ]);
  });
});

const read = (path: string) => readFileSync(join(REPOSITORY, path), "utf8");

/** Returns the targets of links that lead to files or headings of the repository. */
function linksOf(markdown: string): string[] {
  const text = markdown.replaceAll(/```[\s\S]*?```|`[^`\n]*`/g, "");
  return Array.from(text.matchAll(/\]\(([^)\s]+)\)/g), ([, link = ""]) => link).filter(
    (link) => !/^[a-z]+:/.test(link),
  );
}

/**
 * Returns the files and folders of the repository that the text names as code, by their path from the root:
 * `actors/main.ts`, `gateway/http/`.
 */
function filesNamedIn(markdown: string): string[] {
  const spans = markdown.matchAll(/`((?:actors|gateway|schemas|deploy|scripts|docs)\/[\w./-]*)`/g);
  return Array.from(spans, ([, file = ""]) => file);
}

/**
 * Returns the anchors of headings as Git hosting sites make them: lower case, hyphens instead of blanks, no other
 * punctuation.
 */
function headingsOf(markdown: string): string[] {
  return Array.from(markdown.matchAll(/^#+ (.*)$/gm), ([, heading = ""]) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
      .trim()
      .replaceAll(/\s/g, "-"),
  );
}
