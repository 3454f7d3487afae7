/** HTML as values. A template escapes all its values, except values that are templates themselves. */

export class Html {
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  toString(): string {
    return this.#text;
  }
}

type Part = Html | string | number | false | undefined | null | readonly Part[];

/**
 * Makes Html from a template. Values that are not Html are escaped as text; `false`, `null` and `undefined` become an
 * empty text.
 */
export function html(strings: TemplateStringsArray, ...parts: Part[]): Html {
  const written = strings.map(
    (text, index) => text + (index < parts.length ? write(parts[index]) : ""),
  );
  return new Html(written.join(""));
}

function write(part: Part): string {
  if (part === false || part === undefined || part === null) return "";
  if (part instanceof Html) return part.toString();
  if (typeof part === "string" || typeof part === "number") return escaped(String(part));
  return part.map(write).join("");
}

const ENTITIES: Record<string, string> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

const escaped = (text: string) =>
  text.replace(/[&<>"']/g, (character) => ENTITIES[character] ?? "");
