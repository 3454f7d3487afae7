/** Finds out in which language a block of code is written, by the marks that highlighters leave. */
import { CODE_CLASS_CHARS_MAX } from "../../../../schemas/crawl/limits.ts";
import type { PageNode } from "./page-node.ts";

/** Elements around a block that may carry its language: Sphinx and Jekyll put it two levels up, GitLab three. */
const PARENTS_MAX = 3;

/**
 * The language of a `pre`: marked on a `code` that is all of it, on the block itself, or on an element around it.
 * The mark nearest to the text wins. A parent that holds several blocks says nothing about one of them.
 */
export function codeLanguage(pre: PageNode): string | undefined {
  const code = pre.find((node) => node.tagName === "code");
  for (const node of code === undefined ? [pre] : [code, pre]) {
    const language = languageOf(node);
    if (language !== undefined) return language || undefined;
  }
  let inner = pre;
  for (let level = 0; level < PARENTS_MAX; level += 1) {
    const parent = inner.parentNode;
    if (parent === null || HOLDS_MANY.has(parent.tagName)) return undefined;
    const language = languageOf(parent);
    if (language !== undefined) return language || undefined;
    inner = parent;
  }
  return undefined;
}

/** Elements that hold a page or a chapter: `lang-en` of one is the language that people speak. */
const HOLDS_MANY = new Set(["body", "html", "main", "article", "section", "#root"]);

const NAME = "([\\w+#.-]+)";
const MARKS = [
  `(?:^|\\s)(?:language|lang|highlight-source|highlight-text|sourceCode-lang|brush|src|code|syntax)[-:]\\s*${NAME}`,
  `(?:^|\\s)hljs\\s+(?!language-)${NAME}`,
  `(?:^|\\s)${NAME}\\s+hljs(?:\\s|$)`,
  `(?:^|\\s)sourceCode\\s+${NAME}`,
  `(?:^|\\s)highlight-${NAME}`,
  `(?:^|\\s)highlight\\s+(?!highlight-)${NAME}(?:\\s|$)`,
].map((mark) => new RegExp(mark, "i"));

/** Marks of code in no language. */
const NONE = new Set([
  "none",
  "default",
  "text",
  "plaintext",
  "plain",
  "txt",
  "hljs",
  "nohighlight",
]);
/** Names of languages that highlighters write in a way of their own. */
const NAMES = new Map([
  ["python3", "python"],
  ["ipython3", "python"],
  ["pycon3", "pycon"],
  ["default-python", "python"],
  ["shell-session", "console"],
]);
/** Classes that follow `highlight` and are no language. */
const LAYOUT = /^(?:source|block|wrapper|container|line|lines|copy|code|inner|notranslate|tabs?)$/;

/** An empty text says that the code has no language; undefined says that there is no mark. */
function languageOf(node: PageNode): string | undefined {
  const named = node.getAttribute("data-lang") ?? node.getAttribute("data-language");
  if (named !== null && /^[\w+#.-]+$/.test(named)) return canonical(named);
  // The class may be megabytes long, and the patterns look for spaces in it.
  const marks = node.getAttribute("class")?.slice(0, CODE_CLASS_CHARS_MAX) ?? "";
  for (const mark of MARKS) {
    const language = mark.exec(marks)?.[1];
    if (language !== undefined && !LAYOUT.test(language)) return canonical(language);
  }
  return undefined;
}

function canonical(language: string): string {
  const name = language.toLowerCase();
  return NONE.has(name) ? "" : (NAMES.get(name) ?? name);
}
