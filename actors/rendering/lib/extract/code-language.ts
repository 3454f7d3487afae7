/** Finds the programming language of a code block from the attributes that syntax highlighters leave. */
import { CODE_CLASS_CHARS_MAX } from "../../../../schemas/crawl/limits.ts";
import type { PageNode } from "./page-node.ts";

/**
 * Maximum parents that are searched for the language: Sphinx and Jekyll name it two levels above the code, GitLab
 * three.
 */
const PARENTS_MAX = 3;

/**
 * Returns the language of a `pre`: from its first `code` element, from the `pre` itself, or from the nearest parent
 * with a mark. The search ends at a parent that contains a page or a chapter.
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

/** Elements that contain a page or a chapter. `lang-en` on one of them is a human language. */
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

/** Marks of code without a language. */
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
/** Names that highlighters use for a language, and the usual name of that language. */
const NAMES = new Map([
  ["python3", "python"],
  ["ipython3", "python"],
  ["pycon3", "pycon"],
  ["default-python", "python"],
  ["shell-session", "console"],
]);
/** Classes after `highlight` that describe the layout and are no languages. */
const LAYOUT = /^(?:source|block|wrapper|container|line|lines|copy|code|inner|notranslate|tabs?)$/;

/** Returns an empty text for code without a language, and undefined without a mark. */
function languageOf(node: PageNode): string | undefined {
  const named = node.getAttribute("data-lang") ?? node.getAttribute("data-language");
  if (named !== null && /^[\w+#.-]+$/.test(named)) return canonical(named);
  // The class may be megabytes long, and the patterns search it for spaces, so only its beginning is used.
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
