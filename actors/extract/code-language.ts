/** Finds out in which language a block of code is written, by the marks that highlighters leave. */
import { CODE_CLASS_CHARS_MAX } from "../../schemas/crawl-limits.ts";

/** An element, its attributes, and what it stands in. */
export interface CodeElement {
  name: string;
  attributes: Record<string, string>;
  parent?: CodeElement | null | undefined;
}

/** Of a `pre`, or of a `code` in one; what stands nearest to the text knows best. */
export function codeLanguage({ name, attributes, parent }: CodeElement): string | undefined {
  const own = languageOf(attributes);
  if (own !== undefined) return own;
  if (name === "code" && parent?.name === "pre") return codeLanguage(parent);
  // One step further: `<div class="highlight-source-js"><pre>`.
  return name === "pre" && parent != null ? languageOf(parent.attributes) : undefined;
}

const MARKS = [
  /(?:^|\s)(?:language|lang|highlight-source|sourceCode-lang)-([\w+#.-]+)/i,
  /(?:^|\s)brush:\s*([\w+#.-]+)/i,
  /(?:^|\s)hljs\s+([\w+#.-]+)/i,
  /(?:^|\s)([\w+#.-]+)\s+hljs(?:\s|$)/i,
  /(?:^|\s)sourceCode\s+([\w+#.-]+)/,
  /(?:^|\s)highlight-([\w+#.-]+)/i,
];
/** What those marks say of code in no language. */
const NONE = new Set(["none", "default", "text", "plaintext", "hljs"]);

function languageOf(attributes: Record<string, string>): string | undefined {
  const named = attributes["data-lang"] ?? attributes["data-language"];
  if (named !== undefined && /^[\w+#.-]+$/.test(named)) return named.toLowerCase();
  // The class may be megabytes long, and the patterns look for spaces in it.
  const marks = attributes.class?.slice(0, CODE_CLASS_CHARS_MAX) ?? "";
  for (const mark of MARKS) {
    const language = mark.exec(marks)?.[1]?.toLowerCase();
    if (language !== undefined) return NONE.has(language) ? undefined : language;
  }
  return undefined;
}
