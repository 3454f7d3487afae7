/**
 * Highlights source code: splits each line into parts, each with its syntactic kind. A separate chunk of the program.
 */
import dockerfile from "highlight.js/lib/languages/dockerfile";
import { common, createLowlight } from "lowlight";

export type HighlightedLine = { text: string; kind?: string }[];

const lowlight = createLowlight({ ...common, dockerfile });
/** File extensions that differ from the name of their language. */
const ENDINGS: Readonly<Record<string, string>> = {
  lock: "ini",
  conf: "ini",
  webmanifest: "json",
};

/** Returns the lines with their highlighted parts. Returns undefined if the language is unknown. */
export function highlight(text: string, named: string): HighlightedLine[] | undefined {
  const language = languageOf(named);
  if (language === undefined) return undefined;
  const lines: HighlightedLine[] = [[]];
  collect(lowlight.highlight(language, text).children, undefined, lines);
  return lines;
}

function languageOf(named: string): string | undefined {
  const name = (named.split("/").at(-1) ?? "").toLowerCase();
  const ending = name.split(".").at(-1) ?? "";
  return [name, ENDINGS[ending], ending].find(
    (one) => one !== undefined && lowlight.registered(one),
  );
}

/** A part of the tree of lowlight. */
interface Part {
  type: string;
  value?: string;
  properties?: { className?: unknown };
  children?: Part[];
}

function collect(parts: readonly object[], kind: string | undefined, lines: HighlightedLine[]) {
  for (const part of parts as readonly Part[]) {
    if (part.children) {
      const names = part.properties?.className;
      const own = Array.isArray(names) ? String(names[0]).replace(/^hljs-/, "") : undefined;
      collect(part.children, own ?? kind, lines);
      continue;
    }
    for (const [index, text] of (part.value ?? "").split("\n").entries()) {
      if (index > 0) lines.push([]);
      if (text !== "") lines.at(-1)?.push(kind === undefined ? { text } : { text, kind });
    }
  }
}
